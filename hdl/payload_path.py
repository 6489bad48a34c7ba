"""Payload of a block: read slot by slot from Transpose, placed, packed, joined with control."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.align import aligner_slot
from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import PayloadPacker, PayloadPlaces, expand, shares
from planezip.hdl.position import PositionEncoder, position
from planezip.hdl.summary import PlaneClass
from planezip.hdl.wires import rotated, wire
from planezip.model.format import DEFAULT, Parameters, Tag

__all__ = ["PayloadPath", "block_info", "symbol_unit"]

# What a slot needs after its units have been read.
_MERGED = (
    "payload",
    "control",
    "start",
    "end",
    "extra",
    "width",
    "has_string",
    "verbatim_extra",
    "position_extra",
    "first",
    "last",
)


def symbol_unit(geometry: Geometry) -> int:
    """Bits in which payload in symbol order is counted."""
    return min(8, geometry.lane_bits)


def block_info(geometry: Geometry) -> data.StructLayout:
    """What a block needs while it is read.

    ``width``; ``planes`` (else symbol order, with ``left`` units of payload); ``extra``
    and ``extra_class`` of DBX's extra plane; ``plane_bits`` (length of a verbatim plane);
    ``odd``; stream positions ``begin`` and ``end`` (with what follows up to the next
    block); ``first`` and ``last`` of the tensor.
    """
    p = geometry.parameters
    return data.StructLayout(
        {
            "width": range(max(2, len(p.symbol_bits))),
            "planes": 1,
            "extra": 1,
            "extra_class": PlaneClass,
            "plane_bits": range(geometry.symbols + 1),
            "left": range(p.block_bits // symbol_unit(geometry) + 1),
            "odd": 1,
            "begin": unsigned(geometry.pointer_bits),
            "end": unsigned(geometry.pointer_bits),
            "first": 1,
            "last": 1,
        }
    )


class PayloadPath(wiring.Component):
    """A slot a cycle: with ``begin`` in cycle t, slot k is given in t + k + 4.

    It is placed in t + k + 1, read in t + k + 2 and merged in t + k + 3.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    begin : In(1), info : In(block_info)
        A block is complete with the end of the next cycle; ``info`` is valid in both.
    kinds_slot, verbatim, positions : In
        Kinds of a slot's units (see PositionEncoder), stored at the end of a cycle with
        ``kinds`` : In(1); slot k not before slot k of the block before is placed.
    tops_slot, tops_width, tops : In
        Top bits of a beat's deltas, taken with ``tops_valid`` : In(1) and ``enable``.
    position : In(pointer_bits)
        Where the control string ends, in the cycle after ``begin``.
    string : In(control_ring)
        The control string, when the slot that it belongs to is given.
    read_slot, read_width, read_planes : Out; data : In(beat_bits)
        To and from Transpose.
    slots : Out(stream of aligner_slot)
    enable : Out(1)
        Everything that feeds this path stands still without it.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        width = range(max(2, len(parameters.symbol_bits)))
        slot = range(g.beats_per_block)
        super().__init__(
            {
                "begin": In(1),
                "info": In(block_info(g)),
                "kinds": In(1),
                "kinds_slot": In(slot),
                "verbatim": In(g.units),
                "positions": In(g.units),
                "tops_valid": In(1),
                "tops_slot": In(slot),
                "tops_width": In(width),
                "tops": In(g.lanes),
                "position": In(g.pointer_bits),
                "string": In(g.control_ring),
                "read_slot": Out(slot),
                "read_width": Out(width),
                "read_planes": Out(1),
                "data": In(g.beat_bits),
                "slots": Out(stream.Signature(aligner_slot(g))),
                "enable": Out(1),
            }
        )

    def _placed(self) -> data.StructLayout:
        """Between placing and reading."""
        g = self._geometry
        return data.StructLayout(
            {
                "slot": range(g.beats_per_block),
                "width": self.read_width.shape(),
                "planes": 1,
                "verbatim": unsigned(g.units),
                "positions": unsigned(g.units),
                "places": unsigned(g.units * (g.beat_bits.bit_length() - 1)),
                "payload": unsigned(g.pointer_bits),
                "control": unsigned(g.pointer_bits),
                "start": unsigned(g.pointer_bits),
                "end": unsigned(g.pointer_bits),
                "extra": unsigned(g.control_ring.bit_length() - 1),
                "has_string": 1,
                "verbatim_extra": 1,
                "position_extra": 1,
                "first": 1,
                "last": 1,
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        self._place(m)
        self._read(m)
        return m

    def _place(self, m: Module) -> None:
        """Where the units of a slot go."""
        g, unit = self._geometry, symbol_unit(self._geometry)
        m.submodules.places = places = PayloadPlaces(g.parameters, g.beats_per_block)
        info = Signal(block_info(g), reset_less=True)
        position_bits = Signal(range(g.symbols.bit_length()), reset_less=True)
        share = Signal.like(places.shares, reset_less=True)
        extra_bits = Signal(range(g.symbols), reset_less=True)
        kinds = [
            Signal(2 * g.units, name=f"kinds_{k}", reset_less=True)
            for k in range(g.beats_per_block)
        ]
        valid = Signal()
        slot = Signal(range(g.beats_per_block))
        place = Signal(g.pointer_bits, reset_less=True)
        whole = g.beat_bits // unit
        first, last = slot == 0, slot == g.beats_per_block - 1
        for k, line in enumerate(kinds):
            with m.If(self.kinds & (self.kinds_slot == k)):
                m.d.sync += line.eq(Cat(self.verbatim, self.positions))
        kind = self.info.extra_class.as_value()
        is_verbatim = self.info.extra & (kind == PlaneClass.VERBATIM.value)
        is_position = self.info.extra & kind[0] & kind[2]
        field = wire(m, _log2_ceil(self.info.plane_bits), "field")
        with m.If(self.enable):
            m.d.sync += [valid.eq(self.begin | valid & ~last), place.eq(places.end)]
            with m.If(valid):
                m.d.sync += [
                    slot.eq(slot + 1),
                    info.left.eq(Mux(info.left > whole, info.left - whole, 0)),
                ]
            with m.If(self.begin):
                m.d.sync += [
                    info.eq(self.info),
                    position_bits.eq(field),
                    share.eq(shares(self.info.plane_bits, g)),
                    extra_bits.eq(
                        Mux(is_verbatim, self.info.plane_bits, Mux(is_position, field, 0))
                    ),
                ]
        # What only slot 0 needs is still at the input.
        verbatim_extra = first & is_verbatim
        position_extra = first & is_position
        extra_start = wire(m, Mux(self.info.odd, self.info.begin, self.position), "extra_start")
        start = wire(m, Mux(first, extra_start + extra_bits, place)[: g.pointer_bits], "start")
        kind_line = wire(m, Array(kinds)[slot], "kinds")
        verbatim, positions = kind_line[: g.units], kind_line[g.units :]
        m.d.comb += [
            places.start.eq(start),
            places.width.eq(info.width),
            places.planes.eq(info.planes),
            places.verbatim.eq(verbatim),
            places.positions.eq(positions),
            places.shares.eq(share),
            places.position_bits.eq(position_bits),
            places.symbol_bits.eq(Mux(info.left >= whole, g.beat_bits, info.left * unit)),
        ]
        placed = self._placed_slot = Signal(self._placed(), reset_less=True)
        self._placed_valid = Signal()
        with m.If(self.enable):
            m.d.sync += [
                self._placed_valid.eq(valid),
                placed.slot.eq(slot),
                placed.width.eq(info.width),
                placed.planes.eq(info.planes),
                placed.verbatim.eq(verbatim),
                placed.positions.eq(positions),
                placed.places.eq(places.places),
                placed.payload.eq(start),
                placed.control.eq(Mux(first, self.info.begin, places.end)),
                placed.start.eq(Mux(first, self.info.begin, place)),
                placed.end.eq(Mux(last, info.end, places.end)),
                placed.extra.eq(extra_start),
                placed.has_string.eq(Mux(first, ~self.info.odd, last & info.odd)),
                placed.verbatim_extra.eq(verbatim_extra),
                placed.position_extra.eq(position_extra),
                placed.first.eq(first & self.info.first),
                placed.last.eq(last & info.last),
            ]

    def _read(self, m: Module) -> None:
        """Units are chosen and packed; control string, extra plane and payload meet."""
        g = self._geometry
        args = (g.parameters, g.beats_per_block)
        m.submodules.positions = positions = PositionEncoder(*args)
        m.submodules.packer = packer = PayloadPacker(*args)
        placed, slots = self._placed_slot, self.slots
        fields = {name: self._placed()[name].shape for name in _MERGED}
        merged = self._merged = Signal(data.StructLayout(fields), reset_less=True)
        valid = Signal(2)  # in the stages merge and given
        given = Signal(slots.payload.shape(), reset_less=True)
        has_string = Signal(reset_less=True)
        m.d.comb += [
            self.read_slot.eq(placed.slot),
            self.read_width.eq(placed.width),
            self.read_planes.eq(placed.planes),
            positions.data.eq(self.data),
            positions.width.eq(placed.width),
            positions.verbatim.eq(placed.verbatim),
            positions.positions.eq(placed.positions),
            packer.enable.eq(self.enable),
            packer.units.eq(positions.units),
            packer.places.eq(placed.places),
        ]
        with m.If(self.enable):
            m.d.sync += [valid.eq(Cat(self._placed_valid, valid[0]))]
            m.d.sync += [merged[name].eq(placed[name]) for name in _MERGED]
            m.d.sync += [
                given.payload.eq(packer.ring),
                given.payload_start.eq(merged.payload),
                given.control_start.eq(merged.control),
                given.opened.eq((merged.start - 1)[g.pointer_bits - 1]),
                given.end.eq(merged.end - 1),
                given.first.eq(merged.first),
                given.last.eq(merged.last),
                has_string.eq(merged.has_string),
            ]
        control = self.string & has_string.replicate(g.control_ring)
        if Tag.DBX in g.parameters.encodings:
            control = control | self._extra_plane(m)
        m.d.comb += [
            slots.valid.eq(valid[1]),
            slots.payload.eq(given),
            slots.payload.control.eq(control),
            self.enable.eq(slots.ready | ~valid[1]),
        ]

    def _extra_plane(self, m: Module) -> Value:
        """Payload of DBX's extra plane, at its place in the control ring."""
        g, p, merged = self._geometry, self._geometry.parameters, self._merged
        collected = Signal(g.symbols, reset_less=True)
        tops = Signal(g.lanes, reset_less=True)
        tops_valid = Signal()
        slot = Signal.like(self.tops_slot, reset_less=True)
        width = Signal.like(self.tops_width, reset_less=True)
        with m.If(self.enable):
            m.d.sync += [tops.eq(self.tops), tops_valid.eq(self.tops_valid)]
            m.d.sync += [slot.eq(self.tops_slot), width.eq(self.tops_width)]
        for index, w in enumerate(p.symbol_bits):
            count = g.beat_bits // w
            here = self.enable & tops_valid & (width == index)
            for k in range(g.beats_per_block):
                with m.If(here & (slot == k)):
                    m.d.sync += collected[k * count : (k + 1) * count].eq(tops[:count])
        plane: Value = collected
        for index, w in enumerate(p.symbol_bits):
            plane = Mux(merged.width == index, collected[: p.symbols(w)], plane)
        plane = wire(m, plane, "plane")
        at = Cat(position(m, plane)[:-1])
        content = Mux(merged.verbatim_extra, plane, Mux(merged.position_extra, at, 0))
        turned = rotated(m, wire(m, content[: g.symbols], "content"), merged.extra)
        ring = Signal(g.symbols, reset_less=True)
        start = Signal.like(merged.extra, reset_less=True)
        with m.If(self.enable):
            m.d.sync += [ring.eq(turned), start.eq(merged.extra)]
        return expand(m, ring, start, g.control_ring)


def _log2_ceil(value: Value) -> Value:
    """ceil(log2(value)); 0 for 0 and 1."""
    result: Value = Const(0)
    for bits in range(1, len(value)):
        result = Mux(value > 1 << (bits - 1), bits, result)
    return result
