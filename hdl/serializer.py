"""Pass 2 of the compressor: from chunk records, summaries and raw beats to wire beats."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.align import Aligner, Narrow
from planezip.hdl.control import ControlBuilder
from planezip.hdl.geometry import Geometry
from planezip.hdl.payload_path import PayloadPath
from planezip.hdl.slot_front import SlotFront
from planezip.hdl.summary import block_summary, chunk_record
from planezip.hdl.transform import Transform
from planezip.hdl.transpose import Transpose
from planezip.hdl.types import beat
from planezip.hdl.wires import wire
from planezip.model.format import DEFAULT, HEADER_BYTES, Parameters, Tag

__all__ = ["Serializer"]


class Serializer(wiring.Component):
    """Encodes the winner of each block straight into the wire's beats.

    A beat a cycle, whatever the tags, widths and lengths: 4 cycles per block, none per
    chunk or tensor, as long as ``wire`` is ready and a beat comes a cycle after the summary
    (and record) that it needs. With the first beat of a block taken in cycle t, its first
    bits are on ``wire`` in t + 8 at the earliest (when they end a beat; the last bits of a
    tensor in t + 12). While ``wire`` has a beat and is not ready everything stands still.
    (With small parameters a slot can bring more than a wire beat, and takes longer.)

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    chunks, summaries, beats : In(stream)
        See ``hdl/summary.py``; record and summary are taken before the last beat they hold for.
    wire : Out(stream of beat)
    """

    # The pipeline: record and summary are read slot by slot, a cycle ahead of the beats at
    # least (`front`). In cycles after the one in which a beat is taken:
    #   held   +1  Transform's first register
    #   row    +2  Transform's second register; written to Transpose
    # and after the one in which the last beat of a block is taken (PayloadPath):
    #   added  +2  lengths of the payload of a slot are added up, slot by slot
    #   placed +3  slots are read from Transpose, while the next block is written
    #   merged +4  units, rotated to their places, are merged
    #   given  +5  payload and control string go to the aligner
    # Every stage behind `front` moves with `enable`.

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
        m.submodules.front = self._front = SlotFront(*args)
        m.submodules.transform = self._transform = Transform(*args)
        m.submodules.transpose = self._transpose = Transpose(*args)
        m.submodules.control = self._control = ControlBuilder(*args)
        m.submodules.payload = self._payload = PayloadPath(*args)
        m.submodules.aligner = aligner = Aligner(*args)
        wiring.connect(m, wiring.flipped(self.chunks), self._front.chunks)
        wiring.connect(m, wiring.flipped(self.summaries), self._front.summaries)
        wiring.connect(m, self._payload.slots, aligner.slots)
        if g.wire_ring > g.wire_bits:
            m.submodules.narrow = narrow = Narrow(g.wire_ring // 8, g.wire_bits // 8)
            wiring.connect(m, aligner.beats, narrow.wide)
            wiring.connect(m, narrow.narrow, wiring.flipped(self.wire))
        else:
            wiring.connect(m, aligner.beats, wiring.flipped(self.wire))
        self._enable = self._payload.enable
        self._take = Signal()
        self._held_slot = Signal(self._control.held.shape(), reset_less=True)
        self._port(m)
        self._held(m)
        self._row(m)
        return m

    def _port(self, m: Module) -> None:
        """A beat is taken for the slot in front; positions are counted block by block."""
        g, take, front = self._geometry, self._take, self._front.slot
        control, payload, held = self._control, self._payload, self._held_slot
        pointer = Signal(g.pointer_bits)  # where the block starts
        last_slot = front.place.slot == g.beats_per_block - 1
        head = Mux(front.place.header, 8 * HEADER_BYTES, 0)
        end = wire(m, (pointer + head + front.length)[: g.pointer_bits], "end")
        after = wire(m, (end + front.padding)[: g.pointer_bits], "after")
        m.d.comb += [
            take.eq(self._enable & self._front.valid & self.beats.valid),
            self.beats.ready.eq(self._enable & self._front.valid),
            control.enable.eq(self._enable),
            control.take.eq(take),
            control.front.eq(self._front.front),
            control.classes.eq(self._front.classes),
            control.place.eq(self._front.place),
            control.body_bytes.eq(self._front.body_bytes),
            self._front.take.eq(take),
            payload.begin.eq(take & last_slot),
            payload.info.eq(front.info),
            payload.info.begin.eq(pointer),
            payload.info.end.eq(after),
            payload.kinds.eq(take),
            payload.kinds_slot.eq(front.place.slot),
            payload.verbatim.eq(front.verbatim),
            payload.positions.eq(front.positions),
        ]
        with m.If(take):
            m.d.sync += [
                held.eq(front.place),
                held.origin.eq(Mux(front.place.odd, end, pointer)),
            ]
            with m.If(last_slot):
                m.d.sync += pointer.eq(Mux(front.info.last, 0, after))

    def _held(self, m: Module) -> None:
        """The beat in Transform's first register."""
        held, transform, control = self._held_slot, self._transform, self._control
        self._held_valid = Signal()
        with m.If(self._enable):
            m.d.sync += self._held_valid.eq(self._take)
        m.d.comb += [
            transform.load.eq(self._take),
            transform.step.eq(self._enable & self._held_valid),
            transform.beat.eq(self.beats.payload),
            transform.beat_width.eq(self._front.slot.place.width),
            transform.tag.eq(held.tag),
            transform.width.eq(held.width),
            transform.first.eq(held.slot == 0),
            control.held.eq(held),
            control.beat.eq(transform.held),
            control.flags.eq(transform.flags),
        ]

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
            m.d.sync += [
                valid.eq(self._held_valid),
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
            payload.control_end.eq(self._control.end),
            payload.string.eq(self._control.string),
        ]
