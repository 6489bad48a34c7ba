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

from planezip.hdl.decoder_types import GUARD_BITS, DecoderGeometry, parsed_block, slot_geometry
from planezip.hdl.payload_reader import PayloadReader
from planezip.hdl.wires import any_of, both, registers, shifted, wire
from planezip.model.format import DEFAULT, Parameters, log2_ceil

__all__ = ["LATENCY", "Unpack", "pieces", "unpacked_slot"]

LATENCY = 6  # cycles from a block to its first slot


def unpacked_slot(parameters: Parameters) -> data.StructLayout:
    """A slot: ``data`` (pieces at their places), ``extra`` (piece of DBX's top plane, slot 0).

    ``classes`` of its planes, ``keep`` a bit per symbol of the narrowest width (the symbol is not
    zero); ``base``: a bit of DBX's base per plane; ``padding``: a bit of the chunk's
    padding is set.
    """
    g = slot_geometry(parameters)
    block = parsed_block(parameters, 2)
    planes = g.widest // g.slots
    fields = ("valid", "width", "order", "dbx", "zbx", "top", "n", "field")
    return data.StructLayout(
        {
            **{name: block[name].shape for name in fields},
            "data": unsigned(g.slot),
            "extra": unsigned(g.symbols - 1),
            "classes": unsigned(3 * planes),
            "keep": unsigned(g.symbols // g.slots),
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
    beats_per_block : int

    Attributes
    ----------
    phase : In(2)
    block : In(:func:`planezip.hdl.decoder_types.parsed_block`)
        Holds in phases 0 to 3.
    word : Out
        In phases 1 to 3: first of the words of the ring to be read.
    data : In
        The banks, one cycle later.
    slot : Out(:func:`unpacked_slot`)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._beats_per_block = beats_per_block
        self._geometry = g = DecoderGeometry(parameters, beats_per_block)
        super().__init__(
            {
                "phase": In(2),
                "block": In(parsed_block(parameters, beats_per_block)),
                "word": Out(g.word_bits),
                "data": In(g.line),
                "slot": Out(unpacked_slot(parameters)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        m.submodules.reader = reader = PayloadReader(g.parameters, self._beats_per_block)
        # One cycle later: sums of the lengths, and the position of the slot.
        r: dict[str, Value] = registers(m, {**self._fields(), **self._lengths(m)}, "summed")
        lengths = [r.pop(f"length_{k}") for k in range(g.pieces)]
        upper, level = lengths[0], 0
        while len(lengths) > 1:  # of the lower half, quarters, eighths
            upper = lengths[-1]
            bits = (g.piece << level).bit_length()
            shifts = [v[:bits] for v in lengths[::2]]
            if level == 0:  # the pieces of a plane of two
                shifts = [Mux(self._whole(r), g.piece, v) for v in shifts]
            r |= {f"shift_{level}_{k}": v for k, v in enumerate(shifts)}
            lengths = [
                wire(m, lengths[k] + lengths[k + 1], "sum")[: bits + 1]
                for k in range(0, len(lengths), 2)
            ]
            level += 1
        total = lengths[0]
        r["rest"] = upper
        at = Signal(g.position_bits, reset_less=True)
        front = GUARD_BITS + g.symbols - 1  # read before the slot: padding, top plane of DBX
        top = [Mux(on, bits - front, 0) for on, bits in self._extra(self.block.width, self._top())]
        with m.If(self.phase == 0):
            m.d.sync += at.eq(self.block.start + any_of(top))
        with m.Else():
            m.d.sync += at.eq(at + total)
        m.d.comb += [
            reader.phase.eq(self.phase),
            reader.at.eq(at),
            reader.data.eq(self.data),
            self.word.eq(reader.word),
        ]
        # Aligned to units of 32 bits, then to the bit.
        offset = at[: g.bank.bit_length() - 1]
        size, fine = front + g.slot + 7, min(5, len(offset))
        r = registers(m, {**r, "fine": offset[:fine], "unit": both(offset[fine:])}, "read")
        r["window"] = shifted(m, reader.window, r.pop("unit"), size, fine)
        r["fine"] = both(r["fine"])
        self._prepare(r, 0, level)
        r = registers(m, r, "coarse")
        window = shifted(m, r.pop("window"), r.pop("fine"), size)
        r |= self._before(r, window[:front])
        # Only slot 0 has a top plane, and two cycles to go.
        extra_piece = registers(m, {"extra": r.pop("extra")}, "held", self.phase == 3)
        m.d.comb += self.slot.extra.eq(extra_piece["extra"])
        return self._spread(m, r, window[front:], level)

    def _before(self, r: dict[str, Value], front: Value) -> dict[str, Value]:
        """DBX's top plane, and the padding below the payload."""
        lengths = self._extra(r["width"], r["top"])
        at = len(front)
        extra = any_of([front[at - bits :] & on.replicate(bits) for on, bits in lengths[1:]])
        below = any_of([front[at - bits - 7 : at - bits] & on.replicate(7) for on, bits in lengths])
        outside = [Mux(r["pad"] == k, below[7 - k :].any(), 0) for k in range(1, 8)]
        return {"extra": extra, "padding": r.pop("pad_below") & any_of(outside)}

    def _prepare(self, r: dict[str, Value], step: int, levels: int) -> None:
        """Places of a step's shifts, for the register in front of it: upper and lower levels."""
        for k in range(1 << step if step < levels else 0):
            places = r.pop(f"shift_{levels - 1 - step}_{k}")
            low = 0 if step == 2 else len(places) // 2
            r |= {f"high_{k}": both(places[low:]), f"low_{k}": places[:low]}
        if step == 1:
            rest = r.pop("rest")
            r |= {"rest_high": both(rest[len(rest) // 2 :]), "rest": rest[: len(rest) // 2]}

    def _spread(self, m: Module, r: dict[str, Value], body: Value, levels: int) -> Module:
        """Halves, quarters, eighths; the shifts of the first two go on in the next cycle."""
        g = self._geometry
        parts, size = [body], g.slot
        for step, name in enumerate(("aligned", "halves", "slot")):
            more = 7 if step == 0 else 0  # what lies behind the payload
            if step == 1:
                r["behind"] = shifted(m, parts[-1], r.pop("rest_high"), 7, len(r["rest"]))
                r["rest"] = both(r["rest"])
            if step == 2:
                behind = shifted(m, r.pop("behind"), r.pop("rest"), 7)
                inside = [Mux(r["pad"] == k, behind[:k].any(), 0) for k in range(1, 8)]
                r["padding"] = r["padding"] | (r.pop("pad_above") & any_of(inside))
                del r["pad"]
            upper: list[Value] = []
            lower: list[Value] = []
            if step < levels:
                size //= 2
                lower = [r.pop(f"low_{k}") for k in range(len(parts))]
                upper = [
                    shifted(m, part[: 2 * size + more], r.pop(f"high_{k}"), size + more, len(low))
                    for k, (part, low) in enumerate(zip(parts, lower, strict=True))
                ]
            parts = [part[: size + (0 if upper else more)] for part in parts]
            if step < 2:
                r |= {f"part_{k}": part for k, part in enumerate(parts)}
                r |= {f"upper_{k}": part for k, part in enumerate(upper)}
                r |= {f"lower_{k}": both(low) for k, low in enumerate(lower)}
                self._prepare(r, step + 1, levels)
                r = registers(m, r, name)
                parts = [r.pop(f"part_{k}") for k in range(len(parts))]
                upper = [
                    shifted(m, r.pop(f"upper_{k}"), r.pop(f"lower_{k}"), size + more)
                    for k in range(len(upper))
                ]
            if upper:
                parts = [part for pair in zip(parts, upper, strict=True) for part in pair]
        r["data"] = Cat(self._pulled(r, k, part) for k, part in enumerate(parts))
        r = registers(m, r, "slot")
        m.d.comb += [Value.cast(getattr(self.slot, k)).eq(value) for k, value in r.items()]
        return m

    def _pulled(self, r: dict[str, Value], number: int, piece: Value) -> Value:
        """A piece of two symbols: the upper one in its place also where the lower is dropped."""
        g = self._geometry
        half = g.piece // 2
        if half not in g.parameters.symbol_bits:
            return piece
        narrow = r["width"] == g.parameters.symbol_bits.index(half)
        pulled = r["order"] & narrow & ~r["keep"][2 * number]
        return Cat(piece[:half], Mux(pulled, piece[:half], piece[half:]))

    def _whole(self, r: dict[str, Value]) -> Value:
        """Planes of two pieces."""
        g = self._geometry
        if g.piece // 2 not in g.parameters.symbol_bits:
            return Const(0, 1)
        return ~r["order"] & (r["width"] == g.parameters.symbol_bits.index(g.piece // 2))

    def _lengths(self, m: Module) -> dict[str, Value]:
        """Bits in each piece of the slot."""
        g, block = self._geometry, self.block
        fields = self._fields()
        classes, keep = fields["classes"], fields["keep"]
        result: dict[str, Value] = {}
        for k in range(g.pieces):
            options: list[Value] = []
            for i, w in enumerate(g.parameters.symbol_bits):
                here = block.width == i
                step = g.pieces * g.slots // w  # pieces of a plane
                if k % step == 0:
                    c = classes[3 * (k // step) : 3 * (k // step) + 3]
                    plane = Mux(c[0] ^ c[2], 0, Mux(c[0], block.field, block.n))
                    options.append(Mux(here & ~block.order, plane, 0))
                each = g.piece // w
                kept = keep[each * k : each * (k + 1)]
                count = kept[0] + kept[1] if each == 2 else kept
                options.append(Mux(here & block.order, count << log2_ceil(w), 0))
            length = wire(m, any_of(options), "length")
            result[f"length_{k}"] = length[: (2 * g.piece).bit_length()]
        return result

    def _fields(self) -> dict[str, Value]:
        """What goes with the slot ``phase``."""
        g, block = self._geometry, self.block
        slots = [self.phase == k for k in range(g.slots)]
        classes, keep, base = [], [], []
        bits = Value.cast(block.classes)
        for i, w in enumerate(g.parameters.symbol_bits):
            here, n, planes = block.width == i, g.slot // w, w // g.slots
            for k in range(g.slots):
                on = here & slots[k]
                classes.append(Mux(on, bits[3 * planes * k : 3 * planes * (k + 1)], 0))
                keep.append(Mux(on, block.mask[n * k : n * (k + 1)], 0))
                low = w - planes * (k + 1)
                base.append(Mux(on, block.base[low : low + planes][::-1], 0))
        names = ("valid", "width", "order", "dbx", "zbx", "n", "field", "pad")
        return {
            **{name: getattr(block, name) for name in names},
            "top": Mux(slots[0], self._top(), 0b001),
            "classes": any_of(classes)[: 3 * g.widest // g.slots],
            "keep": any_of(keep)[: g.symbols // g.slots],
            "base": any_of(base)[: g.widest // g.slots],
            "pad_below": block.pad_below & slots[0],
            "pad_above": block.pad_above & slots[g.slots - 1],
        }

    def _top(self) -> Value:
        """Class of DBX's top plane; ZERO where there is none."""
        return Mux(self.block.dbx, Value.cast(self.block.top), 0b001)

    def _extra(self, width: Value, top: Value) -> list[tuple[Value, int]]:
        """Length of DBX's top plane in the payload: one of these."""
        result: list[tuple[Value, int]] = [(top[0] ^ top[2], 0)]
        for i, w in enumerate(self._geometry.parameters.symbol_bits):
            n = self._geometry.parameters.symbols(w) - 1
            here = width == i
            result.append((here & ~top[0] & ~top[2], n))
            result.append((here & top[0] & top[2], log2_ceil(n)))
        return result
