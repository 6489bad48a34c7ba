"""Pass 2 of the compressor: from chunk records, summaries and raw beats to wire beats."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.align import Aligner, Narrow
from planezip.hdl.control import ControlBuilder
from planezip.hdl.geometry import Geometry
from planezip.hdl.payload_path import PayloadPath, symbol_unit
from planezip.hdl.summary import PlaneClass, block_summary, chunk_record
from planezip.hdl.transform import Transform
from planezip.hdl.transpose import Transpose
from planezip.hdl.types import beat
from planezip.hdl.wires import wire
from planezip.model.format import DEFAULT, HEADER_BYTES, Parameters, Tag

__all__ = ["Serializer"]


class Serializer(wiring.Component):
    """Encodes the winner of each block straight into the wire's beats.

    A beat a cycle, whatever the tags, widths and lengths: 4 cycles per block, none per
    chunk or tensor, as long as ``wire`` is ready. With the first beat of a block taken in
    cycle t, its first bits are on ``wire`` in t + 8 at the earliest (when they end a beat;
    the last bits of a tensor in t + 12). A block's beat waits for the next one (a delta
    needs its first symbol). While ``wire`` has a beat and is not ready everything stands
    still. (With small parameters a slot can bring more than a wire beat, and takes longer.)

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    chunks, summaries, beats : In(stream)
        See ``hdl/summary.py``; record and summary are taken with the last beat they hold for.
    wire : Out(stream of beat)
    """

    # The pipeline, in cycles after the one in which a beat is taken:
    #   held   +1  Transform's first register; moves on (`step`) when the next beat is there
    #   row    +2  Transform's second register; written to Transpose
    # and after the one in which the last beat of a block is taken (PayloadPath):
    #   place  +2  places of the payload, slot by slot
    #   read   +3  slots are read from Transpose, while the next block is written
    #   merge  +4  units, rotated to their places, are merged
    #   given  +5  payload and control string go to the aligner
    # Every stage moves with `enable`.

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        super().__init__(
            {
                "chunks": In(stream.Signature(chunk_record(parameters))),
                "summaries": In(stream.Signature(block_summary(parameters))),
                "beats": In(stream.Signature(unsigned(g.beat_bits))),
                "wire": Out(stream.Signature(beat(g.wire_bits // 8))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        args = (g.parameters, g.beats_per_block)
        m.submodules.transform = self._transform = Transform(*args)
        m.submodules.transpose = self._transpose = Transpose(*args)
        m.submodules.control = self._control = ControlBuilder(*args)
        m.submodules.payload = self._payload = PayloadPath(*args)
        m.submodules.aligner = aligner = Aligner(*args)
        wiring.connect(m, self._payload.slots, aligner.slots)
        if g.wire_ring > g.wire_bits:
            m.submodules.narrow = narrow = Narrow(g.wire_ring // 8, g.wire_bits // 8)
            wiring.connect(m, aligner.beats, narrow.wide)
            wiring.connect(m, narrow.narrow, wiring.flipped(self.wire))
        else:
            wiring.connect(m, aligner.beats, wiring.flipped(self.wire))
        self._enable = self._payload.enable
        self._take, self._there, self._step = Signal(), Signal(), Signal()
        self._verbatim = Signal(g.units, reset_less=True)
        self._positions = Signal(g.units, reset_less=True)
        self._held_slot = Signal(self._control.held.shape(), reset_less=True)
        self._port(m)
        self._held(m)
        self._row(m)
        return m

    def _port(self, m: Module) -> None:
        """Beats are taken; positions are counted block by block."""
        g, p = self._geometry, self._geometry.parameters
        chunk, summary, control = self.chunks.payload, self.summaries.payload, self._control
        slot = Signal(range(g.beats_per_block))
        block = Signal(range(p.blocks_per_chunk))
        pointer = Signal(g.pointer_bits)  # where the block starts
        fresh = Signal(init=1)  # the next block is a tensor's first one
        take = self._take
        last_beat = slot == g.beats_per_block - 1
        last_block = block + 1 == chunk.blocks
        m.d.comb += [
            self._there.eq(self.beats.valid & self.summaries.valid & self.chunks.valid),
            take.eq(self._enable & self._there),
            self.beats.ready.eq(self._enable & self.summaries.valid & self.chunks.valid),
            self.summaries.ready.eq(take & last_beat),
            self.chunks.ready.eq(take & last_beat & last_block),
        ]
        coded = ~chunk.raw
        header = (block == 0) & ~chunk.bypass
        evens = (chunk.blocks + 1)[1:]
        odd = coded & (block >= evens)
        tag = wire(m, Mux(coded, summary.tag, Tag.RAW), "tag")
        left = wire(m, self._symbol_order(tag, last_block), "left")
        length = Mux(coded, summary.bits, left * symbol_unit(g))
        head = Mux(header, 8 * HEADER_BYTES, 0)
        end = wire(m, (pointer + head + length)[: g.pointer_bits], "end")
        padding = Mux(coded & (block + 1 == evens), chunk.padding, 0)
        symbols: Value = Const(0)
        for index, w in enumerate(p.symbol_bits):
            symbols = Mux(chunk.width == index, p.symbols(w), symbols)
        m.d.comb += [
            control.enable.eq(self._enable),
            control.take.eq(take),
            control.taken.slot.eq(slot),
            control.taken.tag.eq(tag),
            control.taken.width.eq(chunk.width),
            control.taken.coded.eq(coded),
            control.taken.header.eq(header),
            control.taken.odd.eq(odd),
            control.taken.origin.eq(Mux(odd, end, pointer)),
            control.body_bytes.eq(chunk.body_bytes),
        ]
        self._classes(m, slot)
        verbatim, positions = self._kinds(tag)
        info = Signal(self._payload.info.shape(), reset_less=True)
        m.d.comb += self._payload.info.eq(info)
        with m.If(take):
            m.d.sync += [
                slot.eq(slot + 1),
                self._held_slot.eq(control.taken),
                self._verbatim.eq(verbatim),
                self._positions.eq(positions),
            ]
        with m.If(take & last_beat):
            m.d.sync += [
                block.eq(Mux(last_block, 0, block + 1)),
                pointer.eq(Mux(last_block & chunk.last, 0, end + padding)),
                fresh.eq(last_block & chunk.last),
                info.width.eq(chunk.width),
                info.planes.eq((tag != Tag.RAW) & (tag != Tag.ZVC)),
                info.extra.eq(tag == Tag.DBX),
                info.extra_class.eq(summary.extra),
                info.plane_bits.eq(
                    Mux(tag == Tag.ZBX, summary.nonzero, symbols - (tag == Tag.DBX))
                ),
                info.left.eq(left),
                info.odd.eq(odd),
                info.begin.eq(pointer),
                info.end.eq(end + padding),
                info.first.eq(fresh),
                info.last.eq(last_block & chunk.last),
            ]

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
        planes, classes = self.summaries.payload.planes, self._control.classes
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
        classes, width = self._control.classes.classes, self.chunks.payload.width
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

    def _held(self, m: Module) -> None:
        """The beat waits in Transform for the one after it."""
        g, held, step = self._geometry, self._held_slot, self._step
        transform, control, payload = self._transform, self._control, self._payload
        valid = Signal()
        last = held.slot == g.beats_per_block - 1
        m.d.comb += [
            step.eq(self._enable & valid & (last | self._there)),
            transform.load.eq(self._take),
            transform.step.eq(step),
            transform.beat.eq(self.beats.payload),
            transform.next.eq(self.beats.payload),
            transform.tag.eq(held.tag),
            transform.width.eq(held.width),
            transform.first.eq(held.slot == 0),
            transform.last.eq(last),
            control.step.eq(step),
            control.held.eq(held),
            control.beat.eq(transform.held),
            control.flags.eq(transform.flags),
            payload.begin.eq(step & last),
            payload.kinds.eq(step),
            payload.kinds_slot.eq(held.slot),
            payload.verbatim.eq(self._verbatim),
            payload.positions.eq(self._positions),
        ]
        with m.If(step):
            m.d.sync += valid.eq(0)
        with m.If(self._take):
            m.d.sync += valid.eq(1)

    def _row(self, m: Module) -> None:
        """The transformed beat is written to Transpose; slots of the block before are read."""
        g, held = self._geometry, self._held_slot
        transform, transpose, payload = self._transform, self._transpose, self._payload
        valid = Signal()
        slot = Signal.like(held.slot, reset_less=True)
        width = Signal.like(held.width, reset_less=True)
        planes = Signal(reset_less=True)
        write = self._enable & valid
        with m.If(self._enable):
            m.d.sync += valid.eq(self._step)
        with m.If(self._step):
            m.d.sync += [
                slot.eq(held.slot),
                width.eq(held.width),
                planes.eq((held.tag != Tag.RAW) & (held.tag != Tag.ZVC)),
            ]
        m.d.comb += [
            transpose.write.eq(write),
            transpose.write_slot.eq(slot),
            transpose.row.eq(transform.row),
            transpose.written.eq(transform.written),
            transpose.line.eq(transform.line),
            transpose.width.eq(width),
            transpose.planes.eq(planes),
            transpose.start.eq(write & (slot == g.beats_per_block - 1)),
            transpose.read_slot.eq(payload.read_slot),
            transpose.read_width.eq(payload.read_width),
            transpose.read_planes.eq(payload.read_planes),
            payload.data.eq(transpose.data),
            payload.tops_valid.eq(valid),
            payload.tops_slot.eq(slot),
            payload.tops_width.eq(width),
            payload.tops.eq(transform.tops),
            payload.position.eq(self._control.position),
            payload.string.eq(self._control.string),
        ]
