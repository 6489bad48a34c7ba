"""Transform of pass 2: a raw beat becomes symbols, or what is transposed to XORed planes.

DBX: differences of neighbouring symbols, XORed; BX: symbols, XORed; ZBX: the non-zero
symbols, XORed and gathered; ZVC: gathered; RAW: as they are. The first symbol, which has
no difference, leaves no gap: the network that gathers drops it like a zero.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.compaction import keep_flags
from planezip.hdl.delta import differences, first_symbol, xor_adjacent
from planezip.hdl.gather import destinations, gather
from planezip.hdl.geometry import Geometry
from planezip.hdl.wires import parts_of, wire
from planezip.model.format import DEFAULT, Parameters, Tag

__all__ = ["Transform", "transformed"]


def transformed(tag: Tag, symbols: list[int], w: int) -> tuple[list[int], list[int]]:
    """Software model: the values of a block to be written or transposed, and DBX's top bits."""
    mask = (1 << w) - 1
    if tag == Tag.DBX:
        deltas = [(b - a) & (2 * mask + 1) for a, b in pairwise(symbols)]
        return [(d ^ d >> 1) & mask for d in deltas], [d >> w for d in deltas]
    kept = [s for s in symbols if s] if tag in (Tag.ZVC, Tag.ZBX) else symbols
    return [s ^ s >> 1 if tag in (Tag.BX, Tag.ZBX) else s for s in kept], []


class Transform(wiring.Component):
    """Two pipeline registers; a beat a cycle.

    The beat of ``beat`` is taken at the end of a cycle with ``load``; it moves on at the
    end of a cycle with ``step``. ``row`` and the other outputs are valid in the cycle after.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    load, step : In(1)
    beat : In(beat_bits), beat_width : In
        Its width, as ``width``.
    tag, width : In
        Of the block that moves on (``width`` indexes ``parameters.symbol_bits``).
    first : In(1)
        It is the first beat of the block.
    held : Out(beat_bits), flags : Out(lanes)
        The beat that is about to move on, and which lanes belong to non-zero symbols.
    row : Out(beat_bits)
        Lanes of the result.
    written : Out(lanes), line : Out(lanes * log2(beats_per_block))
        Which lanes are results, and the row of the block that each belongs to.
    tops : Out(lanes)
        Bit w of the deltas, one per symbol of the beat (DBX; 0 for the first symbol).
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        line_bits = g.beats_per_block.bit_length() - 1
        width = range(max(2, len(parameters.symbol_bits)))
        super().__init__(
            {
                "load": In(1),
                "step": In(1),
                "beat": In(g.beat_bits),
                "beat_width": In(width),
                "tag": In(3),
                "width": In(width),
                "first": In(1),
                "held": Out(g.beat_bits),
                "flags": Out(g.lanes),
                "row": Out(g.beat_bits),
                "written": Out(g.lanes),
                "line": Out(g.lanes * line_bits),
                "tops": Out(g.lanes),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p = self._geometry.parameters
        held = Signal(self._geometry.beat_bits, reset_less=True)
        flags = Signal(self._geometry.lanes, reset_less=True)
        m.d.comb += [self.held.eq(held), self.flags.eq(flags)]
        with m.If(self.load):
            m.d.sync += [held.eq(self.beat), flags.eq(keep_flags(self.beat, self.beat_width, p))]
        self._gather(m, self._planes(m))
        return m

    def _planes(self, m: Module) -> Signal:
        """Symbols or differences, XORed if they are to become planes."""
        g, p = self._geometry, self._geometry.parameters
        value = Signal(g.beat_bits, reset_less=True)
        source: Value = self.held
        tops: Value | None = None
        delta: Value = Const(0)
        if Tag.DBX in p.encodings:
            delta = wire(m, self.tag == Tag.DBX, "delta")
            before = Signal(p.symbol_bits[-1], reset_less=True)  # the last word of the beat before
            parts, part_tops = differences(m, self.held, before, self.width, p, delta)
            source = wire(m, Cat(parts), "source")
            first = first_symbol(self.width, g.lanes, p) & self.first.replicate(g.lanes)
            tops = wire(m, Cat(part_tops) & ~first, "tops")
            held_tops = Signal(g.lanes, reset_less=True)
            with m.If(self.step):
                m.d.sync += [
                    before.eq(self.held[-len(before) :]),
                    held_tops.eq(self._per_symbol(tops)),
                ]
            m.d.comb += self.tops.eq(held_tops)
        planes = (self.tag == Tag.BX) | (self.tag == Tag.ZBX) | delta
        with m.If(self.step):
            m.d.sync += value.eq(
                xor_adjacent(source, tops, self.width, p, wire(m, planes, "planes"))
            )
        return value

    def _gather(self, m: Module, value: Value) -> None:
        """Symbols that are kept go to the next free places of the block."""
        g, encodings = self._geometry, self._geometry.parameters.encodings
        keep = Signal(g.lanes, reset_less=True)
        base = Signal(g.beats_per_block.bit_length() - 1, reset_less=True)
        offset = Signal(max(g.lanes.bit_length() - 1, 0), reset_less=True)
        places = Signal(g.lanes * len(offset), reset_less=True)
        total = Signal(len(base) + len(offset), reset_less=True)  # lanes kept so far
        kept: Value = Const(-1, g.lanes)
        if encodings & {Tag.ZVC, Tag.ZBX}:
            drops = (self.tag == Tag.ZVC) | (self.tag == Tag.ZBX)
            kept = self.flags | (~drops).replicate(g.lanes)
        if Tag.DBX in encodings:
            drop = (self.tag == Tag.DBX) & self.first
            first = first_symbol(self.width, g.lanes, g.parameters)
            kept = kept & ~(first & drop.replicate(g.lanes))
        kept = wire(m, kept, "keep")
        before = wire(m, Mux(self.first, 0, total), "before")
        fields, count = destinations(m, kept, before[: len(offset)])
        with m.If(self.step):
            m.d.sync += [
                keep.eq(kept),
                base.eq(before[len(offset) :]),
                offset.eq(before[: len(offset)]),
                places.eq(Cat(fields)),
                total.eq(before + count),
            ]
        outputs, arrived = parts_of(value, g.lane_bits), keep
        if encodings & {Tag.ZVC, Tag.ZBX, Tag.DBX}:
            targets = [places[k * len(offset) : (k + 1) * len(offset)] for k in range(g.lanes)]
            outputs, arrived = gather(m, outputs, keep, targets)
        m.d.comb += [
            self.row.eq(Cat(outputs)),
            self.written.eq(arrived),
            self.line.eq(Cat((base + (k < offset))[: len(base)] for k in range(g.lanes))),
        ]

    def _per_symbol(self, tops: Value) -> Value:
        """The flag of each symbol's highest lane, side by side."""
        widths = self._geometry.parameters.symbol_bits
        groups = [w // self._geometry.lane_bits for w in widths]
        result: Value = tops[groups[0] - 1 :: groups[0]]
        for index, group in enumerate(groups[1:], start=1):
            result = Mux(self.width == index, tops[group - 1 :: group], result)
        return result
