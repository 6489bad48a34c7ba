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

__all__ = ["ControlBuilder", "control_step", "in_ring"]

_HEADER_BITS = 8 * HEADER_BYTES


def in_ring(string: list[int], origin: int, odd: bool, ring: int) -> int:
    """Software model: ``string`` upwards from ``origin``, or downwards from below it."""
    places = [(origin - 1 - k if odd else origin + k) % ring for k in range(len(string))]
    return sum(bit << at for bit, at in zip(string, places, strict=True))


def control_step(geometry: Geometry) -> data.StructLayout:
    """What :class:`ControlBuilder` takes per slot.

    ``slot``; of the block: ``tag``, ``width``, ``coded`` (it has a tag and more; else only
    a header), ``header`` (a chunk's first block), ``odd``, ``origin`` (stream position of
    the first bit, or behind the last one for odd blocks); of the slot: ``classes`` of its
    planes, ``extra`` (that of DBX's extra plane), ``next_zero`` (as in PlaneCoder),
    ``beat`` (its lowest symbol) and ``flags`` (lanes of non-zero symbols).
    """
    p = geometry.parameters
    return data.StructLayout(
        {
            "slot": range(geometry.beats_per_block),
            "tag": unsigned(TAG_BITS),
            "width": range(max(2, len(p.symbol_bits))),
            "coded": 1,
            "header": 1,
            "odd": 1,
            "origin": unsigned(geometry.pointer_bits),
            "classes": data.ArrayLayout(PlaneClass, geometry.units),
            "extra": PlaneClass,
            "next_zero": 1,
            "beat": unsigned(p.symbol_bits[-1]),
            "flags": unsigned(geometry.lanes),
        }
    )


class ControlBuilder(wiring.Component):
    """Three pipeline stages and a ring; a slot a cycle.

    With the last slot of a block taken in cycle t (counting cycles with ``enable``):
    ``position`` is valid in t + 2, ``string`` from t + 4 until the last slot of the next
    block is four cycles old.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    enable : In(1)
        Everything stands still without it.
    step : In(1)
        ``slot`` is taken.
    slot : In(control_step)
    body_bytes : In(16)
        The header, valid with the slots of a chunk's first block but its last.
    position : Out(pointer_bits)
        Where the control string ends.
    string : Out(control_ring)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        super().__init__(
            {
                "enable": In(1),
                "step": In(1),
                "slot": In(control_step(g)),
                "body_bytes": In(_HEADER_BITS),
                "position": Out(g.pointer_bits),
                "string": Out(g.control_ring),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        ring, last_slot = self._geometry.control_ring, self._geometry.beats_per_block - 1
        collected = Signal(ring, reset_less=True)
        string = Signal(ring, reset_less=True)
        m.d.comb += self.string.eq(string)
        filled = Signal()
        second = Signal()  # a slot is in the second stage, or the third one
        third = Signal()
        slots = [Signal.like(self.slot.slot, name=f"slot_{k}", reset_less=True) for k in (2, 3)]
        odds = [Signal(name=f"odd_{k}", reset_less=True) for k in (2, 3)]
        pieces = [self._other_piece(m, odds[0])]
        if self._geometry.has_planes:
            pieces.append(self._code_piece(m, second, slots[0], odds[0]))
        else:
            self._end_of_head(m, second)
        with m.If(self.enable):
            m.d.sync += [second.eq(self.step), third.eq(second), filled.eq(0)]
            m.d.sync += [slots[0].eq(self.slot.slot), slots[1].eq(slots[0])]
            m.d.sync += [odds[0].eq(self.slot.odd), odds[1].eq(odds[0])]
            with m.If(third):
                kept = collected & (slots[1] != 0).replicate(ring)
                for part in pieces:
                    kept = kept | part
                m.d.sync += [collected.eq(kept), filled.eq(slots[1] == last_slot)]
            with m.If(filled):
                m.d.sync += string.eq(collected)
        return m

    def _head(self) -> Value:
        """Control bits before the codes."""
        g, p, slot = self._geometry, self._geometry.parameters, self.slot
        bits: Value = Const(TAG_BITS)
        for index, w in enumerate(p.symbol_bits):
            for tag in sorted(p.encodings - {Tag.RAW, Tag.BX}):
                here = (slot.width == index) & (slot.tag == tag)
                bits = Mux(here, g.head_bits(tag, w), bits)
        return Mux(slot.coded, bits, 0) + Mux(slot.header, _HEADER_BITS, 0)

    def _from_origin(self, offset: Value) -> Value:
        slot = self.slot
        return Mux(slot.odd, slot.origin - offset, slot.origin + offset)[
            : self._geometry.pointer_bits
        ]

    def _other_piece(self, m: Module, odd: Value) -> Value:
        """Header and tag, base, mask: one piece a slot. Two stages: choose, rotate; then place."""
        earlier = Signal(self._geometry.lanes, reset_less=True)  # flags of the beat before
        options = self._options(m, earlier)
        size = next_power_of_two(max(len(bits) for _, bits, _ in options))
        offset: Value = Const(0)
        for condition, _, at in options:
            offset = Mux(condition, at, offset)
        pieces = [Mux(condition, bits, 0) for condition, bits, _ in options]
        chosen = wire(m, any_of([Const(0, size), *pieces]), "chosen")
        bits = Signal(size, reset_less=True)
        place = Signal(self._geometry.control_ring.bit_length() - 1, reset_less=True)
        turned = Signal(size, reset_less=True)
        start = Signal.like(place, reset_less=True)
        moved = rotated(m, bits, place)
        with m.If(self.step):
            m.d.sync += earlier.eq(self.slot.flags)
        with m.If(self.enable):
            m.d.sync += [
                bits.eq(Mux(self.slot.odd, chosen[::-1], chosen)),
                place.eq(self._from_origin(offset)),
                turned.eq(moved),
                start.eq(place - Mux(odd, size, 0)),
            ]
        return expand(m, turned, start, self._geometry.control_ring)

    def _options(self, m: Module, earlier: Value) -> list[tuple[Value, Value, Value]]:
        """``(condition, bits, offset)`` of the pieces; at most one condition holds."""
        g, p, slot = self._geometry, self._geometry.parameters, self.slot
        header = Mux(slot.header, _HEADER_BITS, 0)
        tag = Mux(slot.coded, slot.tag, 0)
        head = Mux(slot.header, Cat(self.body_bytes, tag), tag)
        behind = wire(m, TAG_BITS + header, "behind")
        is_base = slot.coded & (slot.tag == Tag.DBX)
        base = slot.beat
        for index, w in enumerate(p.symbol_bits):
            base = Mux(slot.width == index, slot.beat[:w], base)
        options: list[tuple[Value, Value, Value]] = []
        if g.beats_per_block > 2:
            options.append((slot.slot == 2, head, Const(0)))
            if Tag.DBX in p.encodings:
                options.append(((slot.slot == 0) & is_base, base, behind))
        elif Tag.DBX in p.encodings:
            whole = Mux(slot.header, Cat(self.body_bytes, tag, base), Cat(tag, base))
            options.append(
                (slot.slot == 0, Mux(is_base, whole, head), Const(0)),
            )
        else:
            options.append((slot.slot == 0, head, Const(0)))
        is_mask = slot.coded & ((slot.tag == Tag.ZVC) | (slot.tag == Tag.ZBX))
        if p.encodings & {Tag.ZVC, Tag.ZBX}:
            for at in range(1, g.beats_per_block, 2):
                for index, w in enumerate(p.symbol_bits):
                    group, symbols = w // g.lane_bits, 2 * g.beat_bits // w
                    flags = Cat(earlier[::group], slot.flags[::group])
                    here = (slot.slot == at) & (slot.width == index) & is_mask
                    options.append((here, flags, behind + symbols * (at // 2)))
        return options

    def _code_piece(self, m: Module, second: Value, slot: Value, odd: Value) -> Value:
        """Codes of a slot. Three stages: form; pack; rotate and place."""
        g, p = self._geometry, self._geometry.parameters
        m.submodules.coder = coder = PlaneCoder(p, g.beats_per_block)
        m.submodules.packer = packer = CodePacker(p, g.beats_per_block)
        run = Signal.like(coder.run_in, reset_less=True)
        formed = Signal(codes(g), reset_less=True)
        present = Signal(reset_less=True)
        begin = Signal(g.pointer_bits, reset_less=True)
        size = next_power_of_two(len(packer.bits))
        bits = Signal(size, reset_less=True)
        start = Signal(g.control_ring.bit_length() - 1, reset_less=True)
        here = self.slot
        is_first = here.slot == 0
        m.d.comb += [
            coder.tag.eq(here.tag),
            coder.width.eq(here.width),
            coder.planes.eq(here.classes),
            coder.extra.eq(here.extra),
            coder.has_extra.eq(is_first & (here.tag == Tag.DBX)),
            coder.next_zero.eq(here.next_zero),
            coder.slot.eq(here.slot),
            coder.run_in.eq(run & ~is_first),
            packer.codes.eq(formed),
        ]
        position = Signal(g.pointer_bits, reset_less=True)
        m.d.comb += self.position.eq(position)
        now = wire(m, Mux(slot == 0, begin, position), "now")
        length = packer.length & present.replicate(len(packer.length))
        text = packer.bits & present.replicate(len(packer.bits))
        with m.If(self.enable):
            m.d.sync += [
                formed.eq(coder.codes),
                present.eq(here.coded & (here.tag != Tag.RAW) & (here.tag != Tag.ZVC)),
                bits.eq(Mux(odd, Cat(text, Const(0, size - len(text)))[::-1], text)),
                start.eq(now - Mux(odd, size, 0)),
            ]
            with m.If(self.step):
                m.d.sync += run.eq(coder.run_out)
            with m.If(self.step & is_first):
                m.d.sync += begin.eq(self._from_origin(self._head()))
            with m.If(second):
                m.d.sync += position.eq(Mux(odd, now - length, now + length))
        return expand(m, rotated(m, bits, start), start, g.control_ring)

    def _end_of_head(self, m: Module, second: Value) -> None:
        """Without planes the control string ends behind the head."""
        begin = Signal(self._geometry.pointer_bits, reset_less=True)
        position = Signal(self._geometry.pointer_bits, reset_less=True)
        m.d.comb += self.position.eq(position)
        with m.If(self.step & (self.slot.slot == 0)):
            m.d.sync += begin.eq(self._from_origin(self._head()))
        with m.If(self.enable & second):
            m.d.sync += position.eq(begin)
