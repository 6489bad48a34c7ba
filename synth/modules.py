"""What is synthesised by itself: both lanes, and every component of :mod:`planezip.hdl`.

A component is called after its class. Those that need more than the codec's parameters are
listed below, with the arguments that they have in a lane or an engine of two lanes. The engine,
which has lanes in it, is in :mod:`planezip.synth.engine`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping
from typing import Any

from amaranth.lib import wiring

from planezip import hdl
from planezip.hdl.completer import Completer
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.engine_types import EngineGeometry, engine_descriptor
from planezip.hdl.framer import block_meta
from planezip.hdl.merger import Merger, Packer
from planezip.hdl.plane_cost import PlaneCost
from planezip.hdl.plane_status import PlaneStatus
from planezip.hdl.queue import Queue
from planezip.hdl.rows import BeatsToRows, RowsToBeats
from planezip.hdl.sizer import Sizer
from planezip.model.format import Parameters, Tag

__all__ = ["LANES", "MODULES", "RAW_BITS"]

LANES = ("compressor", "decompressor")
RAW_BITS = 256  # a lane's raw bits per cycle: a block of 1,024 bits in 4 cycles

_DELTAS, _SYMBOLS = frozenset({Tag.DBX}), frozenset({Tag.BX, Tag.ZBX})
_LANES_OF_ENGINE = 2
_QUEUE = 16  # descriptors


def _geometry(parameters: Parameters) -> EngineGeometry:
    return EngineGeometry(parameters, _LANES_OF_ENGINE)


def _intake(p: Parameters, wire: bool) -> RowsToBeats:
    g = _geometry(p)
    return RowsToBeats(
        g.lane_wire if wire else g.lane_raw, g.lanes, g.intake_rows if wire else g.raw_rows
    )


def _outlet(p: Parameters, wire: bool) -> BeatsToRows:
    g = _geometry(p)
    return BeatsToRows(
        g.lane_wire if wire else g.lane_raw, g.lanes, g.wire_rows if wire else g.raw_rows
    )


_SPECIAL: Mapping[str, Callable[[Parameters], Any]] = {
    "compressor": CompressorLane,
    "decompressor": DecompressorLane,
    "sizer": lambda p: Sizer(p, meta=block_meta(p)),
    "plane_status_deltas": lambda p: PlaneStatus(p, encodings=_DELTAS),
    "plane_status_symbols": lambda p: PlaneStatus(p, encodings=_SYMBOLS),
    "plane_cost_deltas": lambda p: PlaneCost(p, _DELTAS),
    "plane_cost_symbols": lambda p: PlaneCost(p, _SYMBOLS),
    "completer_compress": lambda p: Completer(p, _LANES_OF_ENGINE, decompress=False),
    "completer_decompress": lambda p: Completer(p, _LANES_OF_ENGINE, decompress=True),
    "rows_to_beats_raw": lambda p: _intake(p, wire=False),
    "rows_to_beats_wire": lambda p: _intake(p, wire=True),
    "beats_to_rows_raw": lambda p: _outlet(p, wire=False),
    "beats_to_rows_wire": lambda p: _outlet(p, wire=True),
    "merger": lambda p: Merger(_geometry(p).raw, _LANES_OF_ENGINE),
    "packer": lambda p: Packer(_geometry(p).wire, _LANES_OF_ENGINE),
    "queue": lambda p: Queue(engine_descriptor(), _QUEUE),
}
_DONE = {CompressorLane, DecompressorLane, Sizer, PlaneStatus, PlaneCost, Completer, Merger}
_DONE |= {Packer, Queue, RowsToBeats, BeatsToRows}


def _components() -> dict[str, Callable[[Parameters], Any]]:
    """Components that parameters alone, or they and the number of lanes, make."""
    found: dict[str, Callable[[Parameters], Any]] = {}
    for info in pkgutil.iter_modules(hdl.__path__, f"{hdl.__name__}."):
        module = importlib.import_module(info.name)
        for name, kind in vars(module).items():
            if not inspect.isclass(kind) or not issubclass(kind, wiring.Component):
                continue
            if kind.__module__ != info.name or name.startswith("_") or kind in _DONE:
                continue
            if name.endswith("Engine"):  # with lanes in it
                continue
            arguments = inspect.signature(kind).parameters
            needed = [a for a, p in arguments.items() if p.default is inspect.Parameter.empty]
            if "parameters" not in arguments or set(needed) - {"parameters", "lanes"}:
                continue
            lanes = {"lanes": _LANES_OF_ENGINE} if "lanes" in needed else {}
            found[re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()] = _maker(kind, lanes)
    return found


def _maker(kind: Any, lanes: Mapping[str, int]) -> Callable[[Parameters], Any]:
    return lambda parameters: kind(parameters=parameters, **lanes)


MODULES: Mapping[str, Callable[[Parameters], Any]] = {
    **_SPECIAL,
    **dict(sorted(_components().items())),
}
"""Factories by name; the lanes come first."""
