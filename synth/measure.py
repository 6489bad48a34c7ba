"""One row of the report: a module in a library at one constraint, cached."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from planezip.model.format import DEFAULT
from planezip.synth.activity import METHOD
from planezip.synth.engine import ENGINES, counts, linked, shells
from planezip.synth.flow import SCRIPTS, Constraint, Netlist, map_rtlil
from planezip.synth.library import Library
from planezip.synth.modules import LANES, RAW_BITS
from planezip.synth.nodes import Node
from planezip.synth.timing import opensta, opensta_version, time_netlist

__all__ = ["Row", "measure", "measure_engine"]

Activities = Mapping[str, tuple[float, float]]

_MAPPED_BY = ("flow.py", "library.py", "yosys.py")
_SOURCES = (
    "activity.py",
    "engine.py",
    "flow.py",
    "library.py",
    "measure.py",
    "nodes.py",
    "timing.py",
    "yosys.py",
)
_STA = "OpenSTA"
_ABC = "ABC stime: logic only, without flip-flops and port delays"


_LOCK = threading.Lock()
_MAPPING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@dataclass(frozen=True)
class Row:
    """A module's figures, all from one netlist at one constraint.

    ``parts``: instances of other rows' modules in it, and ``own_um2`` its area without them.
    """

    name: str
    library: str
    corner: str
    node_nm: int
    constraint_ps: float
    mapping: str
    area_um2: float
    kge: float
    flip_flops: int
    clock_gates: int
    cells: int
    sram_bits: int
    sram_um2: float
    total_um2: float
    path_ps: float
    path_start: str
    path_end: str
    path_with_wires_ps: float | None
    abc_ps: float
    met: bool
    timing_method: str
    clock_ghz: float
    clock_with_wires_ghz: float | None
    gb_per_s: float | None
    gb_per_s_per_mm2: float | None
    kge_per_bit_per_cycle: float | None
    power_mw: float | None
    power_method: str | None
    own_um2: float
    parts: dict[str, int]


def measure(
    name: str,
    text: str,
    library: Library,
    node: Node,
    constraint: Constraint,
    folder: Path,
    activities: Callable[[], Activities] | None = None,
    mappings: Sequence[str] = tuple(SCRIPTS),
) -> tuple[Row, bool]:
    """The row of the module ``name`` with the RTLIL ``text``, and whether it was cached.

    The cache, ``folder``/cache, is keyed by the RTL, the library, the constraint and the
    tools (this flow's own text included). ``activities`` gives those of :mod:`activity`
    if power is wanted and the library and the tools can tell it.

    The module is mapped by the ``mappings`` in turn, for area and, if that misses the clock, for
    speed. The row is of the first netlist that meets the clock, or of the faster one.
    """
    if not library.power or not opensta():
        activities = None
    found = None if activities is None else activities()
    key = _key(name, text, library, constraint, found, mappings)
    path = folder / "cache" / f"{name}-{key[:32]}.json"
    if (kept := _kept(path)) is not None:
        return kept, True

    def row(mapping: str) -> Row:
        netlist = _mapped(name, text, library, constraint, folder, mapping)
        return _row(netlist, mapping, library, node, constraint, found, int(name in LANES))

    return _best(path, mappings, row), False


def measure_engine(
    name: str,
    texts: Sequence[str],
    library: Library,
    node: Node,
    constraint: Constraint,
    folder: Path,
    mappings: Sequence[str] = tuple(SCRIPTS),
) -> tuple[Row, bool]:
    """The row of the engine ``name`` with the RTLIL ``texts`` of its levels: see :data:`ENGINES`.

    Cached as in :func:`measure`.
    """
    lanes, levels = ENGINES[name]
    key = _key(name, list(texts), library, constraint, None, mappings)
    path = folder / "cache" / f"{name}-{key[:32]}.json"
    if (kept := _kept(path)) is not None:
        return kept, True
    number, boxes = counts(levels, texts), shells(levels[:-1], DEFAULT)

    def row(mapping: str) -> Row:
        netlists = [
            _mapped(
                level.row, text, library, constraint, folder, mapping,
                boxes if level.row not in LANES else "",
            )
            for level, text in zip(levels, texts, strict=True)
        ]  # fmt: skip
        work = folder / "work" / f"{name}-{key[:12]}" / mapping
        whole = linked(netlists, levels, number, DEFAULT, work)
        made = _row(whole, mapping, library, node, constraint, None, lanes)
        parts = {level.row: number[level.row] for level in levels[:-1]}
        return replace(made, own_um2=round(netlists[-1].area_um2, 2), parts=parts)

    return _best(path, mappings, row), False


def _kept(path: Path) -> Row | None:
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    return Row(**kept) if kept.keys() == {f.name for f in fields(Row)} else None


def _best(path: Path, mappings: Sequence[str], make: Callable[[str], Row]) -> Row:
    """The row that counts, written to ``path``."""
    rows: list[Row] = []
    for mapping in mappings:
        rows.append(make(mapping))
        if rows[-1].met:
            break
    row = next((row for row in rows if row.met), min(rows, key=lambda row: row.path_ps))
    _write(path, asdict(row))
    return row


def _write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(document, indent=1, default=str) + "\n")
    scratch.replace(path)


def _mapped(
    name: str,
    text: str,
    library: Library,
    constraint: Constraint,
    folder: Path,
    mapping: str,
    boxes: str = "",
) -> Netlist:
    """The netlist, of an earlier run if nothing has changed since."""
    key = _digest(
        name, text, library.digest, asdict(constraint), mapping, boxes, *_texts(_MAPPED_BY)
    )
    with _LOCK:
        lock = _MAPPING[key]
    work = folder / "work" / f"{name}-{key[:12]}" / mapping
    path = work / "netlist.json"
    with lock:  # a lane and the engine around it may ask for the same netlist
        if path.exists():
            kept = json.loads(path.read_text())
            kept |= {"verilog": Path(kept["verilog"]), "liberty": tuple(map(Path, kept["liberty"]))}
            if all(file.exists() for file in (kept["verilog"], *kept["liberty"])):
                return Netlist(**kept)
        netlist = map_rtlil(text, name, library, constraint, work, mapping, boxes=boxes)
        _write(path, asdict(netlist))
        return netlist


def _key(
    name: str,
    text: Any,
    library: Library,
    constraint: Constraint,
    activities: Activities | None,
    mappings: Sequence[str],
) -> str:
    parts = [name, text, library.digest, asdict(constraint), activities, list(mappings)]
    return _digest(*parts, opensta_version(), *_texts(_SOURCES))


def _texts(names: Sequence[str]) -> list[str]:
    return [(Path(__file__).parent / name).read_text() for name in names]


def _digest(*parts: Any) -> str:
    known = [*parts, metadata.version("pyosys")]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def _row(
    netlist: Netlist,
    mapping: str,
    library: Library,
    node: Node,
    constraint: Constraint,
    activities: Activities | None,
    lanes: int,
) -> Row:
    wired: float | None = None
    watts: float | None = None
    power_method: str | None = None
    if opensta():
        timing = time_netlist(netlist, library, constraint, node.wire, activities)
        path_ps, start, end = timing.path_ps, timing.start, timing.end
        wired, watts, method = timing.wired_ps, timing.watts, f"{_STA} {opensta_version()}"
        met, period_ps = path_ps <= constraint.limit_ps, constraint.possible_ps(path_ps)
        if watts is not None:
            power_method = f"{METHOD} ({timing.annotated} of {netlist.flip_flops} registers)"
    else:
        path_ps, start, end, method = netlist.abc_ps, netlist.abc_start, netlist.abc_end, _ABC
        period_ps = max(constraint.period_ps, path_ps / constraint.logic_share)
        met = period_ps == constraint.period_ps
    area, sram = netlist.area_um2, netlist.sram_bits * node.sram_um2_per_bit
    ghz = 1000 / period_ps
    wired_ghz = None if wired is None else round(1000 / constraint.possible_ps(wired), 4)
    rate = lanes * RAW_BITS / 8 * ghz if lanes else None
    kge = area / library.nand2_um2 / 1000
    return Row(
        name=netlist.module,
        library=library.name,
        corner=library.corner,
        node_nm=node.nm,
        constraint_ps=constraint.period_ps,
        mapping=mapping,
        area_um2=round(area, 2),
        kge=round(kge, 3),
        flip_flops=netlist.flip_flops,
        clock_gates=netlist.clock_gates,
        cells=netlist.cells,
        sram_bits=netlist.sram_bits,
        sram_um2=round(sram, 1),
        total_um2=round(area + sram, 1),
        path_ps=round(path_ps, 1),
        path_start=start,
        path_end=end,
        path_with_wires_ps=None if wired is None else round(wired, 1),
        abc_ps=round(netlist.abc_ps, 1),
        met=met,
        timing_method=method,
        clock_ghz=round(ghz, 4),
        clock_with_wires_ghz=wired_ghz,
        gb_per_s=None if rate is None else round(rate, 2),
        gb_per_s_per_mm2=None if rate is None else round(rate / (area + sram) * 1e6, 1),
        kge_per_bit_per_cycle=round(kge / (lanes * RAW_BITS), 4) if lanes else None,
        power_mw=None if watts is None else round(watts * 1000, 3),
        power_method=power_method,
        own_um2=round(area, 2),
        parts={},
    )
