"""Inverse transposition: planes of a block in, beats of symbols out, one register of a block.

As in :mod:`planezip.hdl.transpose` the block is a square of tiles, one per slot and beat. It
moves down or to the right, in turn from block to block, so that a block enters while the one
before leaves at the other side.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import slot_geometry
from planezip.hdl.delta import width_shape
from planezip.hdl.wires import any_of, wire
from planezip.model.format import DEFAULT, Parameters

__all__ = ["Untranspose", "beats_of"]


def beats_of(slots: list[int], w: int, parameters: Parameters, beats: int = 4) -> list[int]:
    """Software model: beats of symbols from the planes in ``slots``, top plane first."""
    n = parameters.symbols(w)
    bits = sum(slot << k * n * w // beats for k, slot in enumerate(slots))
    planes = [bits >> k * n & ((1 << n) - 1) for k in range(w)][::-1]
    symbols = [sum((plane >> i & 1) << k for k, plane in enumerate(planes)) for i in range(n)]
    block = sum(symbol << i * w for i, symbol in enumerate(symbols))
    size = n * w // beats
    return [block >> k * size & ((1 << size) - 1) for k in range(beats)]


class Untranspose(wiring.Component):
    """A line in and a line out per cycle; line k leaves 4 cycles after it came, combinationally.

    Parameters
    ----------
    parameters : Parameters

    Attributes
    ----------
    line : In(2)
        Line that enters and leaves in this cycle: 0 to 3, over and over.
    data : In(beat)
    width, order : In
        Of the block that is written: index of its width; whether it stays as it is.
    beat : Out(beat)
        Of the block before.
    """

    def __init__(self, parameters: Parameters = DEFAULT) -> None:
        self._geometry = g = slot_geometry(parameters)
        super().__init__(
            {
                "line": In(2),
                "data": In(g.slot),
                "width": In(width_shape(parameters)),
                "order": In(1),
                "beat": Out(g.slot),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        count, size = g.slots, g.slot // g.slots
        across = Signal()  # lines are columns
        width, order = Signal.like(self.width), Signal()  # of the block that is read
        with m.If(self.line == count - 1):
            m.d.sync += [
                across.eq(across ^ ~self.order),
                width.eq(self.width),
                order.eq(self.order),
            ]
        # Each line moves the tiles one step on: down (lines are rows) or to the right.
        source = [wire(m, part, "part") for part in self._input()]
        tiles = [
            [Signal(size, name=f"tile_{r}_{c}", reset_less=True) for c in range(count)]
            for r in range(count)
        ]
        end = count - 1
        for r in range(count):
            for c in range(count):
                above = tiles[r - 1][c] if r else source[end - c]
                left = tiles[r][c - 1] if c else source[end - r]
                m.d.sync += tiles[r][c].eq(Mux(across, left, above))
        line = [
            wire(m, Mux(across, tiles[end - at][end], tiles[end][end - at]), "line")
            for at in range(count)
        ]
        m.d.comb += self.beat.eq(self._output(line, width, order))
        return m

    # Bit k * (symbols of a beat) + i of tile (slot, beat) is bit i, counted within the beat,
    # of plane k, counted within the slot.

    def _input(self) -> list[Value]:
        g = self._geometry
        size = g.slot // g.slots
        tiles = []
        for at in range(g.slots):
            options = [self.data[at * size : (at + 1) * size] & self.order.replicate(size)]
            for i, w in enumerate(g.parameters.symbol_bits):
                n, symbols = g.parameters.symbols(w), g.slot // w
                tile = Cat(
                    self.data[k * n + at * symbols : k * n + (at + 1) * symbols]
                    for k in range(w // g.slots)
                )
                options.append(tile & (~self.order & (self.width == i)).replicate(size))
            tiles.append(any_of(options))
        return tiles

    def _output(self, line: list[Value], width: Value, order: Value) -> Value:
        g = self._geometry
        options = [Cat(line) & order.replicate(g.slot)]
        for i, w in enumerate(g.parameters.symbol_bits):
            symbols, planes = g.slot // w, w // g.slots
            bits = [
                line[p // planes][p % planes * symbols + k]
                for k in range(symbols)
                for p in range(w - 1, -1, -1)
            ]
            options.append(Cat(bits) & (~order & (width == i)).replicate(g.slot))
        return any_of(options)
