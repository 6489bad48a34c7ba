"""Area and path of the decompressor's parse loop: ``python -m planezip.synth.parse_loop LIB...``

Synthesises the prototype of the loop (:class:`planezip.synth.prototype.ParseLoop`), prints the
longest path of each stage and writes build/synth/parse_loop.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planezip.synth.flow import Constraint, map_rtlil, rtlil_text
from planezip.synth.library import Library, SynthError, read_libraries
from planezip.synth.prototype import ParseLoop
from planezip.synth.timing import end_points, opensta

__all__ = ["SRAM_CLOCK_TO_OUT", "SRAM_SET_UP", "main", "stage_of"]

SRAM_CLOCK_TO_OUT = 250 / 667  # of a period
SRAM_SET_UP = 50 / 667
_PERIOD_PS = {"asap7sc7p5t": 667.0, "NangateOpenCellLibrary": 1500.0}
_OTHER_PERIOD_PS = 3000.0

# Stage of a register or port, by the beginning of its name.
_STAGES = {
    "1 start of the block, SRAM address": ("rows", "position", "start_"),
    "2 SRAM out, window, tag": ("window_",),
    "3 skip of mask or base, ones of the mask": ("skip_", "tag"),
    "3-7 into the code parser, parsing": ("parser.", "valid", "classes"),
    "4-7 plane width, lengths of the earlier planes": ("total_",),
    "8 length of the last planes": ("payload_",),
    "8 end of the codes": ("end_",),
}


@dataclass(frozen=True)
class _Row:
    """A row of the report: see docs/hardware.md."""

    module: str
    library: str
    corner: str
    constraint_ps: float
    path_ps: float
    area_um2: float
    kge: float
    flip_flops: int
    timing_method: str
    stages: dict[str, float]


def stage_of(name: str) -> str:
    """Stage of the loop that ends at a register or port."""
    for stage, names in _STAGES.items():
        if name.startswith(names):
            return stage
    return "other"


def _measure(library: Library, period_ps: float, folder: Path) -> _Row:
    constraint = Constraint(
        period_ps,
        input_ps={"data": SRAM_CLOCK_TO_OUT * period_ps},
        output_ps={"rows": SRAM_SET_UP * period_ps},
    )
    text = rtlil_text(ParseLoop(), "parse_loop")
    netlist = map_rtlil(text, "parse_loop", library, constraint, folder, "speed", True)
    stages: dict[str, float] = {}
    if opensta():
        for point in end_points(netlist, library, constraint):
            stages.setdefault(stage_of(point.name), round(point.path_ps, 1))
        method, path_ps = "OpenSTA", max(stages.values())
    else:
        method, path_ps = "ABC stime, without flip-flops and port delays", netlist.abc_ps
    return _Row(
        netlist.module,
        library.name,
        library.corner,
        period_ps,
        round(path_ps, 1),
        round(netlist.area_um2, 1),
        round(netlist.area_um2 / library.nand2_um2 / 1000, 2),
        netlist.flip_flops,
        method,
        stages,
    )


def _table(row: _Row, uncertainty_ps: float) -> str:
    limit = row.constraint_ps - uncertainty_ps
    verdict = "met" if row.path_ps <= limit else "not met"
    lines = [
        f"{row.module} in {row.library} ({row.corner}): {row.area_um2:.0f} um2, {row.kge:.1f} kGE,"
        f" {row.flip_flops} flip-flops",
        f"  path {row.path_ps:.0f} ps of {limit:.0f} ps (clock {row.constraint_ps:.0f} ps,"
        f" uncertainty {uncertainty_ps:.0f} ps): {verdict} [{row.timing_method}]",
        *(f"    {path:7.0f} ps  {stage}" for stage, path in sorted(row.stages.items())),
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for an input or tool that cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m planezip.synth.parse_loop", description=__doc__.splitlines()[2]
    )
    parser.add_argument("library", nargs="*", type=Path, help=".lib or .lib.gz; ASAP7: all five")
    parser.add_argument("--liberty", action="append", default=[], type=Path, help="the same")
    parser.add_argument("--period-ps", type=float, help="clock period (667 for ASAP7)")
    parser.add_argument("--output", type=Path, default=Path("build/synth/parse_loop.json"))
    arguments = parser.parse_args(argv)
    files = [*arguments.library, *arguments.liberty]
    if not files:
        parser.error("give at least one Liberty file, such as NangateOpenCellLibrary_typical.lib")
    if arguments.period_ps is not None and not 100 < arguments.period_ps < 1e6:
        parser.error(f"--period-ps must be from 100 to 1e6, not {arguments.period_ps:g}")
    folder = arguments.output.parent / "work"
    rows: list[dict[str, Any]] = []
    try:
        for library in read_libraries(files, folder):
            period_ps = arguments.period_ps or _PERIOD_PS.get(library.name, _OTHER_PERIOD_PS)
            print(f"mapping the parse loop to {library.name} ...", file=sys.stderr, flush=True)
            row = _measure(library, period_ps, folder)
            print(_table(row, Constraint(period_ps).uncertainty_ps))
            rows.append(vars(row))
        report = {"version": 1, "uncertainty_ps": Constraint(1).uncertainty_ps, "modules": rows}
        arguments.output.write_text(json.dumps(report, indent=1) + "\n")
    except (SynthError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"written: {arguments.output}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
