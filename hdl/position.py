"""What of a slot's planes goes into the payload: the plane, the position of its one, nothing."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry
from planezip.hdl.wires import wire, wires
from planezip.model.format import DEFAULT, Parameters

__all__ = ["PositionEncoder", "position", "position_of"]


_NO = Const(0)


def position_of(plane: int) -> int:
    """Software model: number of the lowest one of a plane that is not zero."""
    return (plane & -plane).bit_length() - 1


def position(m: Module, plane: Value, carry: Value = _NO) -> list[Value]:
    """Bits of the position of the lower one, of a plane with one 1 or two adjacent ones.

    ``carry`` is the bit below the plane. One more bit follows: whether there is a one.
    """
    lowest = wire(m, plane & ~Cat(carry, plane[:-1]), "lowest")
    count = len(plane)
    bits = [
        Cat(lowest[k] for k in range(count) if k >> bit & 1).any()
        for bit in range(count.bit_length() - 1)
    ]
    return [*bits, lowest.any()]


class PositionEncoder(wiring.Component):
    """Combinational: units of planes to units of payload.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    data : In(beat_bits)
        Planes of a slot, or a beat of symbols.
    width : In
        Index of the symbol width.
    verbatim, positions : In(units)
        Per unit of the slot: it is payload as it is, or replaced by the position of its
        one (the lowest unit of a plane only). Neither: nothing.
    units : Out(beat_bits)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        super().__init__(
            {
                "data": In(g.beat_bits),
                "width": In(range(max(2, len(parameters.symbol_bits)))),
                "verbatim": In(g.units),
                "positions": In(g.units),
                "units": Out(g.beat_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        size = g.unit_bits
        parts = [self.data[k : k + size] for k in range(0, g.beat_bits, size)]
        # A plane of several units: its position is put together from theirs.
        spans = [g.parameters.symbols(w) // size for w in g.parameters.symbol_bits]
        found = []
        for k, part in enumerate(parts):
            inner: Value = Const(0)
            for index, span in enumerate(spans):
                inner = Mux(self.width == index, Const(k % span != 0), inner)
            carry = parts[k - 1][-1] & inner if k else Const(0)
            found.append(wires(m, position(m, part, carry), "found"))
        for k, part in enumerate(parts):
            options = []
            for span in spans:
                group = found[k : k + span] if k % span == 0 else found[k : k + 1]
                low = [Cat(f[bit] for f in group).any() for bit in range(len(found[0]) - 1)]
                high = [
                    Cat(group[j][-1] for j in range(len(group)) if j >> bit & 1).any()
                    for bit in range(len(group).bit_length() - 1)
                ]
                options.append(Cat(low, high))
            at = options[0]
            for index, option in enumerate(options[1:], start=1):
                at = Mux(self.width == index, option, at)
            field = (at & self.positions[k].replicate(len(at)))[:size]
            m.d.comb += self.units[k * size : (k + 1) * size].eq(
                (part & self.verbatim[k].replicate(size)) | field
            )
        return m
