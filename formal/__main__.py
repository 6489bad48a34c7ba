"""`make formal`: prove all properties, print a table, write build/formal/report.json."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from formal import (
    codec_properties,
    engine_properties,
    expansion_properties,
    lane_properties,
    part_properties,
    slot_properties,
    stream_properties,
)
from formal.prove import Property, Verdict, broken, prove
from formal.report import table, write
from formal.solve import DEFAULT_SOLVER, SOLVERS, version

__all__ = ["all_properties", "main"]

REPORT = Path(__file__).parents[1] / "build" / "formal" / "report.json"


def all_properties() -> Iterator[Property]:
    """Every property, those that take longest first."""
    yield from lane_properties.properties()
    yield from engine_properties.properties()
    yield from codec_properties.properties()
    yield from part_properties.properties()
    yield from expansion_properties.properties()
    yield from slot_properties.properties()
    yield from stream_properties.properties()


def chosen(words: Sequence[str], quick: bool) -> list[Property]:
    """Properties with all of ``words`` in their names."""
    return [
        item
        for item in all_properties()
        if all(word in item.name for word in words) and (item.quick or not quick)
    ]


def run(items: Sequence[Property], solver: str, workers: int) -> list[Verdict]:
    """Prove, each property in a process of its own, and tell of each as it ends."""
    context = get_context("spawn")
    verdicts: dict[str, Verdict] = {}
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1) as pool:
        futures = {pool.submit(prove, item, solver): item for item in items}
        for future in as_completed(futures):
            error = future.exception()
            verdict = broken(futures[future], error, solver) if error else future.result()
            verdicts[verdict.name] = verdict
            word = "ok  " if verdict.passed else "FAIL"
            count = f"[{len(verdicts)}/{len(items)}]"
            print(f"{count:9} {word} {verdict.name}: {verdict.status}", flush=True)
    return [verdicts[item.name] for item in items]


def main(argv: Sequence[str] | None = None) -> int:
    """0 if every property holds and every mutant fails, 1 if not, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m formal", description=__doc__)
    parser.add_argument("words", nargs="*", help="only properties with these words in their names")
    parser.add_argument("--quick", action="store_true", help="only those of make test")
    parser.add_argument("--solver", choices=sorted(SOLVERS), default=DEFAULT_SOLVER)
    parser.add_argument("--workers", type=int, default=2, help="processes at a time (2)")
    arguments = parser.parse_args(argv)
    if arguments.workers < 1:
        parser.error("argument --workers: must be 1 or more")
    items = chosen(arguments.words, arguments.quick)
    if not items:
        print(f"planezip: no property has {' '.join(arguments.words)!r} in its name",
              file=sys.stderr)  # fmt: skip
        return 2
    began = time.monotonic()
    solver = arguments.solver
    print(f"{len(items)} properties, {solver} {version(solver)}", flush=True)
    verdicts = run(items, solver, arguments.workers)
    print(table(verdicts))
    write(REPORT, verdicts, solver, time.monotonic() - began)
    wrong = [verdict.name for verdict in verdicts if not verdict.passed]
    for name in wrong:
        print(f"planezip: not proven, or its mutant was not seen: {name}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
