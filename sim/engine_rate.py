"""Engine throughput: a number, or what simulation and synthesis of the RTL reported.

``source = "rtl"`` takes the cycles per block from ``build/sim/report.json`` and the
clock (uncertainty included, without wires) from ``build/synth/report.json``, both below
the current folder. Where one is missing, the snapshot of both in ``data/rtl.json`` stands
in for both (``python -m planezip.sim.engine_rate`` writes it).
"""

from __future__ import annotations

import json
import sys
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

    ``millicycles_per_block`` per lane is the worst mean over the runs that the other side
    never stalls, times 1000; ``clocks`` has the clock in kHz, rounded down, per lane, library
    and corner, the slowest where there are several.

    Raises
    ------
    ValueError
        If a report is not what ``make sim`` and ``make synth`` write.
    """
    cycles: dict[str, int] = {}
    clocks: dict[tuple[str, str, str], int] = {}
    try:
        for run in json.loads((build / "sim" / "report.json").read_text("utf-8"))["runs"]:
            lane = run["component"]
            if lane in _LANES and run["stalls"] == "none" and run["blocks"]:
                cycles[lane] = max(cycles.get(lane, 0), -(-1000 * run["cycles"] // run["blocks"]))
        for m in json.loads((build / "synth" / "report.json").read_text("utf-8"))["modules"]:
            key = (m["library"], m["corner"], m["name"])
            if m["name"] in _LANES:
                khz = int(m["clock_ghz"] * 10**6)
                clocks[key] = min(clocks.get(key, khz), khz)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{build}: the reports cannot be used ({type(error).__name__} {error}); "
            "run make sim and make synth"
        ) from error
    return {
        "format": "planezip-rtl",
        "version": 1,
        "millicycles_per_block": dict(sorted(cycles.items())),
        "clocks": [
            {"lane": lane, "library": library, "corner": corner, "khz": khz}
            for (library, corner, lane), khz in sorted(clocks.items())
        ],
    }


def rtl_rate_bytes_per_s(figures: dict[str, Any], library: str, corner: str, lanes: int) -> int:
    """Raw bytes per second of ``lanes`` lanes, the slower direction at one clock."""
    clocks = {
        c["lane"]: c["khz"]
        for c in figures["clocks"]
        if (c["library"], c["corner"]) == (library, corner)
    }
    known = sorted({f"{c['library']!r} {c['corner']!r}" for c in figures["clocks"]})
    if set(clocks) != set(_LANES) or set(figures["millicycles_per_block"]) != set(_LANES):
        raise ValueError(
            f"the reports have no figures of both lanes for library {library!r}, corner "
            f"{corner!r}; they have: {', '.join(known) or 'none'} (run make sim and make synth "
            "LIBERTY=file)"
        )
    worst = max(figures["millicycles_per_block"].values())
    return int(lanes * BLOCK_BYTES * min(clocks.values()) * 10**6 // worst)


def main() -> int:
    """Write the snapshot from the reports of this build."""
    try:
        figures = read_reports(Path("build"))
    except ValueError as error:
        print(f"planezip: {error}", file=sys.stderr)
        return 2
    _SNAPSHOT.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
