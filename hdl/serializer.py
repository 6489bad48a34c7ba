"""Pass 2 of the compressor: from chunk records, summaries and raw beats to wire beats."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.align import Aligner, Narrow
from planezip.hdl.control import ControlBuilder, control_step
from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import PayloadPacker, PayloadPlaces, expand
from planezip.hdl.position import PositionEncoder, position
from planezip.hdl.summary import PlaneClass, block_summary, chunk_record
from planezip.hdl.transform import Transform
from planezip.hdl.transpose import Transpose
from planezip.hdl.types import beat
from planezip.hdl.wires import rotated, wire
from planezip.model.format import DEFAULT, Parameters, Tag

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

    # The pipeline, in cycles after the one in which a beat is taken (`port`):
    #   held      +1  Transform's first register; moves on (`step`) when the next beat is there
    #   row       +2  Transform's second register; written to Transpose
    #   read      +3  from the last beat: slots of the block, read from Transpose
    #   units     +4  units of payload and their places
    #   ring      +5  packed payload; here the control string joins
    # Every stage moves with `enable`. What a block needs later than its beats is in `info`:
    # `taken` from the last beat on, `reading` while the block is read.

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        self._unit = min(8, g.lane_bits)  # payload in symbol order is counted in these bits
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
        m.submodules.positions = self._positions = PositionEncoder(*args)
        m.submodules.places = self._places = PayloadPlaces(*args)
        m.submodules.packer = self._packer = PayloadPacker(*args)
        m.submodules.aligner = self._aligner = Aligner(*args)
        if g.wire_ring > g.wire_bits:
            m.submodules.narrow = narrow = Narrow(g.wire_ring // 8, g.wire_bits // 8)
            wiring.connect(m, self._aligner.beats, narrow.wide)
            wiring.connect(m, narrow.narrow, wiring.flipped(self.wire))
        else:
            wiring.connect(m, self._aligner.beats, wiring.flipped(self.wire))
        self._enable = Signal()
        self._port(m)
        self._held(m)
        self._row(m)
        self._read(m)
        self._units(m)
        return m

    def _info(self) -> data.StructLayout:
        """What a block needs while it is read."""
        g, p = self._geometry, self._geometry.parameters
        return data.StructLayout(
            {
                "width": range(max(2, len(p.symbol_bits))),
                "planes": 1,  # not in symbol order
                "extra": 1,  # DBX
                "extra_class": PlaneClass,
                "plane_bits": range(g.symbols + 1),
                "left": range(p.block_bits // self._unit + 1),  # payload in symbol order
                "odd": 1,
                "begin": unsigned(g.pointer_bits),
                "end": unsigned(g.pointer_bits),
                "first": 1,
                "last": 1,
            }
        )

    def _port(self, m: Module) -> None:
        """Beats are taken; positions are counted block by block."""
        g, p = self._geometry, self._geometry.parameters
        chunk, summary = self.chunks.payload, self.summaries.payload
        slot = self._slot = Signal(range(g.beats_per_block))
        block = Signal(range(p.blocks_per_chunk))
        pointer = Signal(g.pointer_bits)  # where the block starts
        fresh = Signal(init=1)  # the next block is a tensor's first one
        there = self._there = Signal()
        m.d.comb += there.eq(self.beats.valid & self.summaries.valid & self.chunks.valid)
        last_beat = slot == g.beats_per_block - 1
        last_block = block + 1 == chunk.blocks
        take = self._take = Signal()
        m.d.comb += [
            take.eq(self._enable & there),
            self.beats.ready.eq(self._enable & self.summaries.valid & self.chunks.valid),
            self.summaries.ready.eq(take & last_beat),
            self.chunks.ready.eq(take & last_beat & last_block),
        ]
        evens = (chunk.blocks + 1)[1:]
        coded = ~chunk.raw
        is_first = block == 0
        header = is_first & ~chunk.bypass
        tag = wire(m, Mux(coded, summary.tag, Tag.RAW), "tag")
        left = wire(m, self._symbol_order(chunk, summary, tag, last_block), "left")
        length = Mux(coded, summary.bits, left * self._unit)
        end = wire(m, (pointer + Mux(header, 16, 0) + length)[: g.pointer_bits], "end")
        padding = Mux(coded & (block + 1 == evens), chunk.padding, 0)
        odd = coded & (block >= evens)
        info = self._taken = Signal(self._info(), reset_less=True)
        self._step_info = step = Signal(control_step(g), reset_less=True)
        symbols = Const(0)
        for index, w in enumerate(p.symbol_bits):
            symbols = Mux(chunk.width == index, p.symbols(w), symbols)
        with m.If(take):
            m.d.sync += [
                slot.eq(slot + 1),
                step.slot.eq(slot),
                step.tag.eq(tag),
                step.width.eq(chunk.width),
                step.coded.eq(coded),
                step.header.eq(header),
                step.odd.eq(odd),
                step.origin.eq(Mux(odd, end, pointer)),
                step.extra.eq(summary.extra),
            ]
            self._classes(m, slot, chunk.width, summary.planes)
            with m.If(last_beat):
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

    def _symbol_order(self, chunk: Any, summary: Any, tag: Value, last_block: Value) -> Value:
        """Payload of a block in symbol order: all of it, or its non-zero symbols."""
        p, unit = self._geometry.parameters, self._unit
        whole = p.block_bits // unit
        left: Value = Const(whole)
        for index, w in enumerate(p.symbol_bits):
            here = (tag == Tag.ZVC) & (chunk.width == index)
            left = Mux(here, summary.nonzero * (w // unit), left)
        tail = (chunk.body_bytes * (8 // unit))[: whole.bit_length() - 1]
        cut = chunk.bypass & last_block & tail.any()
        return Mux(cut, tail, left)[: whole.bit_length()]

    def _classes(self, m: Module, slot: Value, width: Value, planes: Any) -> None:
        """Classes of the slot's planes, and whether the plane behind them is zero."""
        g, p = self._geometry, self._geometry.parameters
        step = self._step_info
        values = [planes[k].as_value() for k in range(p.symbol_bits[-1])]
        for index, w in enumerate(p.symbol_bits):
            count = g.planes(w)
            groups = [Cat(values[k : k + count]) for k in range(0, w, count)]
            follows = [group[:3] == PlaneClass.ZERO.value for group in groups[1:]] + [Const(0)]
            with m.If(width == index):
                m.d.sync += [
                    step.classes.as_value().eq(Array(groups)[slot]),
                    step.next_zero.eq(Array(follows)[slot]),
                ]

    def _held(self, m: Module) -> None:
        """The beat waits in Transform for the one after it; its codes are formed."""
        g = self._geometry
        transform, control, info = self._transform, self._control, self._step_info
        valid = Signal()
        last = info.slot == g.beats_per_block - 1
        step = self._step = Signal()
        m.d.comb += [
            step.eq(self._enable & valid & (last | self._there)),
            transform.load.eq(self._take),
            transform.step.eq(step),
            transform.beat.eq(self.beats.payload),
            transform.next.eq(self.beats.payload),
            transform.tag.eq(info.tag),
            transform.width.eq(info.width),
            transform.first.eq(info.slot == 0),
            transform.last.eq(last),
            control.enable.eq(self._enable),
            control.step.eq(step),
            control.body_bytes.eq(self.chunks.payload.body_bytes),
            control.slot.eq(info),
            control.slot.beat.eq(transform.held),
            control.slot.flags.eq(transform.flags),
        ]
        with m.If(step):
            m.d.sync += valid.eq(0)
        with m.If(self._take):
            m.d.sync += valid.eq(1)

    def _kinds(self) -> tuple[Value, Value]:
        """Units of the slot that are payload as they are, and that are positions."""
        g, p, info = self._geometry, self._geometry.parameters, self._step_info
        order = (info.tag == Tag.RAW) | (info.tag == Tag.ZVC)
        verbatim, positions = [], []
        for k in range(g.units):
            options = []
            for w in p.symbol_bits:
                span = g.units // g.planes(w)
                kind = info.classes[k // span].as_value()
                at = kind[0] & kind[2] if k % span == 0 else Const(0)
                options.append((kind == PlaneClass.VERBATIM.value, at))
            plane, place = options[0]
            for index, option in enumerate(options[1:], start=1):
                plane = Mux(info.width == index, option[0], plane)
                place = Mux(info.width == index, option[1], place)
            verbatim.append(order | plane)
            positions.append(~order & place)
        return Cat(verbatim), Cat(positions)

    def _row(self, m: Module) -> None:
        """The transformed beat is written to Transpose, the kinds of its slot's units beside it."""
        g = self._geometry
        transform, transpose, info = self._transform, self._transpose, self._step_info
        valid = Signal()
        slot = Signal.like(info.slot, reset_less=True)
        width = Signal.like(info.width, reset_less=True)
        planes = Signal(reset_less=True)
        verbatim = Signal(g.units, reset_less=True)
        positions = Signal(g.units, reset_less=True)
        tops = Signal(g.lanes, reset_less=True)
        self._kind_lines = [
            Signal(2 * g.units, name=f"kinds_{k}", reset_less=True)
            for k in range(g.beats_per_block)
        ]
        write = self._enable & valid
        last = slot == g.beats_per_block - 1
        kinds = self._kinds()
        with m.If(self._enable):
            m.d.sync += valid.eq(self._step)
            m.d.sync += tops.eq(transform.tops)
        with m.If(self._step):
            m.d.sync += [
                slot.eq(info.slot),
                width.eq(info.width),
                planes.eq((info.tag != Tag.RAW) & (info.tag != Tag.ZVC)),
                verbatim.eq(kinds[0]),
                positions.eq(kinds[1]),
            ]
        m.d.comb += [
            transpose.write.eq(write),
            transpose.write_slot.eq(slot),
            transpose.row.eq(transform.row),
            transpose.written.eq(transform.written),
            transpose.line.eq(transform.line),
            transpose.width.eq(width),
            transpose.planes.eq(planes),
            transpose.start.eq(write & last),
        ]
        with m.Switch(slot):
            for k, line in enumerate(self._kind_lines):
                with m.Case(k), m.If(write):
                    m.d.sync += line.eq(Cat(verbatim, positions))
        self._row_valid, self._row_slot, self._row_width = valid, slot, width
        self._row_last = last
        self._tops = tops

    def _read(self, m: Module) -> None:
        """A slot is read, its payload chosen and placed."""
        g = self._geometry
        transpose, positions, places = self._transpose, self._positions, self._places
        info = Signal(self._info(), reset_less=True)
        position_bits = Signal(range(g.symbols.bit_length()), reset_less=True)
        valid = Signal()
        slot = Signal(range(g.beats_per_block))
        place = Signal(g.pointer_bits, reset_less=True)
        last = slot == g.beats_per_block - 1
        begins = self._row_valid & self._row_last
        with m.If(self._enable):
            m.d.sync += valid.eq(begins | valid & ~last)
            m.d.sync += place.eq(places.end)
            with m.If(valid):
                m.d.sync += slot.eq(slot + 1)
                m.d.sync += info.left.eq(
                    Mux(
                        info.left > g.beat_bits // self._unit,
                        info.left - g.beat_bits // self._unit,
                        0,
                    )
                )
            with m.If(begins):
                m.d.sync += info.eq(self._taken)
                m.d.sync += position_bits.eq(_log2_ceil(self._taken.plane_bits))
        is_first = slot == 0
        verbatim_extra = info.extra & (info.extra_class == PlaneClass.VERBATIM)
        position_extra = (
            info.extra & info.extra_class.as_value()[0] & info.extra_class.as_value()[2]
        )
        extra_bits = Mux(verbatim_extra, info.plane_bits, Mux(position_extra, position_bits, 0))
        extra_start = Mux(info.odd, info.begin, self._control.position)
        slot_start = wire(
            m, Mux(is_first, (extra_start + extra_bits)[: g.pointer_bits], place), "start"
        )
        kinds = wire(m, Array(self._kind_lines)[slot], "kinds")
        full = info.left >= g.beat_bits // self._unit
        m.d.comb += [
            transpose.read_slot.eq(slot),
            transpose.read_width.eq(info.width),
            transpose.read_planes.eq(info.planes),
            positions.data.eq(transpose.data),
            positions.width.eq(info.width),
            positions.verbatim.eq(kinds[: g.units]),
            positions.positions.eq(kinds[g.units :]),
            places.start.eq(slot_start),
            places.width.eq(info.width),
            places.planes.eq(info.planes),
            places.verbatim.eq(kinds[: g.units]),
            places.positions.eq(kinds[g.units :]),
            places.plane_bits.eq(info.plane_bits),
            places.position_bits.eq(position_bits),
            places.symbol_bits.eq(Mux(full, g.beat_bits, info.left * self._unit)),
        ]
        fields = data.StructLayout(
            {
                "units": unsigned(g.beat_bits),
                "places": places.places.shape(),
                "payload": unsigned(g.pointer_bits),
                "control": unsigned(g.pointer_bits),
                "start": unsigned(g.pointer_bits),
                "end": unsigned(g.pointer_bits),
                "extra": unsigned(g.pointer_bits),
                "width": info.width.shape(),
                "has_string": 1,
                "verbatim_extra": 1,
                "position_extra": 1,
                "first": 1,
                "last": 1,
            }
        )
        units = self._unit_fields = Signal(fields, reset_less=True)
        start = Mux(is_first, info.begin, place)
        with m.If(self._enable):
            m.d.sync += [
                units.units.eq(positions.units),
                units.places.eq(places.places),
                units.payload.eq(slot_start),
                units.control.eq(Mux(is_first, info.begin, places.end)),
                units.start.eq(start),
                units.end.eq(Mux(last, info.end, places.end)),
                units.extra.eq(extra_start),
                units.width.eq(info.width),
                units.has_string.eq(Mux(is_first, ~info.odd, last & info.odd)),
                units.verbatim_extra.eq(is_first & verbatim_extra),
                units.position_extra.eq(is_first & position_extra),
                units.first.eq(is_first & info.first),
                units.last.eq(last & info.last),
            ]
        self._read_valid = valid

    def _units(self, m: Module) -> None:
        """Payload is packed; then control string, extra plane and payload meet in the aligner."""
        g, p = self._geometry, self._geometry.parameters
        fields, packer, slots = self._unit_fields, self._packer, self._aligner.slots
        m.d.comb += [packer.units.eq(fields.units), packer.places.eq(fields.places)]
        units_valid = Signal()
        valid = Signal()
        ring = Signal(slots.payload.shape(), reset_less=True)
        has_string = Signal(reset_less=True)
        extra = Signal(g.symbols, reset_less=True)
        extra_start = Signal(g.control_ring.bit_length() - 1, reset_less=True)
        with m.If(self._enable):
            m.d.sync += [
                units_valid.eq(self._read_valid),
                valid.eq(units_valid),
                ring.payload.eq(packer.ring),
                ring.payload_start.eq(fields.payload),
                ring.control_start.eq(fields.control),
                ring.opened.eq((fields.start - 1)[g.pointer_bits - 1]),
                ring.end.eq(fields.end - 1),
                ring.first.eq(fields.first),
                ring.last.eq(fields.last),
                has_string.eq(fields.has_string),
            ]
        control = self._control.string & has_string.replicate(g.control_ring)
        if Tag.DBX in p.encodings:
            control = control | expand(m, extra, extra_start, g.control_ring)
            extra_plane = self._extra_plane(m)
            with m.If(self._enable):
                m.d.sync += [
                    extra.eq(extra_plane),
                    extra_start.eq(fields.extra),
                ]
        m.d.comb += [
            slots.valid.eq(valid),
            slots.payload.eq(ring),
            slots.payload.control.eq(control),
            self._enable.eq(slots.ready | ~valid),
        ]

    def _extra_plane(self, m: Module) -> Value:
        """Payload of DBX's extra plane, at its place in a ring."""
        g, p = self._geometry, self._geometry.parameters
        fields = self._unit_fields
        collected = Signal(g.symbols, reset_less=True)
        valid, slot, width = self._row_valid, Signal.like(self._row_slot), self._row_width
        written = Signal()
        row_width = Signal.like(width, reset_less=True)
        with m.If(self._enable):
            m.d.sync += [written.eq(valid), slot.eq(self._row_slot), row_width.eq(width)]
            for index, w in enumerate(p.symbol_bits):
                count = g.beat_bits // w
                for k in range(g.beats_per_block):
                    with m.If(written & (slot == k) & (row_width == index)):
                        m.d.sync += collected[k * count : (k + 1) * count].eq(self._tops[:count])
        plane: Value = collected
        for index, w in enumerate(p.symbol_bits):
            plane = Mux(fields.width == index, collected[: p.symbols(w)], plane)
        plane = wire(m, plane, "plane")
        at = Cat(position(m, plane)[:-1])
        content = Mux(fields.verbatim_extra, plane, Mux(fields.position_extra, at, 0))
        return rotated(m, wire(m, content[: g.symbols], "content"), fields.extra)


def _log2_ceil(value: Value) -> Value:
    """ceil(log2(value)); 0 for 0 and 1."""
    result: Value = Const(0)
    for bits in range(1, len(value)):
        result = Mux(value > 1 << (bits - 1), bits, result)
    return result
