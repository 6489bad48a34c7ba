"""Payload of DBX's extra plane: the signs of a block's deltas, laid into the control ring.

It is the first payload of its block and comes beside a full slot of other planes, so it
goes out with the control string.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import expand, inner_flags
from planezip.hdl.position import position, position_of
from planezip.hdl.wires import rotated, wire
from planezip.model.format import DEFAULT, Parameters

__all__ = ["ExtraPlane", "extra_ring"]


def extra_ring(plane: int, verbatim: bool, is_position: bool, start: int, ring: int) -> int:
    """Software model: the plane, the position of its lowest one, or nothing, from ``start``."""
    value = plane if verbatim else position_of(plane) if is_position else 0
    whole = value << start % ring
    return whole & ((1 << ring) - 1) | whole >> ring


class ExtraPlane(wiring.Component):
    """Collects the top bits of a block's deltas; a block every ``beats_per_block`` cycles.

    The beat of ``tops`` is stored by the end of the cycle after; with the last one taken in
    cycle t, ``ring`` is what was asked for in t + 2, in t + 3. (The first beat of the next
    block comes in t + 1 at the earliest.)

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    enable : In(1)
        Everything stands still without it.
    tops_valid : In(1), tops_slot, tops_width, tops : In
        Number of the beat in its block, width, a bit per symbol; that of a block's first
        symbol is not part of the plane.
    width, start : In, verbatim, position : In(1)
        Of the block; where its plane begins in the control ring; whether the plane or its
        position is payload.
    ring : Out(control_ring)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        width = range(max(2, len(parameters.symbol_bits)))
        super().__init__(
            {
                "enable": In(1),
                "tops_valid": In(1),
                "tops_slot": In(range(g.beats_per_block)),
                "tops_width": In(width),
                "tops": In(g.lanes),
                "width": In(width),
                "start": In(g.control_ring.bit_length() - 1),
                "verbatim": In(1),
                "position": In(1),
                "ring": Out(g.control_ring),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        plane = self._collected(m)
        at = Cat(position(m, plane)[:-1])
        content = Mux(self.verbatim, plane, Mux(self.position, at, 0))
        turned = rotated(m, wire(m, content[: g.symbols], "content"), self.start)
        ring = Signal(g.symbols, reset_less=True)
        start = Signal.like(self.start, reset_less=True)
        low = inner_flags(self.start, g.symbols)
        start_low = Signal(len(low), reset_less=True)
        with m.If(self.enable):
            m.d.sync += [ring.eq(turned), start.eq(self.start), start_low.eq(low)]
        m.d.comb += self.ring.eq(expand(m, ring, start, g.control_ring, start_low))
        return m

    def _collected(self, m: Module) -> Value:
        """The plane, zero above its last bit."""
        g, p = self._geometry, self._geometry.parameters
        collected = Signal(g.symbols - 1, reset_less=True)
        tops = Signal(g.lanes, reset_less=True)
        valid = Signal()
        slot = Signal.like(self.tops_slot, reset_less=True)
        width = Signal.like(self.tops_width, reset_less=True)
        with m.If(self.enable):
            m.d.sync += [tops.eq(self.tops), valid.eq(self.tops_valid)]
            m.d.sync += [slot.eq(self.tops_slot), width.eq(self.tops_width)]
        for index, w in enumerate(p.symbol_bits):
            count = g.beat_bits // w
            here = self.enable & valid & (width == index)
            for k in range(g.beats_per_block):
                skip = k == 0  # the first symbol
                with m.If(here & (slot == k)):
                    target = collected[k * count - 1 + skip : (k + 1) * count - 1]
                    m.d.sync += target.eq(tops[skip:count])
        plane: Value = collected
        for index, w in enumerate(p.symbol_bits):
            plane = Mux(self.width == index, collected[: p.symbols(w) - 1], plane)
        whole = Signal(g.symbols, name="plane")
        m.d.comb += whole.eq(plane)
        return whole
