"""Recomputation on the operator logs of DTR's prototype, beside DTR's own simulator.

``python -m tests.dtr_logs`` writes build/eval/dtr.json. The logs are test data
(PLANEZIP_SHARED/traces), not part of the product.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planezip.sim.build_graph import build_graph
from planezip.sim.dtr import import_dtr_log
from planezip.sim.eventlog import event_log
from planezip.sim.evict import KEEPING
from planezip.sim.plan import InfeasibleError
from planezip.sim.planner import Planner, Recipe
from planezip.sim.platform import load_platform
from planezip.sim.validate import validate
from tb.shared import shared

LOGS = shared("traces")
DTR: dict[str, dict[int, float | None]] = {
    "tv_densenet121-84": {30: 44.6, 50: 17.6, 70: 10.4, 90: 2.6},
    "transformer-10": {30: 12.3, 50: 5.8, 70: 3.1, 90: 0.9},
    "unet-6": {30: None, 50: 15.9, 70: 8.5, 90: 3.3},
}
"""Overhead in percent of DTR's simulator with h_DTR, by budget in percent of the peak;
None: out of memory."""
RECIPES = {"recomp": [Recipe()], "recomp_keeping": [Recipe(), Recipe(evict=KEEPING)]}
"""Replays thrown away after each use, as the paper's; and with the option to keep them."""


def overheads(log: str) -> list[dict[str, Any]]:
    """A row per budget; each plan's event log is checked. The budget counts constants."""
    trace = import_dtr_log(LOGS / f"{log}.log.gz")
    graph = build_graph(trace, load_platform("A"))
    rows = []
    for percent, dtr in DTR[log].items():
        peak = graph.peak_bytes + trace.parameter_bytes
        budget = peak * percent // 100 - trace.parameter_bytes
        row: dict[str, Any] = {"log": log, "budget_percent": percent, "dtr_percent": dtr}
        planner = Planner(graph, graph.tensor_bytes)
        for name, recipes in RECIPES.items():
            try:
                choice = planner.choose(recipes, budget)
            except InfeasibleError:
                row[f"{name}_percent"] = None
                continue
            validate(event_log(graph, choice.plan, planner.simulator, budget))
            row[f"{name}_percent"] = round(100 * choice.predicted.overhead, 1)
        rows.append(row)
    return rows


def main() -> None:
    """Write the file and print a table."""
    rows = [row for log in DTR for row in overheads(log)]
    path = Path("build/eval/dtr.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"format": "planezip-dtr", "version": 1, "rows": rows}
    path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    print("| log | budget | RECOMP | RECOMP, keeping | DTR |\n|---|---|---|---|---|")
    for row in rows:
        cells = ("recomp_percent", "recomp_keeping_percent", "dtr_percent")
        text = " | ".join("-" if row[c] is None else f"{row[c]:.1f}" for c in cells)
        print(f"| {row['log']} | {row['budget_percent']}% | {text} |")


if __name__ == "__main__":
    main()
