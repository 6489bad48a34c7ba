"""Tables of docs/synth.md from build/synth: ``python -m planezip.synth.docs [REPORT...]``.

The rows of several reports are put together; the default is report.json alone. Replaces what
stands between ``<!-- NAME -->`` and ``<!-- end -->``, for the names below; plots of the sweep come
with it.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planezip.synth.modules import LANES

__all__ = ["main", "replaced", "tables", "together"]

PAGE = Path("docs") / "synth.md"
_REPORT = Path("build") / "synth" / "report.json"
_SWEEP = Path("build") / "synth" / "sweep.csv"
_FPGA = Path("build") / "synth" / "fpga.json"
_SHIPPED, _NEAREST = "planezip45", "NangateOpenCellLibrary"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    right = ["---" if k == 0 else "---:" for k in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, right, *rows))


def _number(value: float | None, places: int = 0) -> str:
    return "-" if value is None else f"{value:,.{places}f}"


def _lanes(report: Mapping[str, Any]) -> str:
    lines = {
        "constraint, ps": lambda r: _number(r["constraint_ps"]),
        "mapped for": lambda r: r["mapping"],
        "area without SRAM, um2": lambda r: _number(r["area_um2"]),
        "kGE": lambda r: _number(r["kge"], 1),
        "flip-flops": lambda r: _number(r["flip_flops"]),
        "clock gates": lambda r: _number(r["clock_gates"]),
        "SRAM, bits": lambda r: _number(r["sram_bits"]),
        "SRAM, um2": lambda r: _number(r["sram_um2"]),
        "total with SRAM, um2": lambda r: _number(r["total_um2"]),
        "longest path, ps": lambda r: _number(r["path_ps"]) + ("" if r["met"] else " (not met)"),
        "with wires, ps": lambda r: _number(r["path_with_wires_ps"]),
        "clock, GHz": lambda r: _number(r["clock_ghz"], 3),
        "with wires, GHz": lambda r: _number(r["clock_with_wires_ghz"], 3),
        "GB/s": lambda r: _number(r["gb_per_s"], 1),
        "GB/s per mm2, with SRAM": lambda r: _number(r["gb_per_s_per_mm2"]),
        "kGE per bit/cycle": lambda r: _number(r["kge_per_bit_per_cycle"], 3),
        "power without SRAM, mW": lambda r: _number(r["power_mw"], 2),
    }
    parts = []
    for lane in LANES:
        rows = [row for row in report["modules"] if row["name"] == lane]
        head = [lane, *(f"{row['library']}, {row['corner']}" for row in rows)]
        parts.append(_table(head, [[name, *map(cell, rows)] for name, cell in lines.items()]))
    return "\n\n".join(parts)


def _four(report: Mapping[str, Any]) -> str:
    paper = report["published"]
    rows = [
        [
            f"{four['library']}, {four['corner']}",
            _number(four["logic_mm2"], 4),
            _number(four["total_mm2"], 4),
            f"{100 * four['share_of_die']:.4f}%",
            _number(four["gb_per_s_per_direction"], 1),
            _number(four["power_mw"], 1),
        ]
        for four in report["four_lanes"]
    ]
    rows.append(
        [
            "paper, estimate at 7 nm",
            "-",
            _number(paper["planezip_four_lanes_mm2_at_7_nm"], 3),
            f"{100 * paper['planezip_share_of_die']:.3f}%",
            "96.0",
            f"below {1000 * paper['planezip_watts_below']:.0f}",
        ]
    )
    head = ["four lanes", "logic, mm2", "with SRAM, mm2", "of 826 mm2", "GB/s a direction", "mW"]
    return _table(head, rows)


def _engine(report: Mapping[str, Any]) -> str:
    rows = []
    for row in report["modules"]:
        if not row["parts"]:
            continue
        inside = ", ".join(f"{n} {name}" for name, n in row["parts"].items())
        rows.append([f"{row['name']}, {row['library']}", inside, _number(row["own_um2"])])
        rows[-1] += [_number(row[k]) for k in ("area_um2", "flip_flops", "sram_bits", "total_um2")]
        rows[-1] += [_number(row["path_ps"]) + ("" if row["met"] else " (not met)")]
        rows[-1] += [_number(row["path_with_wires_ps"]), _number(row["gb_per_s"], 1)]
        rows[-1] += [f"`{row['path_start']}` to `{row['path_end']}`"]
    head = ["engine", "parts", "own logic, um2", "with parts, um2", "flip-flops", "SRAM, bits"]
    head += ["with SRAM, um2", "path, ps", "with wires, ps", "GB/s each way", "from, to"]
    return _table(head, rows)


def _paths(report: Mapping[str, Any]) -> str:
    rows = [
        [
            f"{row['name']}, {row['library']}",
            f"{row['path_ps']:.0f}",
            f"`{row['path_start']}`",
            f"`{row['path_end']}`",
            row["timing_method"],
        ]
        for row in report["modules"]
        if row["name"] in LANES
    ]
    return _table(["lane", "ps", "from", "to", "timing"], rows)


def _parts(report: Mapping[str, Any]) -> str:
    libraries = list(dict.fromkeys(row["library"] for row in report["modules"]))
    names = list(dict.fromkeys(row["name"] for row in report["modules"] if not row["parts"]))
    found = {(row["name"], row["library"]): row for row in report["modules"]}
    head = ["module", "flip-flops", "SRAM bits"]
    head += [f"{library} {what}" for library in libraries for what in ("um2", "ps")]
    rows = []
    for name in names:
        some = next(found[name, library] for library in libraries if (name, library) in found)
        cells = [name, _number(some["flip_flops"]), _number(some["sram_bits"])]
        for library in libraries:
            row = found.get((name, library))
            cells += ["-", "-"] if row is None else [f"{row[k]:,.0f}" for k in _METRICS]
        rows.append(cells)
    return _table(head, rows)


_METRICS = ("area_um2", "path_ps")


def _distance(report: Mapping[str, Any]) -> str:
    found = {(row["name"], row["library"]): row for row in report["modules"]}
    rows = []
    for name in dict.fromkeys(row["name"] for row in report["modules"]):
        ours, theirs = found.get((name, _SHIPPED)), found.get((name, _NEAREST))
        if ours is not None and theirs is not None:
            off = [100 * (ours[k] / theirs[k] - 1) for k in _METRICS]
            rows.append([name, *(f"{ours[k]:,.0f}" for k in _METRICS)])
            rows[-1] += [*(f"{theirs[k]:,.0f}" for k in _METRICS), *(f"{k:+.1f}%" for k in off)]
    head = ["module", "shipped um2", "ps", "Nangate45 um2", "ps", "area", "path"]
    return _table(head, rows)


def _libraries(report: Mapping[str, Any]) -> str:
    rows = [
        [
            f"{each['library']}, {each['corner']}",
            f"{each['constraint']['period_ps']:g}",
            f"{each['nand2_um2']:g}",
            f"{each['sram_um2_per_bit']:g}",
            each["sram_source"],
            f"{each['constraint']['sram_out_ps']:g}",
            f"{each['constraint']['sram_set_up_ps']:g}",
            f"{each['wire_ff_per_um']:g}",
            f"{each['wire_ohm_per_um']:g}",
        ]
        for each in report["libraries"]
    ]
    head = ["library", "clock, ps", "NAND2, um2", "SRAM, um2 per bit", "where from"]
    head += ["SRAM out, ps", "SRAM set-up, ps", "wire, fF/um", "ohm/um"]
    return _table(head, rows)


def _sweep(lines: Sequence[Mapping[str, str]]) -> str:
    head = ["variant", "library", "compressor, um2", "decompressor, um2", "area saved"]
    head += ["path, ps", "BF16 ratio", "FP32 ratio", "ratio lost"]
    rows = [
        [
            line["variant"],
            line["library"],
            f"{float(line['compressor_um2']):,.0f}",
            f"{float(line['decompressor_um2']):,.0f}",
            f"{line['area_saved_percent']}%",
            f"{float(line['path_ps']):.0f}",
            f"{float(line['ratio_bfloat16']):.3f}",
            f"{float(line['ratio_float32']):.3f}",
            f"{line['ratio_lost_percent']}%",
        ]
        for line in lines
        if line["lanes"] == "1"
    ]
    return _table(head, rows)


_OF_REPORT: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "lanes": _lanes,
    "four": _four,
    "engine": _engine,
    "paths": _paths,
    "parts": _parts,
    "distance": _distance,
    "libraries": _libraries,
}


def _fpga(report: Mapping[str, Any]) -> str:
    kinds = {"lut": "LUT", "lut_ram": "RAM in LUTs", "carry": "carry chains", "ff": "flip-flops"}
    kinds |= {"bram_18k": "RAM blocks of 18 kbit"}
    parts = [(name, row) for name, row in report["modules"].items()]
    parts += [(f"{name}, with all instances", row) for name, row in report["whole"].items()]
    rows = [[name, *(_number(row[kind]) for kind in kinds)] for name, row in parts]
    return _table([f"{report['family']}, {report['lanes']} lanes", *kinds.values()], rows)


def tables(
    report: Mapping[str, Any],
    sweep: Sequence[Mapping[str, str]] | None,
    fpga: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Markdown tables by name; those of what is None are left out."""
    found = {name: make(report) for name, make in _OF_REPORT.items()}
    found |= {} if sweep is None else {"sweep": _sweep(sweep)}
    return found | ({} if fpga is None else {"fpga": _fpga(fpga)})


def replaced(page: str, found: Mapping[str, str]) -> str:
    """The page with the tables of ``found`` in their places."""
    for name, text in found.items():
        place = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", page, re.S)
        if place is not None:
            page = f"{page[: place.start(1)]}{text}\n{page[place.end(1) :]}"
    return page


def together(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One report with the rows of all; the first one that has a row, library or total counts."""
    whole = dict(reports[0])
    keys = {
        "modules": ("name", "library", "corner"),
        "libraries": ("library", "corner"),
        "four_lanes": ("library", "corner"),
    }
    for part, names in keys.items():
        found: dict[tuple[Any, ...], Any] = {}
        for report in reports:
            for entry in report[part]:
                found.setdefault(tuple(entry[name] for name in names), entry)
        whole[part] = list(found.values())
    return whole


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page; 2 without a report."""
    paths = [Path(name) for name in (sys.argv[1:] if argv is None else argv)] or [_REPORT]
    if missing := [path for path in paths if not path.exists()]:
        print(f"error: {missing[0]} is missing: run make synth", file=sys.stderr)
        return 2
    lines = None
    if _SWEEP.exists():
        with _SWEEP.open(newline="") as file:
            lines = list(csv.DictReader(file))
    fpga = json.loads(_FPGA.read_text()) if _FPGA.exists() else None
    found = tables(together([json.loads(path.read_text()) for path in paths]), lines, fpga)
    PAGE.write_text(replaced(PAGE.read_text(), found))
    print(f"written: {PAGE}")
    for plot in sorted(_SWEEP.parent.glob("sweep_*.svg")):
        print(f"written: {shutil.copy(plot, PAGE.parent)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
