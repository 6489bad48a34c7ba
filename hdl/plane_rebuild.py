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

LATENCY = 2


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
        The mask, 6 cycles before the first slot, in phases 0 to 3.
    slot : In(:func:`planezip.hdl.unpack.unpacked_slot`)
        Slot 0 in phase 2.
    planes : Out(:func:`rebuilt_slot`)
        Slot 0 in phase 0.
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
            },
            "planes",
        )
        # XOR from the top plane down.
        above = Signal(g.symbols, reset_less=True)
        pre, lowest = self._chain(m, r["width"], r.pop("x"), r.pop("erased"), above, r["order"])
        m.d.sync += above.eq(Mux(self.phase == 2, extra, lowest))  # slot 0 comes in phase 2
        r = registers(m, {**r, "pre": pre}, "xored")
        # Expansion, and room for the base.
        pre = r.pop("pre")
        if Tag.ZBX in g.parameters.encodings:
            control = self._control(m)
            for level in reversed(range(expansion_levels(g.parameters))):
                pre = moved(m, pre, control.moves[level], level)
        r["data"] = Mux(r["dbx"], self._with_base(r["width"], pre, r.pop("base")), pre)
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
        """Planes, those before the XOR all zero, DBX's top plane, and a wrong position.

        Made in pieces: a plane of the narrower symbols has two of them.
        """
        g, slot = self._geometry, self.slot
        size = g.piece
        twice = [i for i, w in enumerate(g.parameters.symbol_bits) if 2 * w == size]
        two = wire(m, any_of([Const(0, 1), *[slot.width == i for i in twice]]), "two")
        room = wire(m, Cat(slot.n > k for k in range(g.symbols)), "room")
        field = wire(m, Cat(slot.field > k for k in range(g.symbols.bit_length() - 1)), "field")
        less = wire(m, (slot.n - (slot.n != 0))[: len(slot.n)], "less")
        kinds = [slot.classes[k : k + 3] for k in range(0, len(slot.classes), 3)]
        data = [slot.data[k : k + size] for k in range(0, g.slot, size)]
        bits = size.bit_length() - 1
        upper_room = wire(m, Mux(two, room[size:], room[:size]), "upper_room") if twice else room
        planes: list[Value] = []
        wrong: list[Value] = []

        def made(kind: Value, piece: Value, place: Value, one: Value, before: Value) -> Value:
            """A piece from a one at its place; ``before``: that of the bit below it."""
            is_pair = wire(m, kind == 0b101, "is_pair")
            has_place = kind[0] & kind[2]
            wrong.append(has_place & (place >= Mux(is_pair, less, slot.n)))
            count = len(piece)
            pair = Cat(before, one)[:count] & is_pair.replicate(count)
            point = (one | pair) & has_place.replicate(count)
            copied = (kind == 0b000).replicate(count) & piece
            return copied | (kind == 0b100).replicate(count) | point

        below: Value = Const(0, 1)
        for k, piece in enumerate(data):
            odd = bool(twice and k % 2)
            first = data[k - 1] if odd else piece
            low = Mux(two, first[:bits], piece[:bits]) if odd else piece[:bits]
            place = wire(m, Cat(low & field[:bits], first[bits : bits + 1] & field[bits:]), "place")
            # Of a plane of two pieces, only one has the place.
            here = ((place[bits:].any() | ~two) if odd else ~place[bits:].any()) if twice else 1
            one = wire(m, Mux(here, Const(1, size) << place[:bits], 0)[:size], "one")
            kind = kinds[k // 2] if k >= len(kinds) else kinds[k]
            if twice and k < len(kinds):
                kind = wire(m, Mux(two, kinds[k // 2], kinds[k]), "kind")
            before = below if odd else Const(0, 1)
            planes.append(
                made(kind, piece, place, one, before) & (upper_room if odd else room)[:size]
            )
            below = one[-1] & two
        count = len(slot.extra)
        place = wire(m, slot.extra[: len(field)] & field, "place")
        one = wire(m, (Const(1, count + 1) << place)[:count], "one")
        extra = made(Value.cast(slot.top), slot.extra, place, one, Const(0, 1)) & room[:count]
        erased = Cat(kind[2] & kind[1] & ~kind[0] for kind in kinds)
        return Cat(planes), erased, extra, ~slot.order & Cat(wrong).any()

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
