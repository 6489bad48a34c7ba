"""Reproduce Figs. 4 to 6 and the numbers of Sections V-C to V-E: ``make eval``.

``python -m planezip.sim.eval`` writes ``build/eval/fig4.json``, ``fig5.json``,
``fig6.json``, ``sensitivity.json``, ``claims.json``, ``optimum.json`` and
``attention.json`` (``schemas/eval.json``), plots beside them where matplotlib is
installed, and ``results.md``, the tables as text.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from planezip.sim.engine_rate import Engine
from planezip.sim.experiments import (
    Job,
    fig4_jobs,
    fig5_jobs,
    fig6_jobs,
    run_jobs,
    sensitivity_jobs,
)
from planezip.sim.graph import build_graph
from planezip.sim.optimum import best_plan
from planezip.sim.paper import MODELS
from planezip.sim.paper_eval import CLAIMS, overhead_percent
from planezip.sim.plan import InfeasibleError
from planezip.sim.planner import Planner, compressed_recipes, keeping_recipes
from planezip.sim.platform import Platform, load_platform
from planezip.sim.policies import POLICIES, run_policy
from planezip.sim.results import markdown
from planezip.sim.shipped import shipped_trace
from planezip.sim.sizes import table_sizes
from planezip.sim.synthetic import random_trace

__all__ = ["claims", "evaluate", "main", "with_means"]

EVAL_VERSION = 1
_MARKER = "<!-- below: python -m planezip.sim.eval --docs -->"
Row = dict[str, Any]


def with_means(rows: list[Row]) -> list[Row]:
    """Rows with the paper's figure, and a row ``mean`` for each group of five models."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    result = []
    for row in rows:
        result.append({**row, "paper_percent": _paper(row)})
        key = tuple(row[k] for k in _GROUP)
        groups.setdefault(key, []).append(row)
    for key, members in groups.items():
        values = [row["overhead_percent"] for row in members]
        if {row["model"] for row in members} == set(MODELS):
            mean: Row = dict(zip(_GROUP, key, strict=True))
            mean |= {"model": "mean", "overhead_percent": None}
            if None not in values:
                mean["overhead_percent"] = sum(values) / len(values)
            mean["paper_percent"] = _paper(mean)
            result.append(mean)
    return result


_GROUP = (
    "figure",
    "platform",
    "budget_percent",
    "policy",
    "ratios",
    "reading",
    "link_gb_per_s",
    "engine_gb_per_s",
)


def _paper(row: Row) -> float | None:
    rate = int(row["link_gb_per_s"] if row["figure"] == "fig6a" else row["engine_gb_per_s"])
    figure = "fig4" if row["figure"] == "sensitivity" else row["figure"]
    return overhead_percent(
        figure, row["model"], row["platform"], row["budget_percent"], row["policy"], rate
    )


def claims(fig4: list[Row], fig5: list[Row], ratios: str) -> list[Row]:
    """The derived figures of Sections V-C and V-D beside the paper's, for one source."""
    by = {
        (r["model"], r["platform"], r["budget_percent"], r["policy"]): r
        for r in fig4
        if r["ratios"] == ratios
    }
    found = []
    for platform in "AB":
        mean = {
            (b, p): by[m, platform, b, p]["overhead_percent"]
            for (m, q, b, p) in by
            if (m, q) == ("mean", platform)
        }
        pz = [by[m, platform, 30, "PlaneZip"] for m in MODELS]
        bw = [by[m, platform, 30, "BW"] for m in MODELS]
        gain = mean[30, "BW"] - mean[30, "PlaneZip"]
        values = {
            "cut of BW's overhead at 50% (%)": 100 * (1 - mean[50, "PlaneZip"] / mean[50, "BW"]),
            "gain kept with ZVC at 30% (%)": 100 * (mean[30, "BW"] - mean[30, "BW+ZVC"]) / gain,
            "bytes swapped over BW's at 30% (x)": _sum(pz, "swapped_bytes")
            / _sum(bw, "swapped_bytes"),
            "less recomputation than BW at 30% (%)": 100
            * (1 - _sum(pz, "replay_percent") / _sum(bw, "replay_percent")),
            "largest stall of PlaneZip at 30% (%)": max(row["stall_percent"] for row in pz),
        }
        for policy in ("PlaneZip", "BW", "DTE"):
            budgets = [_budget_for(by, m, platform, policy, 5.0) for m in MODELS]
            values[f"budget for 5% overhead, {policy} (%)"] = sum(budgets) / len(budgets)
        found += [
            {"claim": name, "platform": platform, "ours": value, "paper": CLAIMS[name][platform]}
            for name, value in values.items()
        ]
    pairs = [(key, row) for key, row in by.items() if key[0] != "mean"]
    same = sum(
        abs(row["overhead_percent"] - by[(*key[:3], "RECOMP")]["overhead_percent"]) < 0.05
        for key, row in pairs
        if key[3] == "DTE"
    )
    aware = sum(
        "raw" not in row["plan"] and row["plan"] != "recompute"
        for key, row in pairs
        if key[3] == "PlaneZip"
    )
    found += [
        {
            "claim": "configurations where DTE is RECOMP",
            "platform": "A+B",
            "ours": same,
            "paper": 58,
        },
        {
            "claim": "configurations with a compression-aware plan",
            "platform": "A+B",
            "ours": aware,
            "paper": 67,
        },
    ]
    return [{"ratios": ratios, **row} for row in found]


def gaps() -> list[Row]:
    """Time of the planner's choice over the exact optimum on small random networks."""
    platform = Platform(
        name="small",
        float_bytes=0,
        peak_flops_per_s=1,
        math_percent=100,
        memory_bytes_per_s=1,
        memory_percent=100,
        link_bytes_per_s=800_000_000,
        setup_ns=0,
        engine=Engine(4_000_000_000, "small"),
    )
    rows = []
    for seed in range(24):
        graph = build_graph(random_trace(seed, 5), platform)
        if graph.tensors > 7:
            continue
        sizes = np.maximum(graph.tensor_bytes // 2, 1)
        for percent in (60, 75, 90):
            budget = graph.peak_bytes * percent // 100
            planner = Planner(graph, sizes)
            best = best_plan(graph, planner.simulator, budget)
            row: Row = {"seed": seed, "tensors": graph.tensors, "budget_percent": percent}
            for name, recipes in (
                ("portfolio", compressed_recipes()),
                ("keeping", compressed_recipes() + keeping_recipes(True)),
            ):
                try:
                    ours: int | None = planner.choose(recipes, budget).predicted.iteration_ns
                except InfeasibleError:
                    ours = None
                row[f"{name}_ns"] = ours
            rows.append({**row, "optimum_ns": best.outcome.iteration_ns if best else None})
    return rows


def attention() -> list[Row]:
    """Section V-F: what attention is of GPT-2's saved bytes, and what fusing it leaves."""
    trace = shipped_trace("gpt2")
    saved = [trace.storages[s] for s in trace.saved]
    square = next(s.bytes for s in saved if s.category == "Softmax") // 4
    inner = [s for s in saved if s.bytes == (4 * square if s.is_float else square)]
    b = load_platform("B")
    share = sum(s.bytes for s in inner) / sum(s.bytes for s in saved)  # in FP32, as Table I
    rows: list[Row] = [{"figure": "attention share of saved bytes (%)", "ours": 100 * share,
                        "paper": 51.0}]  # fmt: skip
    for model in ("gpt2", "gpt2_fused", "vit_b16"):
        graph = build_graph(shipped_trace(model), b)
        sizes = table_sizes(graph)
        budget = graph.peak_bytes // 2
        bw, pz = (
            run_policy(POLICIES[p], graph, sizes, budget).overhead_percent
            for p in ("BW", "PlaneZip")
        )
        rows += [
            {"figure": f"{model}: BW at 50%, B (%)", "ours": bw, "paper": None},
            {"figure": f"{model}: PlaneZip's gain at 50%, B (points)", "ours": bw - pz,
             "paper": None},
        ]  # fmt: skip
    return rows


def _sum(rows: list[Row], key: str) -> float:
    return float(sum(row[key] for row in rows))


def _budget_for(
    by: dict[tuple[Any, ...], Row], model: str, platform: str, policy: str, percent: float
) -> float:
    """Smallest budget, in percent of the peak, from which the overhead is at most
    ``percent``, between the budgets of Fig. 4 by straight lines."""
    points = [(100.0, 0.0)] + [
        (float(b), by[model, platform, b, policy]["overhead_percent"])
        for b in (90, 80, 70, 60, 50, 40, 30)
    ]
    for (high, good), (low, bad) in pairwise(points):
        if bad > percent:
            return high - (high - low) * (percent - good) / (bad - good)
    return points[-1][0]


def evaluate(
    folder: Path, executor: Executor | None, report: Callable[[str, int, int], None]
) -> None:
    """Run everything and write the files to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = ("paper", "captured")
    plan: dict[str, list[Job]] = {
        "fig4": [job for s in sources for job in fig4_jobs(s)],
        "fig5": [job for s in sources for job in fig5_jobs(s)],
        "fig6": fig6_jobs("paper"),
        "sensitivity": sensitivity_jobs(),
    }
    found: dict[str, list[Row]] = {}
    for name, jobs in plan.items():
        rows: list[Row] = []
        for row in run_jobs(jobs, executor):
            rows.append(row)
            report(name, len(rows), len(jobs))
        found[name] = with_means(rows)
        _write(folder / f"{name}.json", found[name])
    complete = [
        s for s in sources if any(r["model"] == "mean" and r["ratios"] == s for r in found["fig4"])
    ]
    found["claims"] = [c for s in complete for c in claims(found["fig4"], found["fig5"], s)]
    _write(folder / "claims.json", found["claims"])
    found["optimum"] = gaps()
    _write(folder / "optimum.json", found["optimum"])
    found["attention"] = attention()
    _write(folder / "attention.json", found["attention"])
    (folder / "results.md").write_text(markdown(found), "utf-8")
    if find_spec("matplotlib") is not None:
        from planezip.sim.eval_plots import plot_all

        plot_all(found, folder)


def _write(path: Path, rows: list[Row]) -> None:
    data = {"format": "planezip-eval", "version": EVAL_VERSION, "rows": rows}
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", "utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="planezip.sim.eval", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/eval"), metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument(
        "--docs", type=Path, metavar="FILE", help="put the tables into this file, at its marker"
    )
    arguments = parser.parse_args()
    began = time.monotonic()

    def report(name: str, done: int, total: int) -> None:
        if sys.stderr.isatty() or done == total or done % 100 == 0:
            print(f"{name}: {done}/{total}, {time.monotonic() - began:.0f} s", file=sys.stderr)

    if arguments.jobs < 2:
        evaluate(arguments.output, None, report)
    else:
        with ProcessPoolExecutor(arguments.jobs) as executor:
            evaluate(arguments.output, executor, report)
    tables = (arguments.output / "results.md").read_text("utf-8")
    if arguments.docs is not None:
        text, _, _ = arguments.docs.read_text("utf-8").partition(_MARKER)
        arguments.docs.write_text(f"{text}{_MARKER}\n\n{tables}", "utf-8")
    print(tables)


if __name__ == "__main__":
    main()
