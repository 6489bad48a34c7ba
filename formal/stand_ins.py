"""Engines whose lanes are any lanes, and the AXI wrapper around any engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Assume, DomainRenamer, Fragment, Instance, Module, Signal, Value
from amaranth.lib import wiring

from formal.streams import holds, outputs
from planezip.hdl.axi import AxiEngine
from planezip.model.format import Parameters

__all__ = ["AnyEngine", "StandIn", "any_lanes"]


class StandIn(wiring.Component):
    """Any part with these ports: its outputs take any value in every cycle.

    ``fair``: its output streams hold until ready.
    """

    def __init__(self, signature: wiring.Signature, fair: bool = False) -> None:
        self._fair = fair
        super().__init__(signature)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for path, member, value in self.signature.flatten(self):
            if member.flow == wiring.Out:
                pin = Value.cast(value)
                name = "_".join(map(str, path))
                free = Signal(len(pin), name=f"any_{name}")
                m.submodules[f"any_{name}"] = Instance("$anyseq", p_WIDTH=len(pin), o_Y=free)
                m.d.comb += pin.eq(free)
        for _, port in outputs(self) if self._fair else ():
            m.d.comb += Assume(holds(m, port.valid, port.ready, port.payload))
        return m


def any_lanes(make: Callable[[Parameters, int], Any], parameters: Parameters, lanes: int) -> Any:
    """An engine of one direction with any lanes: they need not even hold their streams."""
    engine = make(parameters, lanes)

    def stand_in(m: Module, lane: Any, k: int) -> Any:
        lane._MustUse__used = True  # only its ports are looked at: no warning of Amaranth
        m.submodules[f"lane_{k}"] = part = StandIn(lane.signature)
        return part

    engine._lane = stand_in
    return engine


class AnyEngine(AxiEngine):
    """The AXI wrapper with its registers; its engine is any that holds its streams."""

    def __init__(self, parameters: Parameters, lanes: int) -> None:
        super().__init__(parameters, lanes)
        replaced: Any = self._engine
        for part in (replaced, *replaced._parts):
            part._MustUse__used = True
        self.__dict__["_engine"] = StandIn(replaced.signature, fair=True)

    def elaborate(self, platform: Any) -> Any:
        # A domain of its own cannot have the name of the one around it.
        return DomainRenamer("axi")(Fragment.get(super().elaborate(platform), platform))
