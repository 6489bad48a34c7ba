"""Control strings of pass 2: header, tag, mask or base, codes, built at their place.

The place of a block in the stream is known before its data (pass 1 counted its bits), so
the string is collected in a ring at its final place: upwards from the block's start for
even blocks, downwards from its end for odd ones (docs/format.md, Coded body). Each cycle
adds the codes of a slot and one other piece.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry, next_power_of_two
from planezip.hdl.payload import expand
from planezip.hdl.plane_coder import CodePacker, PlaneCoder, codes
from planezip.hdl.summary import PlaneClass
from planezip.hdl.wires import any_of, rotated, wire
from planezip.model.format import DEFAULT, HEADER_BYTES, TAG_BITS, Parameters, Tag

__all__ = ["ControlBuilder", "in_ring", "slot_classes", "slot_place"]

_HEADER_BITS = 8 * HEADER_BYTES


def in_ring(string: list[int], origin: int, odd: bool, ring: int) -> int:
    """Software model: ``string`` upwards from ``origin``, or downwards from below it."""
    places = [(origin - 1 - k if odd else origin + k) % ring for k in range(len(string))]
    return sum(bit << at for bit, at in zip(string, places, strict=True))


def slot_place(geometry: Geometry) -> data.StructLayout:
    """A slot, and the control string of its block.

    ``slot`` in the block; of the block: ``tag``, ``width``, ``coded`` (it has a tag and
    more; else only a header), ``header`` (a chunk's first block), ``odd``, ``origin``
    (stream position of the first bit, or behind the last one for odd blocks).
    """
    return data.StructLayout(
        {
            "slot": range(geometry.beats_per_block),
            "tag": unsigned(TAG_BITS),
            "width": range(max(2, len(geometry.parameters.symbol_bits))),
            "coded": 1,
            "header": 1,
            "odd": 1,
            "origin": unsigned(geometry.pointer_bits),
        }
    )


def slot_classes(geometry: Geometry) -> data.StructLayout:
    """``classes`` of a slot's planes, ``extra`` (DBX's extra plane), ``next_zero`` (PlaneCoder)."""
    return data.StructLayout(
        {
            "classes": data.ArrayLayout(PlaneClass, geometry.units),
            "extra": PlaneClass,
            "next_zero": 1,
        }
    )


class ControlBuilder(wiring.Component):
    """Five pipeline stages and a ring; a slot a cycle.

    The classes of a slot are taken before its beat (``front``), its place with the beat
    (``take``); what the beat itself adds is valid a cycle later (counting cycles with
    ``enable``). With the last slot's beat taken in cycle t: ``end`` is valid in t + 1,
    ``string`` from t + 5 until the last slot of the next block is 4 cycles old.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    enable : In(1)
        Everything stands still without it, also ``take``.
    front : In(1), classes : In(slot_classes), place : In(slot_place)
        The classes of a slot and their place, of which ``origin`` does not matter.
    take : In(1), held : In(slot_place)
        The slot whose classes were taken last has its beat; ``held`` is its place from the
        cycle after ``take`` on.
    beat : In(widest symbol), flags : In(lanes)
        Its lowest symbol; its lanes of non-zero symbols.
    body_bytes : In(16)
        The header, as long as slots of a chunk's first block but its last are ``held``.
    end : Out(pointer_bits)
        Where the codes of the slot in ``held`` end.
    string : Out(control_ring)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        super().__init__(
            {
                "enable": In(1),
                "front": In(1),
                "classes": In(slot_classes(g)),
                "place": In(slot_place(g)),
                "take": In(1),
                "held": In(slot_place(g)),
                "beat": In(parameters.symbol_bits[-1]),
                "flags": In(g.lanes),
                "body_bytes": In(_HEADER_BITS),
                "end": Out(g.pointer_bits),
                "string": Out(g.control_ring),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        ring, last_slot = self._geometry.control_ring, self._geometry.beats_per_block - 1
        collected = Signal(ring, reset_less=True)
        string = Signal(ring, reset_less=True)
        position = Signal(self._geometry.pointer_bits, reset_less=True)
        m.d.comb += self.string.eq(string)
        self._second = second = Signal()  # the slot in `held` is in the stage after `take`
        begins = Signal(2, reset_less=True)  # a first slot is in the third and fourth stage
        ends = Signal(3)  # a last one is, or has just left
        other = self._other_piece(m)
        now = self._begin(m, position)
        code = self._code_piece(m, now)
        kept = collected & (~begins[1]).replicate(ring)
        with m.If(self.enable):
            m.d.sync += [
                second.eq(self.take),
                begins.eq(Cat(second & (self.held.slot == 0), begins[0])),
                ends.eq(Cat(second & (self.held.slot == last_slot), ends[:2])),
                collected.eq(kept | other | code),
            ]
            with m.If(second):
                m.d.sync += position.eq(self.end)
            with m.If(ends[2]):
                m.d.sync += string.eq(collected)
        return m

    def _head(self) -> Value:
        """Control bits before the codes."""
        g, p, slot = self._geometry, self._geometry.parameters, self.held
        bits: Value = Const(TAG_BITS)
        for index, w in enumerate(p.symbol_bits):
            for tag in sorted(p.encodings - {Tag.RAW, Tag.BX}):
                here = (slot.width == index) & (slot.tag == tag)
                bits = Mux(here, g.head_bits(tag, w), bits)
        return Mux(slot.coded, bits, 0) + Mux(slot.header, _HEADER_BITS, 0)

    def _from_origin(self, offset: Value) -> Value:
        slot = self.held
        return Mux(slot.odd, slot.origin - offset, slot.origin + offset)

    def _other_piece(self, m: Module) -> Value:
        """Header and tag, base, mask: one piece a slot. Stages: choose; rotate; place."""
        ring = self._geometry.control_ring
        earlier = Signal(self._geometry.lanes, reset_less=True)  # flags of the beat before
        options = self._options(m, earlier)
        size = next_power_of_two(max(len(bits) for _, bits, _ in options))
        offset: Value = Const(0)
        for condition, _, at in options:
            offset = Mux(condition, at, offset)
        pieces = [Mux(condition & self._second, bits, 0) for condition, bits, _ in options]
        chosen = wire(m, any_of([Const(0, size), *pieces]), "chosen")
        bits = Signal(size, reset_less=True)
        start = Signal(ring.bit_length() - 1, reset_less=True)
        with m.If(self.enable & self._second):
            m.d.sync += earlier.eq(self.flags)
        with m.If(self.enable):
            m.d.sync += [
                bits.eq(Mux(self.held.odd, chosen[::-1], chosen)),
                start.eq(self._from_origin(offset) - Mux(self.held.odd, size, 0)),
            ]
        return self._placed(m, bits, start)

    def _options(self, m: Module, earlier: Value) -> list[tuple[Value, Value, Value]]:
        """``(condition, bits, offset)`` of the pieces; at most one condition holds."""
        g, p, slot = self._geometry, self._geometry.parameters, self.held
        tag = Mux(slot.coded, slot.tag, 0)
        head = Mux(slot.header, Cat(self.body_bytes, tag), tag)
        behind = wire(m, TAG_BITS + Mux(slot.header, _HEADER_BITS, 0), "behind")
        is_base = slot.coded & (slot.tag == Tag.DBX)
        base: Value = self.beat
        for index, w in enumerate(p.symbol_bits):
            base = Mux(slot.width == index, self.beat[:w], base)
        options: list[tuple[Value, Value, Value]] = []
        if g.beats_per_block > 2:
            options.append((slot.slot == 2, head, Const(0)))
            if Tag.DBX in p.encodings:
                options.append(((slot.slot == 0) & is_base, base, behind))
        elif Tag.DBX in p.encodings:
            whole = Mux(slot.header, Cat(self.body_bytes, tag, base), Cat(tag, base))
            options.append((slot.slot == 0, Mux(is_base, whole, head), Const(0)))
        else:
            options.append((slot.slot == 0, head, Const(0)))
        is_mask = slot.coded & ((slot.tag == Tag.ZVC) | (slot.tag == Tag.ZBX))
        if p.encodings & {Tag.ZVC, Tag.ZBX}:
            for at in range(1, g.beats_per_block, 2):
                for index, w in enumerate(p.symbol_bits):
                    group, symbols = w // g.lane_bits, 2 * g.beat_bits // w
                    flags = Cat(earlier[::group], self.flags[::group])
                    here = (slot.slot == at) & (slot.width == index) & is_mask
                    options.append((here, flags, behind + symbols * (at // 2)))
        return options

    def _begin(self, m: Module, position: Value) -> Value:
        """Where the codes of the slot in the second stage begin."""
        first = self._from_origin(self._head())
        return wire(m, Mux(self.held.slot == 0, first, position)[: len(position)], "now")

    def _code_piece(self, m: Module, now: Value) -> Value:
        """Codes of a slot. Stages: form; pack; where they begin and end; rotate; place."""
        g, p = self._geometry, self._geometry.parameters
        if not g.has_planes:
            m.d.comb += self.end.eq(now)
            return Const(0)
        m.submodules.coder = coder = PlaneCoder(p, g.beats_per_block)
        m.submodules.packer = packer = CodePacker(p, g.beats_per_block)
        run = Signal.like(coder.run_in, reset_less=True)
        formed = Signal(codes(g), reset_less=True)
        size = next_power_of_two(len(packer.bits))
        text = Signal(size, reset_less=True)
        length = Signal.like(packer.length, reset_less=True)
        bits = Signal(size, reset_less=True)
        start = Signal(g.control_ring.bit_length() - 1, reset_less=True)
        here, odd = self.place, self.held.odd
        is_first = here.slot == 0
        has_planes = here.coded & (here.tag != Tag.RAW) & (here.tag != Tag.ZVC)
        made = Cat(Value.cast(code) for code in coder.codes)
        m.d.comb += [
            coder.tag.eq(here.tag),
            coder.width.eq(here.width),
            coder.planes.eq(self.classes.classes),
            coder.extra.eq(self.classes.extra),
            coder.has_extra.eq(is_first & (here.tag == Tag.DBX)),
            coder.next_zero.eq(self.classes.next_zero),
            coder.slot.eq(here.slot),
            coder.run_in.eq(run & ~is_first),
            packer.codes.eq(formed),
            self.end.eq(Mux(odd, now - length, now + length)),
        ]
        with m.If(self.front):
            m.d.sync += [
                run.eq(coder.run_out),
                formed.as_value().eq(made & has_planes.replicate(len(made))),
            ]
        with m.If(self.take):
            m.d.sync += [text.eq(packer.bits), length.eq(packer.length)]
        there = text & self._second.replicate(size)
        with m.If(self.enable):
            m.d.sync += [
                bits.eq(Mux(odd, there[::-1], there)),
                start.eq(now - Mux(odd, size, 0)),
            ]
        return self._placed(m, bits, start)

    def _placed(self, m: Module, bits: Value, start: Value) -> Value:
        """``bits`` at ``start`` of the ring, a stage later."""
        turned, place = Signal.like(bits, reset_less=True), Signal.like(start, reset_less=True)
        rotation = rotated(m, bits, start)
        with m.If(self.enable):
            m.d.sync += [turned.eq(rotation), place.eq(start)]
        return expand(m, turned, place, self._geometry.control_ring)
