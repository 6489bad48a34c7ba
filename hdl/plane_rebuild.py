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
from planezip.hdl.unpack import unpacked_slot
from planezip.hdl.wires import any_of, registers, wire
from planezip.model.format import DEFAULT, Parameters, Tag

__all__ = ["LATENCY", "PlaneRebuild", "expand", "expansion_moves", "rebuilt_slot"]

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


def expand(value: int, mask: int) -> int:
    """Software model: the low bits of ``value``, in order, at the places of ``mask``'s ones."""
    result = 0
    for k in range(mask.bit_length()):
        if mask >> k & 1:
            result |= (value & 1) << k
            value >>= 1
    return result


def expansion_moves(mask: int, bits: int) -> list[int]:
    """Software model of the network's controls: level k moves bits up by 2**k where a one is.

    The highest level acts first. Bit i at the end has come from i minus the zeros below
    it; seen from there (lowest level first) it moves down by 2**k if bit k of that number
    is set: parity of the zeros that are left.
    """
    moves, zeros = [], ~mask << 1 & ((1 << bits) - 1)
    for level in range(bits.bit_length() - 1):
        parity = zeros
        for k in range(bits.bit_length() - 1):
            parity ^= parity << (1 << k) & ((1 << bits) - 1)
        move = parity & mask
        moves.append(move)
        mask = (mask ^ move) | move >> (1 << level)
        zeros &= ~parity
    return moves


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
        moves, kept = self._moves(m)
        pre = r.pop("pre")
        levels = len(moves)
        half = levels // 2
        for level in reversed(range(half, levels)):
            pre = self._move(m, pre, moves[level], level)
        r = registers(m, {**r, "pre": pre}, "expanded")
        pre = r.pop("pre")
        for level in reversed(range(half)):
            pre = self._move(m, pre, moves[level], level)
        if moves:
            pre = wire(m, pre & kept.replicate(g.slot // g.symbols), "kept")
        r["data"] = Mux(r["dbx"], self._with_base(r["width"], pre, r.pop("base")), pre)
        r = registers(m, r, "out")
        m.d.comb += [Value.cast(getattr(self.planes, k)).eq(value) for k, value in r.items()]
        return m

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

    def _moves(self, m: Module) -> tuple[list[Value], Value]:
        """Controls of the expansion for the slots in it, level by level, and the places kept.

        Found in three steps of two levels, in the cycles between the mask and its first slot.
        """
        g, block = self._geometry, self.block
        size = g.symbols
        if Tag.ZBX not in g.parameters.encodings:
            return [], Const(0, size)
        wide = Const(0, 1)
        mask: Value = block.mask
        if len(g.parameters.symbol_bits) == 2:  # two planes of the wider symbols side by side
            wide = block.width == 1
            mask = wire(m, Mux(wide, block.mask[: size // 2].replicate(2), block.mask), "mask")
        mask = wire(m, mask | (~block.zbx).replicate(size), "mask")
        # Two levels per step; step k ends with a phase of its own (3, 0, 1), so that what a
        # step reads holds; levels are used from phase 1 (upper half) and 2 (lower half) on.
        state = {"mask": mask, "left": mask, "wide": wide}
        state["zeros"] = wire(m, (~mask << 1)[:size] & self._apart(wide, 1), "zeros")
        levels = size.bit_length() - 1
        for step, phase in enumerate((3, 0, 1)):
            for level in range(2 * step, min(2 * step + 2, levels)):
                parity = state["zeros"]
                for k in range(levels):
                    up = (parity << (1 << k))[:size] & self._apart(state["wide"], 1 << k)
                    parity = wire(m, parity ^ up, "parity")
                move = wire(m, parity & state["left"], "move")
                state[f"move_{level}"] = move
                state["left"] = wire(m, (state["left"] ^ move) | (move >> (1 << level)), "left")
                state["zeros"] = wire(m, state["zeros"] & ~parity, "zeros")
            state = registers(m, state, f"moves_{step}", self.phase == phase)
        half = levels // 2
        upper = {k: state[f"move_{k}"] for k in range(half, levels)}
        lower = {k: state[f"move_{k}"] for k in range(half)}
        used = registers(m, upper, "upper", self.phase == 0)
        late = registers(m, {**lower, "mask": state["mask"]}, "lower", self.phase == 1)
        return [(late if k < half else used)[k] for k in range(levels)], late["mask"]

    def _apart(self, wide: Value, places: int) -> Value:
        """Mask of a shift by ``places`` that must not leave a plane of the wider symbols."""
        half = self._geometry.symbols // 2
        if places >= half:
            return Cat(Const(0, half), (~wide).replicate(half))
        ones = Const((1 << half) - 1, half)
        return Cat(ones, (~wide).replicate(places), Const(-1, half - places))

    def _move(self, m: Module, planes: Value, move: Value, level: int) -> Value:
        size = self._geometry.symbols
        parts = [planes[k : k + size] for k in range(0, len(planes), size)]
        return wire(
            m,
            Cat((part & ~move) | ((part << (1 << level))[:size] & move) for part in parts),
            "moved",
        )

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
