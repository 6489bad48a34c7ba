"""Unpack: the payload of a block, read from the ring slot by slot, each piece at its place.

A slot is the payload of a quarter of the planes (or symbols) of a block. Its pieces have
lengths of their own (a plane, a position, nothing); the words that hold them are aligned
to the slot's first bit, then the upper half moves to its place, then the upper quarters
of both halves, and so on: a piece never moves further than its slot is long.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import DecoderGeometry, parsed_block
from planezip.hdl.wires import any_of, wire
from planezip.model.format import DEFAULT, Parameters, log2_ceil

__all__ = ["GUARD_BITS", "Unpack", "pieces", "unpacked_slot"]

GUARD_BITS = 8  # read before the payload: the padding of a chunk may end there
LATENCY = 7  # cycles from a block to its first slot


def unpacked_slot(parameters: Parameters) -> data.StructLayout:
    """A slot: ``data`` (pieces at their places), ``extra`` (piece of DBX's top plane, slot 0).

    ``classes`` of its planes, ``keep`` a bit per symbol of the narrowest width (the symbol is not
    zero); ``base``: a bit of DBX's base per plane; ``padding``: a bit of the chunk's
    padding is set.
    """
    g = DecoderGeometry(parameters)
    block = parsed_block(parameters)
    planes = g.widest // g.beats
    fields = ("valid", "width", "order", "dbx", "zbx", "top", "n", "field")
    return data.StructLayout(
        {
            **{name: block[name].shape for name in fields},
            "data": unsigned(g.beat),
            "extra": unsigned(g.symbols - 1),
            "classes": unsigned(3 * planes),
            "keep": unsigned(g.symbols // g.beats),
            "base": unsigned(planes),
            "padding": 1,
        }
    )


def pieces(payload: int, lengths: list[int], size: int) -> int:
    """Software model: pieces of ``lengths`` bits, one after the other in ``payload``, each
    moved to a place of ``size`` bits of its own (bits above a piece's length: zero)."""
    result = at = 0
    for k, length in enumerate(lengths):
        result |= (payload >> at & ((1 << length) - 1)) << k * size
        at += length
    return result


class Unpack(wiring.Component):
    """A slot a cycle; slot k of a block leaves ``LATENCY`` + k cycles after phase 0 of ``block``.

    Bits of ``data`` above a piece are not cleared.

    Parameters
    ----------
    parameters : Parameters

    Attributes
    ----------
    phase : In(2)
    block : In(:func:`planezip.hdl.decoder_types.parsed_block`)
        Holds in phases 0 to 3.
    word : Out
        In phases 1 to 3: first of the four words of the ring to be read.
    data : In
        The banks, one cycle later.
    slot : Out(:func:`unpacked_slot`)
    """

    def __init__(self, parameters: Parameters = DEFAULT) -> None:
        self._geometry = g = DecoderGeometry(parameters)
        super().__init__(
            {
                "phase": In(2),
                "block": In(parsed_block(parameters)),
                "word": Out(g.word_bits),
                "data": In(g.wire),
                "slot": Out(unpacked_slot(parameters)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        lengths = self._lengths(m)
        # One cycle later: sums of the lengths, and the position of the slot.
        r = _registers(m, {**self._fields(), **lengths}, "summed")
        eighths = [r.pop(f"length_{k}") for k in range(8)]
        pairs = [wire(m, eighths[k] + eighths[k + 1], "pair") for k in (0, 2, 4, 6)]
        lower = wire(m, pairs[0] + pairs[1], "lower")
        upper = wire(m, pairs[2] + pairs[3], "upper")
        at = Signal(g.position_bits)
        extra = any_of([Mux(on, bits, 0) for on, bits in self._extra(r)])
        with m.If(self.phase == 0):
            m.d.sync += at.eq(self.block.start - GUARD_BITS)
        with m.Else():
            m.d.sync += at.eq(at + extra + lower + upper)
        window = self._window(m, at)

        r |= {"lower": lower, "upper": upper, "pair_0": pairs[0], "pair_2": pairs[2]}
        r |= {f"even_{k}": eighths[k] for k in (0, 2, 4, 6)}
        r = _registers(m, r, "read")
        # Aligned to units of 8 bits ...
        before = Signal(g.position_bits)
        m.d.sync += before.eq(at)
        kept = GUARD_BITS + g.symbols - 1 + g.beat + 7
        fine = 3
        for level in range(fine, g.bank.bit_length() - 1):
            window = wire(m, Mux(before[level], window >> (1 << level), window), "window")
        r |= {"window": window[: kept + 7], "fine": before[:fine]}
        r = _registers(m, r, "coarse")
        # ... to the bit, the top plane split off.
        window, shift = r.pop("window"), r.pop("fine")
        for level in range(fine):
            window = wire(m, Mux(shift[level], window >> (1 << level), window), "window")
        guard, body = window[:GUARD_BITS], window[GUARD_BITS:kept]
        size = g.beat + 7
        main = [
            (body >> bits)[:size] & on.replicate(size)
            for on, bits in [*self._extra(r), (self._no_extra(r), 0)]
        ]
        outside = any_of(
            [Mux(r["pad"] == k, guard[GUARD_BITS - k :].any(), 0) for k in range(1, 8)]
        )
        r["padding"] = r.pop("pad_below") & outside
        r |= {"body": any_of(main), "extra": body[: g.symbols - 1]}
        r = _registers(m, r, "aligned")
        # Halves, quarters, eighths.
        body, shift = r.pop("body"), r.pop("lower")
        half = g.beat // 2
        moved = _shifted(m, body, shift, half + 7)
        r |= {"low": body[:half], "high": moved}
        r = _registers(m, r, "halves")
        quarter = half // 2
        behind = _shifted(m, r["high"], r.pop("upper"), 7)
        inside = any_of([Mux(r["pad"] == k, behind[:k].any(), 0) for k in range(1, 8)])
        r["padding"] = r["padding"] | (r.pop("pad_above") & inside)
        del r["pad"]
        for name in ("low", "high"):
            part = r.pop(name)
            by = r.pop("pair_0" if name == "low" else "pair_2")
            r[f"{name}_0"] = part[:quarter]
            r[f"{name}_1"] = _shifted(m, part[:half], by, quarter)
        r = _registers(m, r, "quarters")
        eighth = quarter // 2
        parts: list[Value] = []
        whole = self._whole(r)
        for k, name in enumerate(("low_0", "low_1", "high_0", "high_1")):
            part = r.pop(name)
            moved = _shifted(m, part, r.pop(f"even_{2 * k}"), eighth)
            first, second = part[:eighth], Mux(whole, part[eighth:], moved)
            for j, piece in enumerate((first, second)):
                if 16 in g.parameters.symbol_bits:  # two symbols in an eighth
                    pulled = r["order"] & (r["width"] == 0) & ~r["keep"][4 * k + 2 * j]
                    piece = Cat(piece[:16], Mux(pulled, piece[:16], piece[16:]))
                parts.append(piece)
        r["data"] = Cat(parts)
        r = _registers(m, r, "slot")
        m.d.comb += [Value.cast(getattr(self.slot, name)).eq(value) for name, value in r.items()]
        return m

    def _narrow(self, width: Value, w: int) -> Value:
        return width == self._geometry.parameters.symbol_bits.index(w)

    def _whole(self, r: dict[str, Value]) -> Value:
        """Planes of two eighths."""
        if 16 not in self._geometry.parameters.symbol_bits:
            return Const(0, 1)
        return ~r["order"] & self._narrow(r["width"], 16)

    def _lengths(self, m: Module) -> dict[str, Value]:
        """Bits of the piece in each eighth of the slot."""
        g, block = self._geometry, self.block
        classes, keep = self._fields()["classes"], self._fields()["keep"]
        result: dict[str, Value] = {}
        for k in range(8):
            options: list[Value] = []
            for i, w in enumerate(g.parameters.symbol_bits):
                here = block.width == i
                per_slot = w // g.beats
                step = 8 // per_slot  # eighths of a plane
                if k % step == 0:
                    c = classes[3 * (k // step) : 3 * (k // step) + 3]
                    plane = Mux(~c[0] & ~c[2], block.n, Mux(c[0] & c[2], block.field, 0))
                    options.append(Mux(here & ~block.order, plane, 0))
                symbols = 32 // w
                kept = Cat(keep[2 * k : 2 * k + 2]) if symbols == 2 else keep[k]
                count = (kept[0] + kept[1]) if symbols == 2 else kept
                options.append(Mux(here & block.order, count << log2_ceil(w), 0))
            result[f"length_{k}"] = wire(m, any_of(options), "length")[:7]
        return result

    def _fields(self) -> dict[str, Value]:
        """What goes with the slot ``phase``."""
        g, block = self._geometry, self.block
        planes = g.widest // g.beats
        slots = [self.phase == k for k in range(g.beats)]
        classes, keep, base = [], [], []
        for i, w in enumerate(g.parameters.symbol_bits):
            here, n, per_slot = block.width == i, g.parameters.symbols(w) // g.beats, w // g.beats
            bits = Value.cast(block.classes)
            for k in range(g.beats):
                on = here & slots[k]
                classes.append(Mux(on, bits[3 * per_slot * k : 3 * per_slot * (k + 1)], 0))
                keep.append(Mux(on, block.mask[n * k : n * (k + 1)], 0))
                low = w - per_slot * (k + 1)
                base.append(Mux(on, block.base[low : low + per_slot][::-1], 0))
        slot = {
            name: getattr(block, name)
            for name in ("valid", "width", "order", "dbx", "zbx", "n", "field", "pad")
        }
        return {
            **slot,
            "top": Mux(slots[0] & block.dbx, Value.cast(block.top), 0b001),
            "classes": any_of(classes)[: 3 * planes],
            "keep": any_of(keep)[: g.symbols // g.beats],
            "base": any_of(base)[:planes],
            "pad_below": block.pad_below & slots[0],
            "pad_above": block.pad_above & slots[g.beats - 1],
        }

    def _extra(self, r: dict[str, Value]) -> list[tuple[Value, int]]:
        """Length of DBX's top plane in the payload, where it is not zero."""
        result = []
        top = r["top"]
        for i, w in enumerate(self._geometry.parameters.symbol_bits):
            n = self._geometry.parameters.symbols(w) - 1
            here = r["width"] == i
            result.append((here & ~top[0] & ~top[2], n))
            result.append((here & top[0] & top[2], log2_ceil(n)))
        return result

    @staticmethod
    def _no_extra(r: dict[str, Value]) -> Value:
        top = r["top"]
        return top[0] ^ top[2]

    def _window(self, m: Module, at: Signal) -> Value:
        """The four words that begin with the one of ``at``, one cycle later.

        Slots 0 and 1 are read; slots 2 and 3 lie in the eight words from the start of
        slot 1 on: the second four of them are read for slot 2, and what slot 3 needs is held.
        """
        g = self._geometry
        bits = g.bank.bit_length() - 1
        here = at[bits:]
        second = Signal(g.word_bits)  # word of slot 1
        before = Signal(g.word_bits)
        held = Signal(g.wire)
        m.d.sync += before.eq(here)
        with m.If(self.phase == 2):
            m.d.sync += second.eq(here)
        m.d.comb += self.word.eq(Mux(self.phase == 3, second + 4, here))
        past = wire(m, before - second, "past")[:3]  # slot 2 against slot 1
        next_past = wire(m, here - second, "next_past")[:3]
        banks: list[Value] = []
        for b in range(4):
            live = self.data[b * g.bank : (b + 1) * g.bank]
            old = held[b * g.bank : (b + 1) * g.bank]
            order = wire(m, (Const(b, 2) - second[:2])[:2], "order")
            fresh = (self.phase == 2) | (self.phase == 3) | ((self.phase == 0) & (order < past))
            banks.append(Mux(fresh, live, old))
            with m.If((self.phase == 3) | ((self.phase == 0) & (order < next_past))):
                m.d.sync += old.eq(live)
        return wire(
            m,
            Cat(
                any_of([banks[(k + b) % 4] & (before[:2] == b).replicate(g.bank) for b in range(4)])
                for k in range(4)
            ),
            "words",
        )


def _registers(m: Module, values: dict[str, Any], name: str) -> dict[str, Value]:
    """``values`` one cycle later."""
    result: dict[str, Value] = {}
    for key, value in values.items():
        value = Value.cast(value)
        result[key] = signal = Signal(len(value), name=f"{name}_{key}")
        m.d.sync += signal.eq(value)
    return result


def _shifted(m: Module, value: Value, places: Value, size: int) -> Value:
    """``size`` bits of ``value`` from bit ``places`` on."""
    value = wire(m, Cat(value, Const(0, max(0, size + (1 << len(places)) - len(value)))), "shifted")
    for level in reversed(range(len(places))):
        keep = size + (1 << level) - 1
        value = wire(
            m, Mux(places[level], value[1 << level : (1 << level) + keep], value[:keep]), "shifted"
        )
    return value[:size]
