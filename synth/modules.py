"""What is synthesised: both lanes, and every component of :mod:`planezip.hdl` by itself.

A component is called after its class. Those that need more than the codec's parameters are
listed below, or left out where the lanes have them with other arguments only.
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
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.framer import block_meta
from planezip.hdl.plane_cost import PlaneCost
from planezip.hdl.plane_status import PlaneStatus
from planezip.hdl.sizer import Sizer
from planezip.model.format import Parameters, Tag

__all__ = ["LANES", "MODULES", "RAW_BITS"]

LANES = ("compressor", "decompressor")
RAW_BITS = 256  # a lane's raw bits per cycle: a block of 1,024 bits in 4 cycles

_DELTAS, _SYMBOLS = frozenset({Tag.DBX}), frozenset({Tag.BX, Tag.ZBX})
_SPECIAL: Mapping[str, Callable[[Parameters], Any]] = {
    "compressor": CompressorLane,
    "decompressor": DecompressorLane,
    "sizer": lambda p: Sizer(p, meta=block_meta(p)),
    "plane_status_deltas": lambda p: PlaneStatus(p, encodings=_DELTAS),
    "plane_status_symbols": lambda p: PlaneStatus(p, encodings=_SYMBOLS),
    "plane_cost_deltas": lambda p: PlaneCost(p, _DELTAS),
    "plane_cost_symbols": lambda p: PlaneCost(p, _SYMBOLS),
}
_DONE = (CompressorLane, DecompressorLane, Sizer, PlaneStatus, PlaneCost)
_LANES_OF_ENGINE = 2


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
            if name.endswith("Engine"):  # lanes and parts that have rows of their own
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
