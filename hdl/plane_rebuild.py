"""Plane rebuild: classes and pieces of a slot become planes before the XOR, symbol by symbol.

Plane generation, inverse XOR from plane to plane, expansion of ZBX (the compacted bits
move to the places that the mask names, the same network for every plane of a block), and
DBX's base in the place of a first delta.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import parsed_block, slot_geometry
from planezip.hdl.delta import width_shape
from planezip.hdl.expansion import ExpansionControl, expansion_levels, moved
from planezip.hdl.unpack import unpacked_slot
from planezip.hdl.wires import any_of, registers, wire
from planezip.model.format import DEFAULT, Parameters, Tag

__all__ = ["LATENCY", "PlaneRebuild", "rebuilt_slot"]

LATENCY = 4


def rebuilt_slot(parameters: Parameters) -> data.StructLayout:
    """``data``: planes before the XOR, top one first, a bit per symbol; or symbols (``order``).

    ``misplaced``: a position past the plane's width; ``padding`` as in
    :func:`planezip.hdl.unpack.unpacked_slot`.
    """
    return data.StructLayout(
        {
            "valid": 1,
            "width": width_shape(parameters),
            "order": 1,
            "dbx": 1,
            "misplaced": 1,
            "padding": 1,
            "data": unsigned(slot_geometry(parameters).slot),
        }
    )


class PlaneRebuild(wiring.Component):
    """A slot a cycle, latency ``LATENCY`` cycles.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    phase : In(2)
    block : In(:func:`planezip.hdl.decoder_types.parsed_block`)
        The mask, 7 cycles before the first slot, in phases 0 to 3.
    slot : In(:func:`planezip.hdl.unpack.unpacked_slot`)
        Slot 0 in phase 3.
    planes : Out(:func:`rebuilt_slot`)
        Slot 0 in phase 3.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = slot_geometry(parameters)
        super().__init__(
            {
                "phase": In(2),
                "block": In(parsed_block(parameters, beats_per_block)),
                "slot": In(unpacked_slot(parameters)),
                "planes": Out(rebuilt_slot(parameters)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g, slot = self._geometry, self.slot
        flags = {name: getattr(slot, name) for name in ("valid", "width", "order", "dbx")}
        # Planes.
        planes, erased, extra, misplaced = self._planes(m)
        r = registers(
            m,
            {
                **flags,
                "misplaced": misplaced,
                "padding": slot.padding,
                "base": slot.base,
                "x": Mux(slot.order, self._symbols(), planes),
                "erased": erased,
                "extra": extra,
            },
            "planes",
        )
        # XOR from the top plane down.
        above = Signal(g.symbols, reset_less=True)
        start = wire(m, Mux(self.phase == 0, r.pop("extra"), above), "start")
        pre, lowest = self._chain(m, r["width"], r.pop("x"), r.pop("erased"), start, r["order"])
        m.d.sync += above.eq(lowest)
        r = registers(m, {**r, "pre": pre}, "xored")
        # Expansion, and room for the base.
        pre = r.pop("pre")
        has_zbx = Tag.ZBX in g.parameters.encodings
        if has_zbx:
            control = self._control(m)
            levels = expansion_levels(g.parameters)
            for level in reversed(range(levels // 2, levels)):
                pre = moved(m, pre, control.moves[level], level)
        r = registers(m, {**r, "pre": pre}, "expanded")
        pre = r.pop("pre")
        if has_zbx:
            for level in reversed(range(levels // 2)):
                pre = moved(m, pre, control.moves[level], level)
            pre = wire(m, pre & control.kept.replicate(g.slot // g.symbols), "kept")
        r["data"] = Mux(r["dbx"], self._with_base(r["width"], pre, r.pop("base")), pre)
        r = registers(m, r, "out")
        m.d.comb += [Value.cast(getattr(self.planes, k)).eq(value) for k, value in r.items()]
        return m

    def _control(self, m: Module) -> ExpansionControl:
        g = self._geometry
        m.submodules.control = control = ExpansionControl(g.parameters)
        two = len(g.parameters.symbol_bits) == 2
        m.d.comb += [
            control.phase.eq(self.phase),
            control.mask.eq(self.block.mask),
            control.on.eq(self.block.zbx),
            control.wide.eq((self.block.width == 1) if two else 0),
        ]
        return control

    def _symbols(self) -> Value:
        """The slot's data with the dropped symbols zero."""
        g, slot = self._geometry, self.slot
        options = [
            Mux(
                slot.width == i,
                slot.data & Cat(slot.keep[k].replicate(w) for k in range(g.slot // w)),
                0,
            )
            for i, w in enumerate(g.parameters.symbol_bits)
        ]
        return any_of(options)

    def _planes(self, m: Module) -> tuple[Value, Value, Value, Value]:
        """Planes, those before the XOR all zero, DBX's top plane, and a wrong position."""
        g, slot = self._geometry, self.slot
        room = wire(m, Cat(slot.n > k for k in range(g.symbols)), "room")
        field = wire(m, Cat(slot.field > k for k in range(g.symbols.bit_length() - 1)), "field")
        planes: list[Value] = []
        extras: list[Value] = []
        wrong: list[Value] = []
        for i, w in enumerate(g.parameters.symbol_bits):
            n, here = g.parameters.symbols(w), slot.width == i
            items = [
                (slot.classes[3 * k : 3 * k + 3], slot.data[k * n : (k + 1) * n])
                for k in range(w // g.slots)
            ]
            items.append((Value.cast(slot.top), slot.extra[: n - 1]))
            made = []
            for kind, piece in items:
                plane, past = _plane(m, kind, piece, room[: len(piece)], field, n)
                made.append(plane)
                wrong.append(here & ~slot.order & past)
            planes.append(Cat(made[:-1]) & here.replicate(g.slot))
            extras.append(Mux(here, made[-1], 0))
        erased = Cat(
            slot.classes[3 * k + 2] & slot.classes[3 * k + 1] & ~slot.classes[3 * k]
            for k in range(g.widest // g.slots)
        )
        return any_of(planes), erased, any_of(extras), Cat(wrong).any()

    def _chain(
        self, m: Module, width: Value, x: Value, erased: Value, start: Value, order: Value
    ) -> tuple[Value, Value]:
        g = self._geometry
        options: list[Value] = []
        lowest: list[Value] = []
        for i, w in enumerate(g.parameters.symbol_bits):
            n = g.parameters.symbols(w)
            pre, above = [], start[:n]
            for k in range(w // g.slots):
                plane = x[k * n : (k + 1) * n]
                above = wire(m, (plane ^ above) & ~erased[k].replicate(n), "pre")
                pre.append(above)
            here = width == i
            options.append(Cat(pre) & (here & ~order).replicate(g.slot))
            lowest.append(Mux(here, above, 0))
        options.append(x & order.replicate(g.slot))
        return any_of(options), any_of(lowest)

    def _with_base(self, width: Value, planes: Value, base: Value) -> Value:
        g = self._geometry
        options = []
        for i, w in enumerate(g.parameters.symbol_bits):
            n = g.parameters.symbols(w)
            made = Cat(Cat(base[k], planes[k * n : (k + 1) * n - 1]) for k in range(w // g.slots))
            options.append(made & (width == i).replicate(g.slot))
        return any_of(options)


def _plane(
    m: Module, kind: Value, piece: Value, room: Value, field: Value, n: int
) -> tuple[Value, Value]:
    """A plane of up to ``n`` bits (``room``: those it has) and whether its position is wrong."""
    bits = n.bit_length() - 1
    place = wire(m, piece[:bits] & field[:bits], "place")
    one = wire(m, Const(1, n) << place, "one")[:n]
    pair = (kind == 0b101).replicate(n + 1) & (Cat(Const(0, 1), one))
    point = wire(m, (Cat(one, Const(0, 1)) | pair) & (kind[0] & kind[2]).replicate(n + 1), "point")
    room = Cat(room, Const(0, n + 1 - len(room)))
    copied = ((kind == 0b000).replicate(len(piece)) & piece) | (kind == 0b100).replicate(len(piece))
    plane = wire(m, ((Cat(copied, Const(0, n + 1 - len(copied))) | point) & room)[:n], "plane")
    return plane, wire(m, (point & ~room).any(), "past")
