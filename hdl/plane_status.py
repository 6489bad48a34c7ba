"""Plane classes of a block without transposing it: a few bits per plane, beat by beat.

A beat is a row of words of the widest symbol. The bits of a plane are then a column, and
all columns are reduced at once by bitwise operations on whole words: is a one among
them, are there two, three; is a zero; are two neighbours one. A plane of a narrower
symbol is several columns, put together at the end of the block.

What encodings share: a symbol that ZBX leaves out is zero in every plane, so BX and ZBX
have the same zero planes, the same planes that were zero before the XOR, and the same
number of ones in each plane. A plane of ZBX is all ones if no *kept* symbol has a zero
in it, and one of BX if in addition all symbols are kept. Only "adjacent" differs: for
ZBX the symbol before is the last *kept* one, so no compaction is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.delta import beat_bits, by_width, strobe, width_shape, xor_adjacent
from planezip.hdl.summary import PlaneClass, plane_class
from planezip.model.format import DEFAULT, Parameters, Tag
from planezip.model.reference import plane_code, transform

__all__ = ["PlaneStatus", "block_classes", "classes", "status_beat"]


def status_beat(parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> data.StructLayout:
    """Beat of symbols or deltas: ``data``, ``tops`` (as ``hdl/delta.py``), ``keep`` (a bit per
    part: its symbol takes part in the planes), ``width``, ``first`` and ``last`` of the block."""
    bits = beat_bits(parameters, beats_per_block)
    parts = bits // parameters.symbol_bits[0]
    return data.StructLayout(
        {
            "data": unsigned(bits),
            "tops": unsigned(parts),
            "keep": unsigned(parts),
            "width": width_shape(parameters),
            "first": 1,
            "last": 1,
        }
    )


def classes(parameters: Parameters = DEFAULT) -> data.StructLayout:
    """Classes of the planes of one encoding, as in ``hdl/summary.py``.

    ``planes[k]`` is VERBATIM for k >= w, ``extra`` also without DBX.
    """
    return data.StructLayout(
        {"extra": PlaneClass, "planes": data.ArrayLayout(PlaneClass, parameters.symbol_bits[-1])}
    )


def block_classes(tag: Tag, symbols: Sequence[int], w: int) -> list[PlaneClass]:
    """Software model: class of every plane of a block, top plane first."""
    planes, pre, width = transform(tag, symbols, w)
    return [plane_class(plane_code(a, b, width)) for a, b in zip(planes, pre, strict=True)]


class _Ones(NamedTuple):
    """Ones in each column: at least one, two, three."""

    one: Value
    two: Value
    three: Value


def _sum(a: _Ones, b: _Ones) -> _Ones:
    return _Ones(
        a.one | b.one,
        a.two | b.two | (a.one & b.one),
        a.three | b.three | (a.two & b.one) | (a.one & b.two),
    )


def _total(words: Sequence[Value]) -> _Ones:
    """Ones of each column over all words, as a balanced tree."""
    ones = [_Ones(word, Const(0, len(word)), Const(0, len(word))) for word in words]
    while len(ones) > 1:
        ones = [_sum(ones[k], ones[k + 1]) for k in range(0, len(ones) - 1, 2)] + (
            ones[-1:] if len(ones) % 2 else []
        )
    return ones[0]


def _any(words: Sequence[Value]) -> Value:
    result = words[0]
    for word in words[1:]:
        result = result | word
    return result


def _only_if(condition: Value, value: Value) -> Value:
    return value & condition.replicate(len(value))


class PlaneStatus(wiring.Component):
    """Classes of all planes of a block, for DBX (of deltas) or for BX and ZBX (of symbols).

    One beat a cycle. ``results`` come 2 cycles after the block's last beat and hold until
    the results of the next block.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int
    encodings : frozenset of Tag
        {DBX}, or BX, ZBX or both.

    Attributes
    ----------
    beats : In(strobe of :func:`status_beat`)
        DBX: deltas, with ``keep`` zero for the place of symbol 0. BX, ZBX: symbols, with
        ``keep`` set for those that are not zero; ``tops`` is ignored.
    valid : Out(1)
        New results (a strobe).
    results : Out(:func:`classes` by name of the encoding)
    """

    def __init__(
        self,
        parameters: Parameters = DEFAULT,
        beats_per_block: int = 4,
        encodings: frozenset[Tag] = frozenset({Tag.BX, Tag.ZBX}),
    ) -> None:
        if encodings != {Tag.DBX} and not frozenset() < encodings <= {Tag.BX, Tag.ZBX}:
            raise ValueError(f"encodings must be {{DBX}}, or BX, ZBX or both, not {encodings!r}")
        self._parameters = parameters
        self._encodings = encodings
        beats = status_beat(parameters, beats_per_block)
        super().__init__(
            {
                "beats": In(strobe(beats)),
                "valid": Out(1),
                "results": Out(
                    data.StructLayout({tag.name: classes(parameters) for tag in sorted(encodings)})
                ),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p = self._parameters
        beat, valid = self.beats.payload, self.beats.valid
        xored = Signal(len(beat.data))
        m.d.comb += xored.eq(xor_adjacent(beat.data, self._tops, beat.width, p))
        words = self._words(xored, self._tops)
        keep = Cat(flag.replicate(p.symbol_bits[0]) for flag in beat.keep)
        start = valid & beat.first  # a block starts afresh
        state: dict[str, Signal] = {}

        def accumulator(name: str, size: int) -> Value:
            """What is held of the beats before."""
            state[name] = Signal(size, name=name, reset_less=True)
            return _only_if(~start, state[name])

        ones = _Ones(*(_only_if(valid, value) for value in _total(words)))
        held = _Ones(*(accumulator(name, self._columns) for name in _Ones._fields))
        for name, value in zip(_Ones._fields, _sum(ones, held), strict=True):
            m.d.sync += state[name].eq(value)
        found = {
            "gap": _any(self._words(~xored & keep, ~beat.tops & beat.keep)),
            "pre": _any(self._words(beat.data, self._tops)),
            "sparse": ~beat.keep.all(),
        }
        for tag in sorted(self._encodings - {Tag.ZBX}):
            by_plane: list[Value] = []
            for w in p.symbol_bits:
                planes = self._pairs(m, words, w)
                unused = Const(0, p.symbol_bits[-1] - w)
                by_plane.append(Cat(planes[:w], unused, planes[w:]))
            found[tag.name] = by_width(beat.width, by_plane)
        if Tag.ZBX in self._encodings:
            found["ZBX"] = self._kept_pairs(m, words)
        for name, value in found.items():
            before = accumulator(name, len(value))
            m.d.sync += state[name].eq(before | _only_if(valid, value))
        # The end of a block: put columns together and keep the classes.
        done = Signal()
        width = Signal.like(beat.width, reset_less=True)
        results = Signal.like(self.results, reset_less=True)
        m.d.sync += [done.eq(valid & beat.last), width.eq(beat.width), self.valid.eq(done)]
        m.d.comb += self.results.eq(results)
        with m.If(done):
            for tag in sorted(self._encodings):
                m.d.sync += results[tag.name].eq(self._classes(tag, state, width))
        return m

    @property
    def _tops(self) -> Value | None:
        return self.beats.payload.tops if Tag.DBX in self._encodings else None

    @property
    def _columns(self) -> int:
        wide, narrow = self._parameters.symbol_bits[-1], self._parameters.symbol_bits[0]
        return wide + (wide // narrow if Tag.DBX in self._encodings else 0)

    def _words(self, bits: Value, tops: Value | None) -> list[Value]:
        """Rows of columns: the words of a beat, each with the top bits of its parts behind."""
        wide = self._parameters.symbol_bits[-1]
        group = wide // self._parameters.symbol_bits[0]
        if Tag.DBX not in self._encodings or tops is None:
            return [bits[k * wide : (k + 1) * wide] for k in range(len(bits) // wide)]
        return [
            Cat(bits[k * wide : (k + 1) * wide], tops[k * group : (k + 1) * group])
            for k in range(len(bits) // wide)
        ]

    def _symbols(self, word: Value, w: int) -> list[Value]:
        """The symbols of w bits in a row of columns, each with its top bit behind."""
        wide, step = self._parameters.symbol_bits[-1], w // self._parameters.symbol_bits[0]
        return [
            Cat(word[k * w : (k + 1) * w], word[wide:][(k + 1) * step - 1 : (k + 1) * step])
            for k in range(wide // w)
        ]

    def _pairs(self, m: Module, words: list[Value], w: int) -> Value:
        """Planes of width w in which two neighbours of this beat (or one before) are one."""
        symbols = [symbol for word in words for symbol in self._symbols(word, w)]
        before = Signal(len(symbols[-1]), reset_less=True)
        with m.If(self.beats.valid):
            m.d.sync += before.eq(symbols[-1])
        before_first = [_only_if(~self.beats.payload.first, before), *symbols]
        return _any([a & b for a, b in zip(before_first, symbols, strict=False)])

    def _kept_pairs(self, m: Module, words: list[Value]) -> Value:
        """Columns in which two neighbours among the symbols that are kept are one."""
        beat, wide = self.beats.payload, self._parameters.symbol_bits[-1]
        before = Signal(wide, reset_less=True)  # in its upper bits the last symbol kept
        last: Value = _only_if(~beat.first, before)
        group = wide // self._parameters.symbol_bits[0]
        pairs: list[Value] = []
        for number, word in enumerate(words):
            keep = beat.keep[number * group : (number + 1) * group]
            behind: list[Value] = []
            tops: list[Value] = []
            for w in self._parameters.symbol_bits:
                step = w // self._parameters.symbol_bits[0]
                row: list[Value] = []
                earlier = last[wide - w :]
                within: Value = Const(0, w)  # the last one kept in this word: short path
                for symbol, kept in zip(self._symbols(word, w), keep[::step], strict=True):
                    row.append(earlier)
                    earlier = symbol | _only_if(~kept, earlier)
                    within = symbol | _only_if(~kept, within)
                behind.append(Cat(row))
                tops.append(Cat(word[: wide - w], within))
            pairs.append(word & by_width(beat.width, behind))
            after = Signal(wide, name=f"kept_{len(pairs)}")
            m.d.comb += after.eq(by_width(beat.width, tops) | _only_if(~keep.any(), last))
            last = after
        with m.If(self.beats.valid):
            m.d.sync += before.eq(last)
        return _any(pairs)

    def _classes(self, tag: Tag, state: dict[str, Signal], width: Value) -> Value:
        """Classes of one encoding from the accumulators."""
        p = self._parameters
        wide, narrow = p.symbol_bits[-1], p.symbol_bits[0]
        slots = []
        for slot in range(-1, wide):
            choices = []
            for w in p.symbol_bits:
                plane = w - 1 - slot
                if slot >= 0:
                    columns = [plane + k for k in range(0, wide, w)] if plane >= 0 else []
                else:
                    columns = [
                        wide + k - 1 for k in range(w // narrow, wide // narrow + 1, w // narrow)
                    ]
                if not columns or (plane == w and tag != Tag.DBX):
                    choices.append(Const(PlaneClass.VERBATIM.value, 3))
                    continue
                if tag == Tag.ZBX:
                    pair = _any([state[tag.name][column] for column in columns])
                else:
                    pair = state[tag.name][plane if slot >= 0 else wide]
                choices.append(self._class(tag, state, columns, pair))
            slots.append(by_width(width, choices))
        return Cat(slots)

    def _class(self, tag: Tag, state: dict[str, Signal], columns: list[int], pair: Value) -> Value:
        total = _Ones(*(state[name][columns[0]] for name in _Ones._fields))
        for column in columns[1:]:
            total = _sum(total, _Ones(*(state[name][column] for name in _Ones._fields)))
        gap = _any([state["gap"][column] for column in columns])
        if tag == Tag.BX:
            gap = gap | state["sparse"]
        pre = _any([state["pre"][column] for column in columns])
        single = ~total.two
        double = total.two & ~total.three & pair
        # Bits of PlaneClass, by precedence: zero, ones, zero before the XOR, pair, one.
        five = ~gap | ~pre | double | single
        return Mux(
            ~total.one,
            PlaneClass.ZERO.value,
            Cat(gap & pre, gap & (~pre | single), five) & five.replicate(3),
        )
