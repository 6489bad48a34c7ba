"""Transform of pass 2: a raw beat becomes symbols, or what is transposed to XORed planes.

DBX: differences of neighbouring symbols, XORed; BX: symbols, XORed; ZBX: the non-zero
symbols, gathered, XORed; ZVC: gathered; RAW: as they are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.compaction import keep_flags
from planezip.hdl.gather import destinations, gather
from planezip.hdl.geometry import Geometry
from planezip.hdl.wires import parts_of, wire, wires
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
    end of a cycle with ``step``, in which ``next`` must be the next beat of the block
    (whose first symbol a delta needs; after the last beat it is ignored). ``row`` and the
    other outputs are valid in the cycle after.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    load, step : In(1)
    beat : In(beat_bits)
    next : In(widest symbol)
    tag, width : In
        Of the block that moves on (``width`` indexes ``parameters.symbol_bits``).
    first, last : In(1)
        It is the first or last beat of the block.
    held : Out(beat_bits), flags : Out(lanes)
        The beat that is about to move on, and which lanes belong to non-zero symbols.
    row : Out(beat_bits)
        Lanes of the result.
    written : Out(lanes), line : Out(lanes * log2(beats_per_block))
        Which lanes are results, and the row of the block that each belongs to.
    tops : Out(lanes)
        Bit w of the deltas, one per symbol (DBX).
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        line_bits = g.beats_per_block.bit_length() - 1
        super().__init__(
            {
                "load": In(1),
                "step": In(1),
                "beat": In(g.beat_bits),
                "next": In(parameters.symbol_bits[-1]),
                "tag": In(3),
                "width": In(range(max(2, len(parameters.symbol_bits)))),
                "first": In(1),
                "last": In(1),
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
        self._gather(m)
        held = Signal(self._geometry.beat_bits, reset_less=True)
        m.d.comb += self.held.eq(held)
        with m.If(self.load):
            m.d.sync += held.eq(self.beat)
        return m

    def _gather(self, m: Module) -> None:
        g, p = self._geometry, self._geometry.parameters
        encodings, size = p.encodings, g.lane_bits
        gathers = bool(encodings & {Tag.ZVC, Tag.ZBX})
        # First register to second: differences, destinations.
        value = Signal(g.beat_bits, reset_less=True)
        is_planes = Signal(reset_less=True)
        width = Signal.like(self.width, reset_less=True)
        borrows = Signal(g.lanes, reset_less=True)
        keep = Signal(g.lanes, reset_less=True)
        base = Signal(g.beats_per_block.bit_length() - 1, reset_less=True)
        offset = Signal(max(g.lanes.bit_length() - 1, 0), reset_less=True)
        places = Signal(g.lanes * len(offset), reset_less=True)
        total = Signal(len(base) + len(offset), reset_less=True)  # lanes kept so far
        m.d.comb += self.flags.eq(keep_flags(self.held, self.width, p))
        kept: Value = Const(-1, g.lanes)
        if gathers:
            zeros_drop = (self.tag == Tag.ZVC) | (self.tag == Tag.ZBX)
            kept = wire(m, self.flags | (~zeros_drop).replicate(g.lanes), "keep")
        before = wire(m, Mux(self.first, 0, total), "before")
        fields, count = destinations(m, kept, before[: len(offset)])
        delta = self.tag == Tag.DBX if Tag.DBX in encodings else Const(0)
        deltas, lane_borrows = self._differences()
        with m.If(self.step):
            m.d.sync += [
                is_planes.eq((self.tag == Tag.BX) | (self.tag == Tag.ZBX) | delta),
                width.eq(self.width),
                keep.eq(kept),
                base.eq(before[len(offset) :]),
                offset.eq(before[: len(offset)]),
                places.eq(Cat(fields)),
                total.eq(before + count),
            ]
            if Tag.DBX in encodings:
                m.d.sync += [
                    value.eq(Mux(delta, deltas, self.held)),
                    borrows.eq(Mux(delta, lane_borrows, 0)),
                ]
            else:
                m.d.sync += value.eq(self.held)
        # Second register to the outputs: borrows between lanes, network, XOR.
        lanes = [value[k : k + size] for k in range(0, g.beat_bits, size)]
        outputs, arrived = lanes, keep
        if gathers:
            step = len(offset)
            targets = [places[k * step : (k + 1) * step] for k in range(g.lanes)]
            outputs, arrived = gather(m, lanes, keep, targets)
        tops: Value = Const(0, g.lanes)
        if Tag.DBX in encodings:  # differences went straight through the network
            outputs, tops = self._corrected(m, outputs, borrows, width)
            ends = Signal(reset_less=True)  # the last symbol has no successor
            with m.If(self.step):
                m.d.sync += ends.eq(self.last & delta)
            dead = ends.replicate(g.lanes) & self._last_symbol(width)
            alive = wire(m, Cat(outputs) & self._spread(~dead), "alive")
            outputs = parts_of(alive, size)
            tops = wire(m, tops & ~dead, "tops")
            m.d.comb += self.tops.eq(self._per_symbol(tops, width))
        result = self._xored(outputs, tops, is_planes, width)
        m.d.comb += [
            self.row.eq(result),
            self.written.eq(arrived),
            self.line.eq(Cat((base + (k < offset))[: len(base)] for k in range(g.lanes))),
        ]

    # A lane belongs to a symbol of `group` lanes, by width.

    def _by_width(self, width: Value, values: list[Value]) -> Value:
        result = values[0]
        for index, value in enumerate(values[1:], start=1):
            result = Mux(width == index, value, result)
        return result

    def _groups(self) -> list[int]:
        return [w // self._geometry.lane_bits for w in self._geometry.parameters.symbol_bits]

    def _differences(self) -> tuple[Value, Value]:
        """Lane by lane, next symbol minus this one without borrows between lanes."""
        g = self._geometry
        size = g.lane_bits
        whole = Cat(self.held, self.next)
        lanes = [whole[k : k + size] for k in range(0, len(whole), size)]
        results = []
        for k in range(g.lanes):
            after = self._by_width(self.width, [lanes[k + group] for group in self._groups()])
            results.append((after - lanes[k])[: size + 1])
        return Cat(r[:size] for r in results), Cat(r[size] for r in results)

    def _corrected(
        self, m: Module, lanes: list[Value], borrows: Value, width: Value
    ) -> tuple[list[Value], Value]:
        """Lanes with the borrow of the lane below taken off, and each lane's own borrow."""
        out: list[Value] = []
        outs: list[Value] = []
        for k, lane in enumerate(lanes):
            inner = self._by_width(width, [Const(k % group != 0) for group in self._groups()])
            borrow = inner & outs[-1] if k else Const(0)
            out.append((lane - borrow)[: len(lane)])
            outs.append(wire(m, borrows[k] | (borrow & ~lane.any()), "borrow"))
        return wires(m, out, "corrected"), wire(m, Cat(outs), "tops")

    def _xored(self, lanes: list[Value], tops: Value, enable: Value, width: Value) -> Value:
        """x = v ^ (v >> 1) symbol by symbol if ``enable``; ``tops`` come in from above."""
        out = []
        for k, lane in enumerate(lanes):
            above = [
                tops[k] if k % group == group - 1 else lanes[k + 1][0] for group in self._groups()
            ]
            shifted = Cat(lane[1:], self._by_width(width, above))
            out.append(lane ^ (shifted & enable.replicate(len(lane))))
        return Cat(out)

    def _last_symbol(self, width: Value) -> Value:
        lanes = self._geometry.lanes
        return self._by_width(
            width,
            [Const(((1 << group) - 1) << (lanes - group), lanes) for group in self._groups()],
        )

    def _spread(self, flags: Value) -> Value:
        return Cat(flag.replicate(self._geometry.lane_bits) for flag in flags)

    def _per_symbol(self, tops: Value, width: Value) -> Value:
        """The flag of each symbol's highest lane, side by side."""
        return self._by_width(width, [tops[group - 1 :: group] for group in self._groups()])
