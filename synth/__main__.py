"""``make synth``: area, clock and power of every component, lanes and engine (docs/synth.md)."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache, partial
from pathlib import Path

from planezip.model.format import DEFAULT
from planezip.synth import make_library, sweep
from planezip.synth.activity import icarus, kept_activities
from planezip.synth.engine import ENGINES
from planezip.synth.flow import SCRIPTS, Constraint, rtlil_text
from planezip.synth.library import Library, SynthError, read_libraries
from planezip.synth.measure import Row, measure, measure_engine
from planezip.synth.modules import LANES, MODULES
from planezip.synth.nodes import Node, node_of
from planezip.synth.report import document, table, write

__all__ = ["main"]

_MAPPING = {7: "speed"}  # by node: there the clock of 1.5 GHz is the aim, elsewhere the area
_MAPPING_HELP = "default: speed at 7 nm, area elsewhere; both: speed where area misses the clock"

_NAMES = (*LANES, *ENGINES, *(name for name in MODULES if name not in LANES))
_WHOLE = (*LANES, "engine_x2", "axi_x2")


def default_names(node: Node, asked: bool) -> list[str]:
    """Rows of a library that was ``asked`` for, or of one that is there anyway.

    The engines of one and four lanes only by name, and parts on other nodes than 45 nm only
    where the library was asked for: the whole run has to end within half an hour.
    """
    parts = [name for name in MODULES if name not in LANES]
    return [*_WHOLE, *(parts if asked or node.nm == 45 else [])]


def default_libraries(one: bool = False) -> list[Path]:
    """The shipped library, and those of ../shared/cells (PLANEZIP_SHARED) where they are there.

    ``one`` of them: Nangate45, or the shipped one.
    """
    cells = Path(os.environ.get("PLANEZIP_SHARED") or Path("..") / "shared") / "cells"
    if one:
        return [next(iter(sorted(cells.glob("nangate45*.lib*"))), make_library.FILE)]
    return [make_library.FILE, *sorted(cells.glob("*.lib*"))]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for an input or tool that cannot be used."""
    arguments = _parser().parse_args(argv)
    names = arguments.module or []
    if unknown := [name for name in names if name not in _NAMES]:
        print(f"error: no module {unknown[0]!r}; there are: {', '.join(_NAMES)}", file=sys.stderr)
        return 2
    if arguments.period_ps is not None and not 100 < arguments.period_ps < 1e6:
        given = f"{arguments.period_ps:g}"
        print(f"error: --period-ps must be from 100 to 1e6, not {given}", file=sys.stderr)
        return 2
    if arguments.jobs < 1:
        print(f"error: --jobs must be 1 or more, not {arguments.jobs}", file=sys.stderr)
        return 2
    folder = arguments.output.parent
    try:
        files = [Path(name) for text in arguments.liberty for name in text.split()]
        libraries = read_libraries(files or default_libraries(arguments.sweep), folder / "work")
        chosen = [
            (library, node, node.constraint(arguments.period_ps))
            for library in libraries
            for node in (node_of(library),)
        ]
        if arguments.sweep:
            return _sweep(chosen, folder, arguments.jobs)
        todo = [(names or default_names(entry[1], bool(files)), *entry) for entry in chosen]
        rows = run(todo, folder, arguments.jobs, arguments.mapping, not arguments.no_power)
        print(table(rows))
        write(document(rows, chosen), arguments.output)
    except (SynthError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nwritten: {arguments.output}")
    return 0


def _sweep(libraries: Sequence[tuple[Library, Node, Constraint]], folder: Path, jobs: int) -> int:
    found = sweep.sweep(libraries, folder, jobs)
    print(sweep.table(found))
    sweep.write_csv(found, folder / "sweep.csv")
    for path in (folder / "sweep.csv", *sweep.plot(found, folder)):
        print(f"written: {path}")
    return 0


def run(
    todo: Sequence[tuple[Sequence[str], Library, Node, Constraint]],
    folder: Path,
    jobs: int,
    mapping: str | None = None,
    with_power: bool = True,
) -> list[Row]:
    """Rows of the modules in each library, in order; progress goes to the error stream."""
    count = sum(len(names) for names, *_ in todo)
    print(f"{count} rows, {len(todo)} libraries", file=sys.stderr, flush=True)
    began = time.monotonic()
    text = cache(lambda name: rtlil_text(MODULES[name](DEFAULT), name))
    levels = cache(
        lambda name: [
            text(level.row) if level.row in MODULES else rtlil_text(level.make(DEFAULT), level.row)
            for level in ENGINES[name][1]
        ]
    )

    def one(name: str, library: Library, node: Node, constraint: Constraint) -> tuple[Row, bool]:
        power = None
        chosen = mapping or _MAPPING.get(node.nm, "area")
        mappings = list(SCRIPTS) if chosen == "both" else [chosen]
        if name in ENGINES:
            return measure_engine(name, levels(name), library, node, constraint, folder, mappings)
        if with_power and name in LANES and icarus():
            power = partial(kept_activities, MODULES[name], name, text(name), folder)
        return measure(name, text(name), library, node, constraint, folder, power, mappings)

    done: dict[tuple[int, str], Row] = {}
    with ThreadPoolExecutor(jobs) as pool:  # each waits for a process of Yosys or OpenSTA
        futures = {
            pool.submit(one, name, library, node, constraint): (i, name)
            for i, (names, library, node, constraint) in enumerate(todo)
            for name in names
        }
        try:
            for future in as_completed(futures):
                row, cached = future.result()
                done[futures[future]] = row
                how = "kept" if cached else "done"
                at = f"[{len(done)}/{len(futures)}] {how} {row.name} in {row.library}"
                told = f"{at}: {row.area_um2:,.0f} um2, {row.path_ps:.0f} ps"
                told += f" ({time.monotonic() - began:.0f} s)"
                print(told, file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[i, name] for i, (names, *_) in enumerate(todo) for name in names]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m planezip.synth", description=__doc__)
    parser.add_argument(
        "--liberty",
        action="append",
        default=[],
        help=".lib or .lib.gz files (ASAP7: all five); default: the shipped one, ../shared/cells",
    )
    parser.add_argument("--module", action="append", help="only this module; may be repeated")
    parser.add_argument("--sweep", action="store_true", help="encodings, widths, lanes")
    parser.add_argument("--no-power", action="store_true", help="no simulation, no power")
    parser.add_argument("--mapping", choices=[*SCRIPTS, "both"], help=_MAPPING_HELP)
    parser.add_argument("--period-ps", type=float, help="clock instead of the node's own")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--output", type=Path, default=Path("build/synth/report.json"))
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
