"""Engine throughput: a number, or what simulation and synthesis of the RTL reported.

``source = "rtl"`` takes the cycles per block from ``build/sim/report.json`` and the
critical path from ``build/synth/report.json``, both below the current folder. Where
one is missing, the snapshot of both in ``data/rtl.json`` stands in for both
(``python -m planezip.sim.engine_rate`` writes it).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Engine", "engine_rate", "read_reports", "rtl_rate_bytes_per_s"]

BLOCK_BYTES = 128
_SNAPSHOT = Path(__file__).parent / "data" / "rtl.json"
_LANES = ("compressor", "decompressor")


@dataclass(frozen=True)
class Engine:
    """Throughput per direction.

    Parameters
    ----------
    bytes_per_s : int
        Raw bytes; 0 is no engine.
    source : str
        Where the figure comes from, for reports.
    """

    bytes_per_s: int = 64_000_000_000
    source: str = "paper, Table II"

    def __post_init__(self) -> None:
        if self.bytes_per_s < 0:
            raise ValueError(f"engine bytes_per_s must not be negative, not {self.bytes_per_s!r}")


def engine_rate(table: dict[str, Any]) -> Engine:
    """Engine from the ``[engine]`` table of a platform.

    Parameters
    ----------
    table : dict
        ``{source = "fixed", bytes_per_s}`` or ``{source = "rtl", library, corner, lanes}``.

    Raises
    ------
    ValueError
        If the table is not one of the two, or the reports lack the library.
    """
    if not isinstance(table, dict):
        raise ValueError(f"engine must be a table, not {table!r:.40}")
    allowed = {
        "fixed": {"source", "bytes_per_s"},
        "rtl": {"source", "library", "corner", "lanes"},
    }
    source = table.get("source", "fixed")
    if source not in allowed:
        raise ValueError(f'engine.source must be "fixed" or "rtl", not {source!r}')
    if unknown := sorted(set(table) - allowed[source]):
        raise ValueError(f"engine: unknown key {unknown[0]!r} with source {source!r}")
    if source == "fixed":
        rate = table.get("bytes_per_s", Engine.bytes_per_s)
        if type(rate) not in (int, float) or rate != int(rate):
            raise ValueError(f"engine.bytes_per_s must be an integer, not {rate!r:.40}")
        return Engine(int(rate))
    lanes = table.get("lanes", 2)
    if type(lanes) is not int or lanes < 1:
        raise ValueError(f"engine.lanes must be a positive integer, not {lanes!r:.40}")
    build = Path("build")
    built = [build / part / "report.json" for part in ("sim", "synth")]
    where = "build" if all(path.is_file() for path in built) else "snapshot"
    figures = read_reports(build) if where == "build" else json.loads(_SNAPSHOT.read_text("utf-8"))
    library, corner = str(table.get("library", "")), str(table.get("corner", ""))
    rate = rtl_rate_bytes_per_s(figures, library, corner, lanes)
    return Engine(rate, f"RTL ({where}), {library} {corner}, {lanes} lanes")


def read_reports(build: Path) -> dict[str, Any]:
    """Figures of both lanes from the reports below ``build``.

    ``millicycles_per_block`` per lane is the worst mean over its runs, times 1000;
    ``paths`` lists the critical path in ps per lane, library and corner.
    """
    runs = json.loads((build / "sim" / "report.json").read_text("utf-8"))["runs"]
    modules = json.loads((build / "synth" / "report.json").read_text("utf-8"))["modules"]
    cycles: dict[str, int] = {}
    for run in runs:
        lane = str(run["component"]).lower()
        if lane in _LANES and run["blocks"]:
            cycles[lane] = max(cycles.get(lane, 0), -(-1000 * run["cycles"] // run["blocks"]))
    paths = [
        {
            "lane": m["name"],
            "library": m["library"],
            "corner": m["corner"],
            "ps": m["path_ps"],
        }
        for m in modules
        if m["name"] in _LANES
    ]
    return {
        "format": "planezip-rtl",
        "version": 1,
        "millicycles_per_block": dict(sorted(cycles.items())),
        "paths": sorted(paths, key=lambda p: (p["library"], p["corner"], p["lane"])),
    }


def rtl_rate_bytes_per_s(figures: dict[str, Any], library: str, corner: str, lanes: int) -> int:
    """Raw bytes per second of ``lanes`` lanes, the slower direction at one clock."""
    paths = {
        p["lane"]: p["ps"]
        for p in figures["paths"]
        if (p["library"], p["corner"]) == (library, corner)
    }
    known = sorted({f"{p['library']} {p['corner']}" for p in figures["paths"]})
    if set(paths) != set(_LANES) or set(figures["millicycles_per_block"]) != set(_LANES):
        raise ValueError(
            f"the reports have no figures of both lanes for library {library!r}, corner "
            f"{corner!r}; they have: {', '.join(known) or 'none'} (run make sim and make synth)"
        )
    period_ps = max(paths.values())
    worst = max(figures["millicycles_per_block"].values())
    return int(lanes * BLOCK_BYTES * 1000 * 10**12 // (worst * period_ps))


def main() -> None:
    """Write the snapshot from the reports of this build."""
    text = json.dumps(read_reports(Path("build")), indent=1)
    _SNAPSHOT.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
