"""Payload of a block: read slot by slot from Transpose, packed, joined with control."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.align import aligner_slot, low_flags
from planezip.hdl.extra_plane import ExtraPlane
from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import PayloadPacker
from planezip.hdl.placement import Placement, block_info, placed_slot
from planezip.hdl.position import PositionEncoder
from planezip.model.format import DEFAULT, Parameters, Tag

__all__ = ["PayloadPath"]

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


class PayloadPath(wiring.Component):
    """A slot a cycle: with ``begin`` in cycle t, slot k is given in t + k + 5.

    Its lengths are added in t + k + 1, it is placed in t + k + 2, read in t + k + 3 and
    merged in t + k + 4.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    begin : In(1), info : In(block_info)
        A block is complete with the end of the cycle.
    kinds_slot, verbatim, positions : In
        Kinds of a slot's units (see PositionEncoder), stored at the end of a cycle with
        ``kinds`` : In(1); slot k not before the lengths of slot k of the block before are
        added.
    tops_slot, tops_width, tops : In
        Top bits of a beat's deltas, taken with ``tops_valid`` : In(1) and ``enable``.
    control_end : In(pointer_bits)
        Where the control string of an even block ends, in the cycle after ``begin``.
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
                "control_end": In(g.pointer_bits),
                "string": In(g.control_ring),
                "read_slot": Out(slot),
                "read_width": Out(width),
                "read_planes": Out(1),
                "data": In(g.beat_bits),
                "slots": Out(stream.Signature(aligner_slot(g))),
                "enable": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Units are chosen and packed; control string, extra plane and payload meet."""
        m = Module()
        g = self._geometry
        args = (g.parameters, g.beats_per_block)
        m.submodules.placement = placement = Placement(*args)
        m.submodules.positions = positions = PositionEncoder(*args)
        m.submodules.packer = packer = PayloadPacker(*args)
        placed, slots = placement.placed, self.slots
        fields = {name: placed_slot(g)[name].shape for name in _MERGED}
        merged = Signal(data.StructLayout(fields), reset_less=True)
        valid = Signal(2)  # in the stages merge and given
        given = Signal(slots.payload.shape(), reset_less=True)
        has_string = Signal(reset_less=True)
        m.d.comb += [
            placement.enable.eq(self.enable),
            placement.begin.eq(self.begin),
            placement.info.eq(self.info),
            placement.kinds.eq(self.kinds),
            placement.kinds_slot.eq(self.kinds_slot),
            placement.verbatim.eq(self.verbatim),
            placement.positions.eq(self.positions),
            placement.control_end.eq(self.control_end),
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
            m.d.sync += [valid.eq(Cat(placement.valid, valid[0]))]
            m.d.sync += [merged[name].eq(placed[name]) for name in _MERGED]
            m.d.sync += [
                given.payload.eq(packer.ring),
                given.payload_start.eq(merged.payload),
                given.payload_low.eq(low_flags(g, merged.payload, "payload")),
                given.control_start.eq(merged.control),
                given.control_low.eq(low_flags(g, merged.control, "control")),
                given.opened.eq((merged.start - 1)[g.pointer_bits - 1]),
                given.end.eq(merged.end - 1),
                given.first.eq(merged.first),
                given.last.eq(merged.last),
                has_string.eq(merged.has_string),
            ]
        control = self.string & has_string.replicate(g.control_ring)
        if Tag.DBX in g.parameters.encodings:
            m.submodules.extra = extra = ExtraPlane(*args)
            m.d.comb += [
                extra.enable.eq(self.enable),
                extra.tops_valid.eq(self.tops_valid),
                extra.tops_slot.eq(self.tops_slot),
                extra.tops_width.eq(self.tops_width),
                extra.tops.eq(self.tops),
                extra.width.eq(merged.width),
                extra.start.eq(merged.extra),
                extra.verbatim.eq(merged.verbatim_extra),
                extra.position.eq(merged.position_extra),
            ]
            control = control | extra.ring
        m.d.comb += [
            slots.valid.eq(valid[1]),
            slots.payload.eq(given),
            slots.payload.control.eq(control),
            self.enable.eq(slots.ready | ~valid[1]),
        ]
        return m
