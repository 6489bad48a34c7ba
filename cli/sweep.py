"""``planezip sweep``: training time against the memory budget."""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor

from planezip.cli.errors import CliError
from planezip.cli.options import add_threads
from planezip.cli.planning import add_input, load, unit
from planezip.cli.tables import table

__all__ = ["add_parser", "run"]

_MOST_PERCENT = 1000


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "sweep",
        help="training time against the memory budget",
        description="Overhead over unlimited memory for a range of budgets, without an engine, "
        "with ZVC and with PlaneZip, and the smallest budget that any plan fits.",
    )
    add_input(parser)
    parser.add_argument(
        "--percent",
        default="30-100/10",
        metavar="FROM-TO/STEP",
        help="budgets in percent of the peak (default: 30-100/10)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_threads(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from planezip.sim.advise import VARIANTS, smallest_budget, sweep

    percents = _percents(arguments.percent)
    graph, sizes = load(arguments)
    budgets = {graph.peak_bytes * p // 100: p for p in percents}
    if arguments.threads > 1:
        with ProcessPoolExecutor(arguments.threads) as executor:
            rows = sweep(graph, sizes, list(budgets), executor=executor)
    else:
        rows = sweep(graph, sizes, list(budgets))
    smallest = smallest_budget(graph)
    if arguments.json:
        report = {
            "format": "planezip-sweep",
            "version": 1,
            "model": graph.trace.model,
            "platform": graph.platform.name,
            "ratios": sizes.source,
            "peak_bytes": graph.peak_bytes,
            "smallest_budget_bytes": smallest,
            "rows": rows,
        }
        print(json.dumps(report, indent=1))
        return 0
    by = {(r["variant"], r["budget_bytes"]): r for r in rows}
    name, scale = unit(graph.peak_bytes)
    cells = []
    for budget, percent in sorted(budgets.items()):
        line = [f"{percent}%", f"{budget / scale:.2f}"]
        for variant in VARIANTS:
            row = by[variant, budget]
            line += [_number(row["overhead_percent"]), _number(row["best_percent"])]
        cells.append(line)
    head = ["budget", name]
    for variant in VARIANTS:
        head += [f"{variant} %", "best %"]
    print(table(head, cells))
    print(
        f"peak {graph.peak_bytes / scale:.2f} {name}; smallest budget that a plan fits: "
        f"{smallest / scale:.2f} {name} ({100 * smallest / graph.peak_bytes:.1f}%). "
        "best: of this and all smaller budgets. "
        f"Ratios: {sizes.source}"
    )
    return 0


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percents(text: str) -> list[int]:
    try:
        span, _, step = text.partition("/")
        first, _, last = span.partition("-")
        found = range(int(first), int(last or first) + 1, int(step or 10))
    except ValueError:
        found = range(0)
    if not found or found[0] < 1 or found[-1] > _MOST_PERCENT:
        raise CliError(
            f"--percent must be like 30-100/10, at most {_MOST_PERCENT}, not {text!r:.40}"
        )
    return list(found)
