"""How fast planner and simulator are on this machine.

``python -m planezip.sim.speed`` writes ``build/eval/speed.json``: operators simulated
per second of one core (DenseNet-121 on platform B at 50%, replays included), and the
time of the 18-plan portfolio, both without compilation; medians.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planezip.sim.build_graph import build_graph
from planezip.sim.planner import Planner, compressed_recipes
from planezip.sim.platform import load_platform
from planezip.sim.shipped import shipped_trace
from planezip.sim.sizes import paper_sizes

__all__ = ["measure_speed"]


def measure_speed() -> dict[str, Any]:
    """Figures by name; seconds are CPU time of this process."""
    graph = build_graph(shipped_trace("densenet121"), load_platform("B"))
    planner = Planner(graph, paper_sizes(graph, "densenet121").planned["PlaneZip"])
    recipes = compressed_recipes()
    result: dict[str, Any] = {"model": "densenet121", "platform": "B"}
    for percent in (50, 30):
        budget = graph.peak_bytes * percent // 100
        plan = planner.choose(recipes, budget).plan
        seconds = _median(lambda b=budget: planner.choose(recipes, b), 5)  # type: ignore[misc]
        result[f"portfolio_seconds_at_{percent}"] = seconds
        one = _median(lambda b=budget, p=plan: planner.simulator(p, b), 51)  # type: ignore[misc]
        operators = graph.arrays.op_count + len(plan.chain_ops)
        result[f"operators_per_second_at_{percent}"] = round(operators / one)
    return result


def _median(run: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return statistics.median(found)


if __name__ == "__main__":
    text = json.dumps(measure_speed(), indent=1)
    Path("build/eval").mkdir(parents=True, exist_ok=True)
    Path("build/eval/speed.json").write_text(text + "\n", "utf-8")
    print(text)
