"""Reproduce Figs. 4 to 6 and the numbers of Sections V-C to V-E: ``make eval``.

``python -m planezip.sim.eval`` writes ``build/eval/fig4.json``, ``fig5.json``,
``fig6.json``, ``sensitivity.json``, ``claims.json``, ``discussion.json``,
``optimum.json`` and ``deviations.json`` (``schemas/eval.json``), plots beside them where
matplotlib is installed, ``results.md``, the tables as text, and ``seconds.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planezip.sim.claims import claims, deviations, index
from planezip.sim.discussion import discussion, gaps
from planezip.sim.experiments import (
    Job,
    fig4_jobs,
    fig5_jobs,
    fig6_jobs,
    run_jobs,
    sensitivity_jobs,
)
from planezip.sim.paper import MODELS
from planezip.sim.paper_eval import overhead_percent
from planezip.sim.policies import POLICIES
from planezip.sim.results import markdown

__all__ = ["evaluate", "main", "with_means"]

EVAL_VERSION = 1
_MARKER = "<!-- below: python -m planezip.sim.eval --docs -->"
_ENGINE = 64  # GB/s, of both platforms
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
    figure = row["figure"]
    if figure == "sensitivity":
        figure = "fig4" if row["policy"] in POLICIES else "fig5"
        figure = "fig6b" if rate != _ENGINE else figure
    return overhead_percent(
        figure, row["model"], row["platform"], row["budget_percent"], row["policy"], rate
    )


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
    found["claims"] = []
    for source in sources:
        rows = [r for n in ("fig4", "fig5", "fig6") for r in found[n] if r["ratios"] == source]
        found["claims"] += claims(index(rows), source)
    found["discussion"] = discussion()
    found["optimum"] = gaps()
    found["deviations"] = deviations(found)
    for name in ("claims", "discussion", "optimum", "deviations"):
        _write(folder / f"{name}.json", found[name])
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
    seconds = {
        "jobs": arguments.jobs,
        "seconds": round(time.monotonic() - began),
        "cpu_seconds": round(sum(os.times()[:4])),  # of this process and its workers
    }
    (arguments.output / "seconds.json").write_text(json.dumps(seconds) + "\n", "utf-8")
    tables = (arguments.output / "results.md").read_text("utf-8")
    if arguments.docs is not None:
        text, _, _ = arguments.docs.read_text("utf-8").partition(_MARKER)
        arguments.docs.write_text(f"{text}{_MARKER}\n\n{tables}", "utf-8")
    print(tables)


if __name__ == "__main__":
    main()
