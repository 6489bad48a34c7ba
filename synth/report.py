"""build/synth/report.json and the table that is printed (docs/synth.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from planezip.synth.flow import CLOCK_GATE_BITS, SRAM_BITS, Constraint
from planezip.synth.library import Library
from planezip.synth.measure import Row
from planezip.synth.modules import LANES
from planezip.synth.nodes import Node
from planezip.synth.timing import opensta_version

__all__ = ["PUBLISHED", "SCHEMA", "document", "lane_totals", "table", "write"]


SCHEMA = Path(__file__).parent / "schemas" / "report.json"

PUBLISHED: dict[str, Any] = {
    "planezip_lane_um2_at_40_nm": 144_000,
    "planezip_clock_ghz": 1.5,
    "planezip_four_lanes_mm2_at_7_nm": 0.036,
    "planezip_share_of_die": 0.00004,
    "die_mm2": 826,
    "planezip_watts_below": 0.1,
    "planezip_source": "PlaneZip paper, section III-D (estimates)",
    "bpc_compressor_um2_at_40_nm": 48_000,
    "bpc_clock_ghz": 0.8,
    "bpc_source": "Kim et al., Bit-Plane Compression, ISCA 2016, as quoted in the PlaneZip paper",
}
"""What the paper says, to be printed beside our figures."""

_LANES_AT = 4  # two of each direction, as the paper counts


def document(
    rows: Sequence[Row], libraries: Sequence[tuple[Library, Node, Constraint]]
) -> dict[str, Any]:
    """The report; its schema is schemas/report.json."""
    return {
        "schema": "planezip.synth/1",
        "planezip": metadata.version("planezip"),
        "tools": {"yosys": metadata.version("pyosys"), "opensta": opensta_version() or None},
        "placement": "none: no placement, no clock tree, an ideal clock",
        "memories": f"below {SRAM_BITS} bits flip-flops, above SRAM macros",
        "clock_gate_bits": CLOCK_GATE_BITS,
        "libraries": [_library(*entry) for entry in libraries],
        "published": PUBLISHED,
        "modules": [asdict(row) for row in rows],
        "four_lanes": lane_totals(rows),
    }


def _library(library: Library, node: Node, constraint: Constraint) -> dict[str, Any]:
    return {
        "library": library.name,
        "corner": library.corner,
        "sha256": library.digest,
        "node_nm": node.nm,
        "nand2_um2": library.nand2_um2,
        "sram_um2_per_bit": node.sram_um2_per_bit,
        "sram_source": node.sram_source,
        "wire_ff_per_um": node.wire.ff_per_um,
        "wire_ohm_per_um": node.wire.ohm_per_um,
        "constraint": asdict(constraint),
    }


def lane_totals(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Two compressor and two decompressor lanes per library, as the paper counts them."""
    totals = []
    for library in dict.fromkeys((row.library, row.corner) for row in rows):
        lanes = [r for r in rows if (r.library, r.corner) == library and r.name in LANES]
        if {row.name for row in lanes} != set(LANES):
            continue
        pairs = _LANES_AT // len(LANES)
        logic = pairs * sum(row.area_um2 for row in lanes) / 1e6
        total = pairs * sum(row.total_um2 for row in lanes) / 1e6
        ghz = min(row.clock_ghz for row in lanes)
        power = [row.power_mw and row.power_mw * ghz / row.clock_ghz for row in lanes]
        totals.append(
            {
                "library": library[0],
                "corner": library[1],
                "logic_mm2": round(logic, 5),
                "total_mm2": round(total, 5),
                "share_of_die": total / PUBLISHED["die_mm2"],
                "gb_per_s_per_direction": round(pairs * 32 * ghz, 2),
                "power_mw": None
                if None in power
                else round(pairs * sum(mw for mw in power if mw is not None), 2),
            }
        )
    return totals


def write(report: dict[str, Any], path: Path) -> None:
    """Write the report; the file is there as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(report, indent=1) + "\n")
    scratch.replace(path)


_COLUMNS = ("module", "um2", "kGE", "FF", "SRAM bits", "with SRAM", "path ps", "wired ps", "GB/s")


def table(rows: Sequence[Row]) -> str:
    """Text table, a library after the other, with the longest path of each module."""
    lines: list[str] = []
    for key in dict.fromkeys((r.library, r.corner, r.constraint_ps, r.timing_method) for r in rows):
        library, corner, period, method = key
        lines += ["", f"{library}, {corner}, clock {period:g} ps, {method}", _line(_COLUMNS)]
        for r in rows:
            if (r.library, r.corner, r.constraint_ps, r.timing_method) == key:
                wired = "-" if r.path_with_wires_ps is None else f"{r.path_with_wires_ps:.0f}"
                mark = "" if r.met else "*"
                rate = "" if r.gb_per_s is None else f"{r.gb_per_s:.1f}"
                cells = (r.name, f"{r.area_um2:,.0f}", f"{r.kge:.1f}", r.flip_flops, r.sram_bits)
                more = (f"{r.total_um2:,.0f}", f"{r.path_ps:.0f}{mark}", wired, rate)
                lines.append(_line([*map(str, cells), *more]) + f"  {r.path_start} -> {r.path_end}")
    for total in lane_totals(rows):
        lines += [
            "",
            f"four lanes, {total['library']}: {total['logic_mm2']:.4f} mm2 of logic,"
            f" {total['total_mm2']:.4f} mm2 with SRAM"
            f" ({100 * total['share_of_die']:.4f}% of an {PUBLISHED['die_mm2']} mm2 die),"
            f" {total['gb_per_s_per_direction']:g} GB/s per direction"
            + ("" if total["power_mw"] is None else f", {total['power_mw']:g} mW"),
        ]
    lines += [
        "",
        "paper (estimate): 144,000 um2 per lane at 40 nm, 1.5 GHz, four lanes 0.036 mm2 at 7 nm,",
        "0.004% of an 826 mm2 die, well under 0.1 W; BPC's compressor 48,000 um2 at 40 nm, 0.8 GHz",
        "* misses its clock less the uncertainty. No placement, no clock tree.",
    ]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    widths = (21, 9, 7, 6, 9, 9, 8, 8, 6)
    first = f"{cells[0]:<{widths[0]}}"
    return first + "".join(f" {c:>{w}}" for c, w in zip(cells[1:], widths[1:], strict=True))
