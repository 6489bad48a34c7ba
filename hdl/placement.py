"""Where the payload of a block goes: slot by slot, from its kinds and lengths."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import PayloadPlaces, shares
from planezip.hdl.summary import PlaneClass
from planezip.hdl.wires import wire
from planezip.model.format import DEFAULT, Parameters

__all__ = ["Placement", "block_info", "placed_slot", "symbol_unit"]


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


def placed_slot(geometry: Geometry) -> data.StructLayout:
    """A slot whose payload has its place.

    ``slot``, ``width``, ``planes`` (else symbol order), and kinds of its units, for reading;
    ``places`` of the units; stream positions ``payload`` and ``control`` of the two strings,
    ``start`` and ``end`` of the slot; ``has_string``: the control string belongs to it;
    ``extra``, ``verbatim_extra``, ``position_extra``: place and kind of DBX's extra plane;
    ``first`` and ``last`` of the tensor.
    """
    g = geometry
    return data.StructLayout(
        {
            "slot": range(g.beats_per_block),
            "width": range(max(2, len(g.parameters.symbol_bits))),
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


def _added_slot(geometry: Geometry) -> data.StructLayout:
    """A slot between adding and placing."""
    g = geometry
    return data.StructLayout(
        {
            "slot": range(g.beats_per_block),
            "width": range(max(2, len(g.parameters.symbol_bits))),
            "planes": 1,
            "verbatim": unsigned(g.units),
            "positions": unsigned(g.units),
            "end": unsigned(g.pointer_bits),
            "has_string": 1,
            "verbatim_extra": 1,
            "position_extra": 1,
            "first": 1,
            "last": 1,
        }
    )


class Placement(wiring.Component):
    """A slot a cycle: with ``begin`` in cycle t, slot k is ``placed`` in t + k + 3.

    Its lengths are added up in t + k + 1; the sums meet the place in t + k + 2.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    enable : In(1)
        Everything stands still without it.
    begin, info, kinds, kinds_slot, verbatim, positions, control_end : In
        As in :class:`~planezip.hdl.payload_path.PayloadPath`.
    valid : Out(1), placed : Out(placed_slot)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        super().__init__(
            {
                "enable": In(1),
                "begin": In(1),
                "info": In(block_info(g)),
                "kinds": In(1),
                "kinds_slot": In(range(g.beats_per_block)),
                "verbatim": In(g.units),
                "positions": In(g.units),
                "control_end": In(g.pointer_bits),
                "valid": Out(1),
                "placed": Out(placed_slot(g)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        self._add(m)
        self._place(m)
        return m

    def _add(self, m: Module) -> None:
        """Lengths of the units of a slot, added up; where the payload of a block starts."""
        g, unit = self._geometry, symbol_unit(self._geometry)
        m.submodules.places = places = PayloadPlaces(g.parameters, g.beats_per_block)
        self._places = places
        info = self._info = Signal(block_info(g), reset_less=True)
        position_bits = Signal(range(g.symbols.bit_length()), reset_less=True)
        share = Signal.like(places.shares, reset_less=True)
        kinds = [
            Signal(2 * g.units, name=f"kinds_{k}", reset_less=True)
            for k in range(g.beats_per_block)
        ]
        valid = Signal()
        slot = Signal(range(g.beats_per_block))
        whole = g.beat_bits // unit
        first, last = slot == 0, slot == g.beats_per_block - 1
        for k, line in enumerate(kinds):
            with m.If(self.kinds & (self.kinds_slot == k)):
                m.d.sync += line.eq(Cat(self.verbatim, self.positions))
        with m.If(self.begin):
            m.d.sync += [
                info.eq(self.info),
                position_bits.eq(_log2_ceil(self.info.plane_bits)),
                share.eq(shares(self.info.plane_bits, g)),
            ]
        with m.If(self.enable & ~self.begin & valid):
            m.d.sync += info.left.eq(Mux(info.left > whole, info.left - whole, 0))
        kind_line = wire(m, Array(kinds)[slot], "kinds")
        verbatim, positions = kind_line[: g.units], kind_line[g.units :]
        m.d.comb += [
            places.enable.eq(self.enable),
            places.width.eq(info.width),
            places.planes.eq(info.planes),
            places.verbatim.eq(verbatim),
            places.positions.eq(positions),
            places.shares.eq(share),
            places.position_bits.eq(position_bits),
            places.symbol_bits.eq(Mux(info.left >= whole, g.beat_bits, info.left * unit)),
        ]
        kind = info.extra_class.as_value()
        is_verbatim = info.extra & (kind == PlaneClass.VERBATIM.value)
        is_position = info.extra & kind[0] & kind[2]
        extra_bits = Mux(is_verbatim, info.plane_bits, Mux(is_position, position_bits, 0))
        extra_start = wire(m, Mux(info.odd, info.begin, self.control_end), "extra_start")
        added = self._added = Signal(_added_slot(g), reset_less=True)
        self._added_valid = Signal()
        self._starts = Signal(2 * g.pointer_bits, reset_less=True)  # of the extra plane, the rest
        with m.If(self.enable):
            m.d.sync += [
                valid.eq(self.begin | valid & ~last),
                self._added_valid.eq(valid),
                self._starts.eq(Cat(extra_start, (extra_start + extra_bits)[: g.pointer_bits])),
                added.slot.eq(slot),
                added.width.eq(info.width),
                added.planes.eq(info.planes),
                added.verbatim.eq(verbatim),
                added.positions.eq(positions),
                added.end.eq(info.end),
                added.has_string.eq(Mux(first, ~info.odd, last & info.odd)),
                added.verbatim_extra.eq(first & is_verbatim),
                added.position_extra.eq(first & is_position),
                added.first.eq(first & info.first),
                added.last.eq(last & info.last),
            ]
            with m.If(valid):
                m.d.sync += slot.eq(slot + 1)

    def _place(self, m: Module) -> None:
        """Where the units of a slot go."""
        g, places, added = self._geometry, self._places, self._added
        begin = self._info.begin  # the next block's is not there yet when slot 0 is placed
        place = Signal(g.pointer_bits, reset_less=True)
        first, last = added.slot == 0, added.slot == g.beats_per_block - 1
        start = wire(m, Mux(first, self._starts[g.pointer_bits :], place), "start")
        m.d.comb += places.start.eq(start)
        placed = Signal(placed_slot(g), reset_less=True)
        valid = Signal()
        m.d.comb += [self.valid.eq(valid), self.placed.eq(placed)]
        same = set(_added_slot(g).members) - {"end"}
        with m.If(self.enable):
            m.d.sync += [placed[name].eq(added[name]) for name in sorted(same)]
            m.d.sync += [
                valid.eq(self._added_valid),
                place.eq(places.end),
                placed.places.eq(places.places),
                placed.payload.eq(start),
                placed.control.eq(Mux(first, begin, places.end)),
                placed.start.eq(Mux(first, begin, place)),
                placed.end.eq(Mux(last, added.end, places.end)),
                placed.extra.eq(self._starts),
            ]


def _log2_ceil(value: Value) -> Value:
    """ceil(log2(value)); 0 for 0 and 1."""
    result: Value = Const(0)
    for bits in range(1, len(value)):
        result = Mux(value > 1 << (bits - 1), bits, result)
    return result
