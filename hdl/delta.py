"""Delta of neighbouring symbols, and the XOR of adjacent planes (paper Section III-A).

Shared by every symbol width: a beat is a row of words of the widest width, a word
consists of *parts* of the narrowest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.wires import any_of, parts_of, wire
from planezip.model.format import DEFAULT, Parameters

__all__ = [
    "Delta",
    "beat_bits",
    "by_width",
    "deltas",
    "differences",
    "first_symbol",
    "strobe",
    "symbol_beat",
    "symbol_deltas",
    "width_shape",
    "xor_adjacent",
]


def beat_bits(parameters: Parameters, beats_per_block: int) -> int:
    """Bits of a raw beat.

    Raises
    ------
    ValueError
        If a beat is not a whole number of bytes and of words of the widest symbol.
    """
    bits = parameters.block_bits // beats_per_block
    if (
        bits * beats_per_block != parameters.block_bits
        or bits % 8
        or bits % parameters.symbol_bits[-1]
    ):
        raise ValueError(
            f"beats_per_block must cut a block of {parameters.block_bits} bits into whole bytes"
            f" and {parameters.symbol_bits[-1]}-bit symbols, not {beats_per_block!r}"
        )
    return bits


def strobe(payload: Any) -> wiring.Signature:
    """A stream that can't be held up: ``valid`` and ``payload``."""
    return wiring.Signature({"valid": Out(1), "payload": Out(payload)})


def width_shape(parameters: Parameters) -> range:
    """Shape of an index into ``parameters.symbol_bits``; one bit also where there is one width."""
    return range(max(2, len(parameters.symbol_bits)))


def by_width(width: Value, choices: Sequence[Any]) -> Value:
    """The choice with the number ``width``."""
    value = Value.cast(choices[0])
    for index, choice in enumerate(choices[1:], start=1):
        value = Mux(width == index, choice, value)
    return value


def symbol_beat(parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> data.StructLayout:
    """Beat of symbols: ``data``, ``width`` (index), ``first`` and ``last`` of its block."""
    return data.StructLayout(
        {
            "data": unsigned(beat_bits(parameters, beats_per_block)),
            "width": width_shape(parameters),
            "first": 1,
            "last": 1,
        }
    )


def deltas(parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> data.StructLayout:
    """Beat of deltas: the low w bits of d_i in the place of symbol i + 1 (the place of
    symbol 0 is zero), and ``tops``: a bit per part, bit w of the delta whose uppermost part
    it is (other parts: zero)."""
    bits = beat_bits(parameters, beats_per_block)
    return data.StructLayout(
        {
            "data": unsigned(bits),
            "tops": unsigned(bits // parameters.symbol_bits[0]),
            "width": width_shape(parameters),
            "first": 1,
            "last": 1,
        }
    )


def symbol_deltas(symbols: Sequence[int], w: int) -> list[int]:
    """Software model: differences of neighbours as (w+1)-bit numbers; the first is 0."""
    mask = (1 << (w + 1)) - 1
    return [0, *((b - a) & mask for a, b in pairwise(symbols))]


_YES = Const(1, 1)


def xor_adjacent(
    beat: Value, tops: Value | None, width: Value, parameters: Parameters, enable: Value = _YES
) -> Value:
    """Each bit XORed with the next higher one of its symbol, the uppermost with its top bit.

    ``tops`` as in :func:`deltas`; None: zero. ``width`` indexes ``parameters.symbol_bits``.
    Without ``enable`` the beat stays as it is.
    """
    narrow, wide = parameters.symbol_bits[0], parameters.symbol_bits[-1]
    above = []
    for k in range(len(beat)):
        top = tops[k // narrow] if tops is not None else Const(0, 1)
        if (k + 1) % wide == 0:
            above.append(top)
        elif (k + 1) % narrow == 0:  # end of a symbol only at some widths; tops is zero elsewhere
            inside = [i for i, w in enumerate(parameters.symbol_bits) if (k + 1) % w]
            above.append(top | (beat[k + 1] & Cat(width == i for i in inside).any()))
        else:
            above.append(beat[k + 1])
    return beat ^ (Cat(above) & enable.replicate(len(beat)))


def _subtract(a: Value, b: Value) -> Value:
    """``a - b`` modulo 2**len, in thirds: the borrow skips the middle one, the longest path."""
    third = -(-len(a) // 3)
    low = a[:third] - b[:third]
    borrow = a[:third] < b[:third]
    middle_a, middle_b = a[third : 2 * third], b[third : 2 * third]
    skips = (middle_a < middle_b) | ((middle_a == middle_b) & borrow)
    zero = Const(0, 1)
    middle = (Cat(zero, middle_a) - Cat(borrow, middle_b))[1 : third + 1]
    high = (Cat(zero, a[2 * third :]) - Cat(skips, b[2 * third :]))[1 : len(a) - 2 * third + 1]
    return Cat(low[:third], middle, high)


def differences(
    m: Module,
    beat: Value,
    before: Value,
    width: Value,
    parameters: Parameters,
    enable: Value = _YES,
) -> tuple[list[Value], list[Value]]:
    """Each symbol of ``beat`` less the one before it, part by part, and the top bits.

    ``before`` is the widest symbol before the beat; ``tops`` as in :func:`deltas`. Without
    ``enable`` nothing is taken off: the parts are those of the beat, and no top bit is set. All
    widths share one subtractor: spare bits between the parts of a word let the borrow through, or
    stop it and keep it as the top bit.
    """
    widths = parameters.symbol_bits
    narrow, wide = widths[0], widths[-1]
    parts, group = parts_of(beat, narrow), wide // narrow
    earlier = parts_of(before, narrow) + parts
    chosen = [enable & (width == index) for index in range(len(widths))]
    values: list[Value] = []
    tops: list[Value] = []
    for word in range(len(parts) // group):
        minuend: list[Value] = []
        subtrahend: list[Value] = []
        ends: list[Value] = []
        for part in range(word * group, (word + 1) * group):
            end: Value = Const(0, 1)
            options = [
                earlier[part + group - w // narrow] & here.replicate(narrow)
                for w, here in zip(widths, chosen, strict=True)
            ]
            other = any_of(options)
            for index, w in enumerate(widths):
                if (part + 1) % (w // narrow) == 0:
                    end = end | (width == index) if w != wide else Const(1, 1)
            minuend += [parts[part], end]
            subtrahend += [other, Const(0, 1)]
            ends.append(end)
        difference = wire(m, _subtract(Cat(minuend), Cat(subtrahend)), "difference")
        for k, end in enumerate(ends):
            field = difference[k * (narrow + 1) : (k + 1) * (narrow + 1)]
            values.append(field[:narrow])
            tops.append(end & ~field[narrow])
    return values, tops


def first_symbol(width: Value, parts: int, parameters: Parameters) -> Value:
    """Flags of ``parts`` parts: those of a row's first symbol."""
    widths = parameters.symbol_bits
    flags: list[Value] = []
    for k in range(parts):
        inside = [i for i, w in enumerate(widths) if w > k * widths[0]]
        some = Cat(width == i for i in inside).any() if inside else Const(0, 1)
        flags.append(some if len(inside) < len(widths) else Const(1, 1))
    return Cat(flags)


class Delta(wiring.Component):
    """Differences of neighbouring symbols across the beats of a block.

    One beat a cycle, latency 1 cycle.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    beats : In(stream of :func:`symbol_beat`)
    deltas : Out(stream of :func:`deltas`)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._parameters = parameters
        super().__init__(
            {
                "beats": In(stream.Signature(symbol_beat(parameters, beats_per_block))),
                "deltas": Out(stream.Signature(deltas(parameters, beats_per_block))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p = self._parameters
        beat, out = self.beats.payload, self.deltas.payload
        before = Signal(p.symbol_bits[-1])  # reset, as a subtractor spreads X
        parts, part_tops = differences(m, beat.data, before, beat.width, p)
        # Symbol 0 of a block has no delta.
        alive = ~(first_symbol(beat.width, len(parts), p) & beat.first.replicate(len(parts)))
        values = Cat(parts) & Cat(flag.replicate(p.symbol_bits[0]) for flag in alive)
        tops = Cat(part_tops) & alive
        m.d.comb += self.beats.ready.eq(self.deltas.ready | ~self.deltas.valid)
        data_out = Signal.like(out, reset_less=True)
        m.d.comb += out.eq(data_out)
        with m.If(self.beats.ready):
            m.d.sync += [
                self.deltas.valid.eq(self.beats.valid),
                data_out.data.eq(values),
                data_out.tops.eq(tops),
                data_out.width.eq(beat.width),
                data_out.first.eq(beat.first),
                data_out.last.eq(beat.last),
            ]
        with m.If(self.beats.ready & self.beats.valid):
            m.d.sync += before.eq(beat.data[-len(before) :])
        return m
