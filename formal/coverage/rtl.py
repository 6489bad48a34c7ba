"""Line, branch and toggle coverage of the lanes' exported Verilog, to build/coverage/rtl.json.

The Verilog is that of `make verilog`, modules and all, in the harness of `make sim`; the data are
sets of the benches, of which every output is compared (docs/proof.md).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

from formal.coverage.points import KINDS, Point, exclusions, points, signals, split
from formal.mutation.stimuli import stimuli
from tb.cached import cached_verilog
from tb.harness.bulk import HARNESS, judged, lane_files, lane_plusargs
from tb.harness.driven import harness_files
from tb.harness.lanes import LANES, Lane
from tb.harness.native import NativeFailure, Runner, build_native
from tb.places import ROOT
from tb.run import DEFAULT_SEED, simulator_version

__all__ = [
    "REPORT",
    "THRESHOLDS",
    "floor_percent",
    "main",
    "measured",
    "named_only",
    "shortfalls",
]

THRESHOLDS = Path(__file__).with_name("thresholds.json")
_FOLDER = ROOT / "build" / "coverage"
REPORT = _FOLDER / "rtl.json"
_OPTIONS = (
    *("--coverage-line", "--coverage-toggle"),
    *("--output-split", "0", "-CFLAGS", "-O0"),  # compiling costs more than running
)
_LANE_FILE, _INSTANCE = "lane.v", "TOP.harness.adapter.lane"
_STIMULI = (
    "short corner, pauses",
    "corner, full rate",
    "many short, slow output",
    "few broken",
    "legal",
    "2**39 bytes, stream",
)
_EXPRESSION_NET = re.compile(r"  (?:wire|reg) (?:signed )?(?:\[\d+:0\] )?\\\$")
_SECONDS = 120


def named_only(files: Mapping[str, str]) -> tuple[str, int]:
    """Verilator's configuration that leaves the harness and nets without a name out.

    Nets without a name are those that the conversion to Verilog makes of parts of an expression,
    and calls ``$`` and a number. Also returns how many of them there are.
    """
    lines = ["`verilator_config"]
    lines += [f'coverage_off -file "{name}"' for name in files if name != _LANE_FILE]
    text, nets = files[_LANE_FILE].splitlines(), 0
    numbered = groupby(enumerate(text, 1), key=lambda row: bool(_EXPRESSION_NET.match(row[1])))
    for unnamed, group in numbered:
        numbers = [number for number, _ in group]
        if unnamed:
            nets += len(numbers)
            lines.append(f'coverage_off -file "{_LANE_FILE}" -lines {numbers[0]}-{numbers[-1]}')
    return "\n".join([*lines, ""]), nets


def measured(lane: Lane, folder: Path = _FOLDER) -> dict[str, Any]:
    """The row of the report on a lane.

    Raises
    ------
    NativeFailure
        If the build fails, or a stimulus finds fault with the lane.
    """
    component = lane.make(lane.parameters)
    verilog = cached_verilog(component, lane.name, flatten=False)
    files = harness_files(HARNESS, lane_files(lane, verilog, component))
    configuration, nets = named_only(files)
    program = build_native({"coverage.vlt": configuration, **files}, folder / lane.name, _OPTIONS)
    work = folder / lane.name / "run"
    cycles = _driven(lane, program, work)
    found = list(points(work / "coverage.dat", _LANE_FILE, verilog, _INSTANCE))
    kept, excluded, wrong = split(lane.name, found, exclusions())
    total, hit = (Counter(p.kind for p in kept if p.hits or not only) for only in (False, True))
    missed = [point for point in kept if not point.hits]
    return {
        "name": lane.name,
        "cycles": cycles,
        "kinds": {
            kind: {
                "points": total[kind],
                "hit": hit[kind],
                "percent": floor_percent(hit[kind], total[kind]),
            }
            for kind in KINDS
        },
        "nets_without_a_name": nets,
        "excluded": [
            {key: value for key, value in asdict(rule).items() if key != "lane"} | {"points": count}
            for rule, count in excluded
        ],
        "wrong_exclusions": wrong,
        "missed": [_place(point) for point in missed if point.kind != "toggle"],
        "missed_toggles": list(signals(point for point in missed if point.kind == "toggle")),
    }  # fmt: skip


def floor_percent(hit: int, total: int) -> float:
    """Tenths of a percent, never rounded up; 100 of no points."""
    return 1000 * hit // total / 10 if total else 100.0


def _place(point: Point) -> dict[str, Any]:
    return {key: value for key, value in asdict(point).items() if key != "hits"}


def _driven(lane: Lane, program: Path, work: Path) -> int:
    """Run the stimuli, which leave coverage.dat in ``work``; the cycles that they took."""
    work.mkdir(parents=True, exist_ok=True)
    cycles = 0
    with closing(Runner(program, _SECONDS)) as runner:
        for stimulus in stimuli(lane, DEFAULT_SEED):
            if stimulus.name not in _STIMULI:
                continue
            records = stimulus.records or lane.records(stimulus.tensors)
            for name, data in records.files().items():
                (work / name).write_bytes(data)
            found = runner.run(work, lane_plusargs(stimulus.stalls, stimulus.reset_at))
            if found is None:
                raise NativeFailure(f"{lane.name} died in {stimulus.name!r}")
            sent = stimulus.tensors, records, "verilator", stimulus.stalls, stimulus.reset_at
            if problems := judged(lane, found, *sent).problems:
                raise NativeFailure(f"{lane.name} fails {stimulus.name!r}: {problems[0]}")
            cycles += found.values["cycles"]
            if stimulus.name == _STIMULI[-1]:
                break
    return cycles


def shortfalls(row: Mapping[str, Any], least: Mapping[str, float]) -> Iterator[str]:
    """What is wrong with a row: percentages below ``least``, exclusions that were hit."""
    yield from row["wrong_exclusions"]
    for kind, percent in least.items():
        if row["kinds"][kind]["percent"] < percent:
            yield f"{row['name']}: {row['kinds'][kind]['percent']}% of {kind}, less than {percent}%"


def main() -> list[str]:
    """Measure both lanes and write the report; what is wrong, a line each."""
    rows = [measured(lane) for lane in LANES if lane.name != "pair"]
    document = {
        "format": "planezip-rtl-coverage",
        "version": 1,
        "planezip": metadata.version("planezip"),
        "amaranth": metadata.version("amaranth"),
        "yosys": metadata.version("pyosys"),
        "verilator": simulator_version("verilator"),
        "seed": DEFAULT_SEED,
        "stimuli": list(_STIMULI),
        "lanes": rows,
    }
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(document, indent=1) + "\n")
    least = json.loads(THRESHOLDS.read_text())["rtl"]
    for row in rows:
        for kind, found in row["kinds"].items():
            print(
                f"{row['name']}, {kind}: {found['hit']} of {found['points']}, {found['percent']}%"
            )
    return [problem for row in rows for problem in shortfalls(row, least[row["name"]])]
