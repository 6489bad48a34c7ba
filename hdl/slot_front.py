"""Front of pass 2: records and summaries become slots, each with what its beat needs to know."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.control import slot_classes, slot_place
from planezip.hdl.geometry import Geometry
from planezip.hdl.placement import block_info, symbol_unit
from planezip.hdl.summary import PlaneClass, block_summary, chunk_record
from planezip.hdl.wires import wire
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag

__all__ = ["SlotFront", "front_slot"]


def front_slot(geometry: Geometry) -> data.StructLayout:
    """A slot that waits for its beat.

    ``place`` (but for its origin) and ``info`` (but for begin and end) of its block, whose
    ``length`` and ``padding`` behind it place the next one; kinds of its units.
    """
    p = geometry.parameters
    return data.StructLayout(
        {
            "place": slot_place(geometry),
            "info": block_info(geometry),
            "length": range(p.block_bits + TAG_BITS + 1),
            "padding": unsigned(3),
            "verbatim": unsigned(geometry.units),
            "positions": unsigned(geometry.units),
        }
    )


class SlotFront(wiring.Component):
    """A slot a cycle, a cycle behind the streams.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    chunks, summaries : In(stream)
        See ``hdl/summary.py``; taken with the last slot they hold for.
    front : Out(1), classes : Out(slot_classes), place : Out(slot_place)
        A slot is read: what ControlBuilder takes at the end of this cycle.
    valid : Out(1), slot : Out(front_slot)
        The slot read last waits for ``take`` : In(1).
    body_bytes : Out
        Of its chunk, until the first slot of the next chunk is read.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        record = chunk_record(parameters)
        super().__init__(
            {
                "chunks": In(stream.Signature(record)),
                "summaries": In(stream.Signature(block_summary(parameters))),
                "front": Out(1),
                "classes": Out(slot_classes(g)),
                "place": Out(slot_place(g)),
                "take": In(1),
                "valid": Out(1),
                "slot": Out(front_slot(g)),
                "body_bytes": Out(record["body_bytes"].shape),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g, p = self._geometry, self._geometry.parameters
        chunk, summary = self.chunks.payload, self.summaries.payload
        slot = Signal(range(g.beats_per_block))
        block = Signal(range(p.blocks_per_chunk))
        fresh = Signal(init=1)  # the next block is a tensor's first one
        front, valid = self.front, Signal()
        out = Signal(front_slot(g), reset_less=True)
        body_bytes = Signal.like(self.body_bytes, reset_less=True)
        last_slot = slot == g.beats_per_block - 1
        last_block = block + 1 == chunk.blocks
        ends = Signal(reset_less=True)  # the same, a slot later: the record comes late in a cycle
        m.d.comb += [
            self.valid.eq(valid),
            self.slot.eq(out),
            self.body_bytes.eq(body_bytes),
            front.eq(self.summaries.valid & self.chunks.valid & (~valid | self.take)),
            self.summaries.ready.eq(front & last_slot),
            self.chunks.ready.eq(front & last_slot & ends),
        ]
        coded = ~chunk.raw
        header = (block == 0) & ~chunk.bypass
        evens = (chunk.blocks + 1)[1:]
        tag = wire(m, Mux(coded, summary.tag, Tag.RAW), "tag")
        left = wire(m, self._symbol_order(tag, last_block), "left")
        length = Mux(coded, summary.bits, left * symbol_unit(g))
        symbols: Value = Const(0)
        for index, w in enumerate(p.symbol_bits):
            symbols = Mux(chunk.width == index, p.symbols(w), symbols)
        place, info = self.place, out.info
        verbatim, positions = self._kinds(tag)
        m.d.comb += [
            place.slot.eq(slot),
            place.tag.eq(tag),
            place.width.eq(chunk.width),
            place.coded.eq(coded),
            place.header.eq(header),
            place.odd.eq(coded & (block >= evens)),
        ]
        self._classes(m, slot)
        with m.If(front):
            m.d.sync += [
                slot.eq(slot + 1),
                ends.eq(last_block),
                out.place.eq(place),
                out.length.eq(length),
                out.padding.eq(Mux(coded & (block + 1 == evens), chunk.padding, 0)),
                out.verbatim.eq(verbatim),
                out.positions.eq(positions),
                info.width.eq(chunk.width),
                info.planes.eq((tag != Tag.RAW) & (tag != Tag.ZVC)),
                info.extra.eq(tag == Tag.DBX),
                info.extra_class.eq(summary.extra),
                info.plane_bits.eq(
                    Mux(tag == Tag.ZBX, summary.nonzero, symbols - (tag == Tag.DBX))
                ),
                info.left.eq(left),
                info.odd.eq(place.odd),
                info.first.eq(fresh),
                info.last.eq(last_block & chunk.last),
            ]
            with m.If(slot == 0):
                m.d.sync += body_bytes.eq(chunk.body_bytes)
            with m.If(last_slot):
                m.d.sync += [
                    block.eq(Mux(last_block, 0, block + 1)),
                    fresh.eq(last_block & chunk.last),
                ]
        with m.If(front):
            m.d.sync += valid.eq(1)
        with m.Elif(self.take):
            m.d.sync += valid.eq(0)
        return m

    def _symbol_order(self, tag: Value, last_block: Value) -> Value:
        """Payload of a block in symbol order: all of it, or its non-zero symbols."""
        p, unit = self._geometry.parameters, symbol_unit(self._geometry)
        chunk, summary = self.chunks.payload, self.summaries.payload
        whole = p.block_bits // unit
        left: Value = Const(whole)
        for index, w in enumerate(p.symbol_bits):
            here = (tag == Tag.ZVC) & (chunk.width == index)
            left = Mux(here, summary.nonzero * (w // unit), left)
        tail = (chunk.body_bytes * (8 // unit))[: whole.bit_length() - 1]
        cut = chunk.bypass & last_block & tail.any()
        return Mux(cut, tail, left)[: whole.bit_length()]

    def _classes(self, m: Module, slot: Value) -> None:
        """Classes of the slot's planes, and whether the plane behind them is zero."""
        g, p = self._geometry, self._geometry.parameters
        planes, classes = self.summaries.payload.planes, self.classes
        values = [planes[k].as_value() for k in range(p.symbol_bits[-1])]
        m.d.comb += classes.extra.eq(self.summaries.payload.extra)
        for index, w in enumerate(p.symbol_bits):
            count = g.planes(w)
            groups = [Cat(values[k : k + count]) for k in range(0, w, count)]
            follows = [group[:3] == PlaneClass.ZERO.value for group in groups[1:]] + [Const(0)]
            with m.If(self.chunks.payload.width == index):
                m.d.comb += [
                    classes.classes.as_value().eq(Array(groups)[slot]),
                    classes.next_zero.eq(Array(follows)[slot]),
                ]

    def _kinds(self, tag: Value) -> tuple[Value, Value]:
        """Units of the slot that are payload as they are, and that are positions."""
        g, p = self._geometry, self._geometry.parameters
        classes, width = self.classes.classes, self.chunks.payload.width
        order = (tag == Tag.RAW) | (tag == Tag.ZVC)
        verbatim, positions = [], []
        for k in range(g.units):
            plane: Value = Const(0)
            place: Value = Const(0)
            for index, w in enumerate(p.symbol_bits):
                span = g.units // g.planes(w)
                kind = classes[k // span].as_value()
                at = kind[0] & kind[2] if k % span == 0 else Const(0)
                plane = Mux(width == index, kind == PlaneClass.VERBATIM.value, plane)
                place = Mux(width == index, at, place)
            verbatim.append(order | plane)
            positions.append(~order & place)
        return Cat(verbatim), Cat(positions)
