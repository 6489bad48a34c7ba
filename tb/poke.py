"""Direct access to the ports of a component without streams: set, settle, tick, get."""

from __future__ import annotations

from typing import Any

from amaranth.lib.wiring import Flow
from cocotb.triggers import Timer

from planezip.model.format import DEFAULT, Parameters
from tb.layouts import pack, unpack
from tb.streams import read

__all__ = ["GEOMETRIES", "Poke"]

GEOMETRIES = [
    (DEFAULT, 4),
    (Parameters(4, (4,), 2), 2),
    (Parameters(8, (8,), 4), 4),
    (Parameters(16, (4, 8), 2), 4),
]


class Poke:
    """Ports of ``dut`` by name; ``component`` (of the same class) gives their layouts."""

    def __init__(self, dut: Any, component: Any) -> None:
        self._dut = dut
        self._members = component.signature.members

    def set(self, **values: Any) -> None:
        for name, value in values.items():
            getattr(self._dut, name).value = pack(self._members[name].shape, value)

    def get(self, name: str) -> Any:
        value = read(getattr(self._dut, name))
        assert isinstance(value, int), f"X in {name}: {value}"
        return unpack(self._members[name].shape, value)

    async def settle(self) -> None:
        await Timer(1, unit="ns")

    async def tick(self) -> None:
        await Timer(1, unit="ns")
        self._dut.clk.value = 1
        await Timer(1, unit="ns")
        self._dut.clk.value = 0
        await Timer(1, unit="ns")

    async def reset(self) -> None:
        """One reset cycle, with all inputs at zero."""
        self.set(**{n: 0 for n, member in self._members.items() if member.flow == Flow.In})
        self._dut.rst.value = 1
        self._dut.clk.value = 0
        await self.tick()
        self._dut.rst.value = 0
