"""The stream format (docs/format.md) as plain combinational logic, for scaled blocks.

Written from the document, without any part of the hardware: one plane after the other,
one code behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.model.format import TAG_BITS, Parameters, PlaneCode, Tag

__all__ = ["Decoder", "Encoder", "Text", "Texts", "code_of", "log2_of", "values_of"]


@dataclass(frozen=True)
class Text:
    """A string of bits, first bit lowest: zero above ``length``, at most ``most`` bits."""

    value: Value
    length: Value
    most: int


class Texts:
    """Operations on strings, each result a signal of ``m``."""

    def __init__(self, m: Module) -> None:
        self.m = m

    def wire(self, value: Value) -> Value:
        signal = Signal(max(len(value), 1), name="naive")
        self.m.d.comb += signal.eq(value)
        return signal

    def fixed(self, value: Any, length: int) -> Text:
        """``length`` bits."""
        return Text(self.wire(Value.cast(value)[:length]), Const(length), length)

    def cut(self, value: Value, length: Value) -> Text:
        """The low ``length`` bits of a value."""
        kept = Cat(bit & (length > k) for k, bit in enumerate(value))
        return Text(self.wire(kept), self.wire(length), len(value))

    def when(self, condition: Value, text: Text) -> Text:
        """The string or nothing."""
        value, length = Mux(condition, text.value, 0), Mux(condition, text.length, 0)
        return Text(self.wire(value), self.wire(length), text.most)

    def choose(self, condition: Value, a: Text, b: Text) -> Text:
        value, length = Mux(condition, a.value, b.value), Mux(condition, a.length, b.length)
        return Text(self.wire(value), self.wire(length), max(a.most, b.most))

    def join(self, texts: Sequence[Text]) -> Text:
        """One string behind the other."""
        whole = Text(Const(0, 1), Const(0, 1), 0)
        for text in texts:
            most = whole.most + text.most
            value = (whole.value | (text.value << whole.length))[: max(most, 1)]
            length = (whole.length + text.length)[: max(most.bit_length(), 1)]
            whole = Text(self.wire(value), self.wire(length), most)
        return whole

    def reversed(self, text: Text) -> Text:
        """The last bit first."""
        padded = Cat(text.value, Const(0, max(text.most - len(text.value), 0)))
        turned = padded[: text.most][::-1]
        unused = (text.most - text.length)[: text.most.bit_length()]
        return Text(self.wire(turned >> unused), text.length, text.most)


def log2_of(n: Value) -> Value:
    """ceil(log2 n); 0 for 0 and 1."""
    result: Value = Const(0)
    for bits in range(1, len(n) + 1):
        result = Mux(n > 1 << (bits - 1), bits, result)
    return result


def code_of(plane: Value, pre: Value, n: Value) -> dict[PlaneCode, Value]:
    """Which code a plane of ``n`` bits takes, runs left out; exactly one is set."""
    size = len(plane)
    rows = {
        PlaneCode.ZERO: plane == 0,
        PlaneCode.ONES: plane == (1 << n) - 1,
        PlaneCode.PRE_ZERO: pre == 0,
        PlaneCode.PAIR: Cat(plane == 3 << k for k in range(size - 1)).any(),
        PlaneCode.ONE: Cat(plane == 1 << k for k in range(size)).any(),
        PlaneCode.VERBATIM: Const(1),
    }
    earlier: Value = Const(0, 1)
    result = {}
    for code, fits in rows.items():
        result[code] = fits & ~earlier
        earlier = earlier | fits
    return result


def lowest(plane: Value) -> Value:
    """Number of the lowest one."""
    result: Value = Const(0)
    for k in reversed(range(len(plane))):
        result = Mux(plane[k], k, result)
    return result


def values_of(
    t: Texts, parameters: Parameters, tag: Tag, symbols: list[Value]
) -> tuple[list[Value], Value]:
    """What ``tag`` cuts into planes, and how many of the values count."""
    w = parameters.symbol_bits[0]
    if tag == Tag.DBX:
        values = [t.wire((b - a)[: w + 1]) for a, b in pairwise(symbols)]
        return values, Const(len(values))
    if tag == Tag.BX:
        return symbols, Const(len(symbols))
    places: list[Value] = [Const(0, w) for _ in symbols]  # the non-zero ones side by side
    count: Value = Const(0, 1)
    for symbol in symbols:
        flag = symbol != 0
        places = [t.wire(Mux(flag & (count == k), symbol, p)) for k, p in enumerate(places)]
        count = t.wire(count + flag)
    return places, count


class Encoder(wiring.Component):
    """One encoding of a block: control and payload strings."""

    def __init__(self, parameters: Parameters, tag: Tag) -> None:
        self._p, self._tag = parameters, tag
        self._w = parameters.symbol_bits[0]
        most = 2 * parameters.block_bits + 8 * self._w
        super().__init__(
            {
                "block": In(parameters.block_bits),
                "control": Out(most),
                "control_bits": Out(range(most + 1)),
                "payload": Out(most),
                "payload_bits": Out(range(most + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        t, w, tag = Texts(m), self._w, self._tag
        symbols: list[Value] = [self.block[k : k + w] for k in range(0, len(self.block), w)]
        nonzero = [s != 0 for s in symbols]
        control = [t.fixed(tag.value, TAG_BITS)]
        if tag in (Tag.ZVC, Tag.ZBX):
            control.append(t.fixed(Cat(nonzero), len(symbols)))
        if tag == Tag.DBX:
            control.append(t.fixed(symbols[0], w))
        if tag in (Tag.RAW, Tag.ZVC):
            kept = [t.when(flag | (tag == Tag.RAW), t.fixed(s, w))
                    for s, flag in zip(symbols, nonzero, strict=True)]  # fmt: skip
            payload = kept
        else:
            codes, payload = self._planes(t, symbols)
            control += codes
        whole, rest = t.join(control), t.join(payload)
        m.d.comb += [
            self.control.eq(whole.value),
            self.control_bits.eq(whole.length),
            self.payload.eq(rest.value),
            self.payload_bits.eq(rest.length),
        ]
        return m

    def _planes(self, t: Texts, symbols: list[Value]) -> tuple[list[Text], list[Text]]:
        w, tag = self._w, self._tag
        planes = self._p.planes(tag, w)
        run_bits = self._p.run_bits(tag, w)
        values, n = values_of(t, self._p, tag, symbols)
        pre = [t.wire(Cat(v[p] for v in values)) for p in range(planes)]
        xored = [t.wire(pre[p] ^ pre[p + 1]) if p + 1 < planes else pre[p] for p in range(planes)]
        codes: list[Text] = []
        payload: list[Text] = []
        ends: list[Value] = []  # lowest plane of the run that goes down from here
        for p in range(planes):
            zero = xored[p] == 0
            goes_on = (xored[p - 1] == 0) if p else Const(0, 1)
            ends.append(t.wire(Mux(goes_on, ends[-1], p)) if p else Const(0))
            in_run = (xored[p + 1] == 0) if p + 1 < planes else Const(0, 1)
            kinds = {k: t.wire(v) for k, v in code_of(xored[p], pre[p], n).items()}
            run = Cat(Const(PlaneCode.ZERO_RUN.prefix[0], 2), Value.cast(ends[p])[:run_bits])
            code = t.fixed(run, 2 + run_bits)
            for kind in PlaneCode:
                if kind == PlaneCode.ZERO_RUN:
                    continue
                here = kinds[kind] & ~goes_on if kind == PlaneCode.ZERO else kinds[kind]
                code = t.choose(here, t.fixed(*kind.prefix), code)
            codes.insert(0, t.when(~(zero & in_run), code))
            place = t.cut(lowest(xored[p]), t.wire(log2_of(n)))
            piece = t.when(kinds[PlaneCode.PAIR] | kinds[PlaneCode.ONE], place)
            payload.insert(0, t.choose(kinds[PlaneCode.VERBATIM], t.cut(xored[p], n), piece))
        return codes, payload


class Decoder(wiring.Component):
    """A block from its string (payload right behind control), tag known; and its length."""

    def __init__(self, parameters: Parameters, tag: Tag) -> None:
        self._p, self._tag = parameters, tag
        self._w = parameters.symbol_bits[0]
        most = 2 * parameters.block_bits + 8 * self._w
        super().__init__(
            {
                "string": In(most),
                "block": Out(parameters.block_bits),
                "bits": Out(range(2 * most)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        self._t, self._at = Texts(m), Value.cast(Const(TAG_BITS))
        w, tag, count = self._w, self._tag, self._p.symbols(self._w)
        mask: Value = Const((1 << count) - 1, count)
        if tag in (Tag.ZVC, Tag.ZBX):
            mask = self._take(Const(count), count)
        base = self._take(Const(w), w) if tag == Tag.DBX else Const(0, w)
        if tag in (Tag.RAW, Tag.ZVC):
            symbols = [self._take(Mux(mask[k], w, 0), w) for k in range(count)]
        else:
            n = Const(count - 1) if tag == Tag.DBX else self._t.wire(sum(mask, Const(0)))
            values = self._values(n, count - (tag == Tag.DBX))
            if tag == Tag.DBX:
                symbols = [base]
                for value in values:
                    symbols.append(self._t.wire((symbols[-1] + value)[:w]))
            else:
                symbols, rank = [], Value.cast(Const(0, 1))
                for k in range(count):
                    chosen: Value = Const(0, w)
                    for j, value in enumerate(values):
                        chosen = Mux(mask[k] & (rank == j), value, chosen)
                    symbols.append(self._t.wire(chosen))
                    rank = self._t.wire(rank + mask[k])
        m.d.comb += [self.block.eq(Cat(symbols)), self.bits.eq(self._at)]
        return m

    def _take(self, length: Value, most: int) -> Value:
        """The next ``length`` bits, ``most`` or fewer."""
        window = (self.string >> self._at)[: max(most, 1)]
        piece = self._t.cut(window, length)
        self._at = self._t.wire((self._at + length)[: len(self.bits)])
        return piece.value

    def _values(self, n: Value, size: int) -> list[Value]:
        """Symbols or deltas of the planes, ``size`` of them, of which ``n`` count."""
        t, planes = self._t, self._p.planes(self._tag, self._w)
        run_bits = self._p.run_bits(self._tag, self._w)
        kinds: list[dict[PlaneCode, Value]] = []
        running: Value = Const(0, 1)
        end: Value = Const(0, run_bits)
        for p in reversed(range(planes)):
            inside = t.wire(running & (end <= p))
            window = t.wire((self.string >> self._at)[: 2 + max(run_bits, 3)])
            kind = {
                code: t.wire(~inside & (window[: code.prefix[1]] == code.prefix[0]))
                for code in PlaneCode
            }
            length: Value = Const(0)
            for code in PlaneCode:
                field = run_bits if code == PlaneCode.ZERO_RUN else 0
                length = Mux(kind[code], code.prefix[1] + field, length)
            self._at = t.wire((self._at + length)[: len(self.bits)])
            end = t.wire(Mux(kind[PlaneCode.ZERO_RUN], window[2 : 2 + run_bits], end))
            running = t.wire(inside | kind[PlaneCode.ZERO_RUN])
            kinds.append(kind)
        pre: list[Value] = []
        above: Value = Const(0, size)
        field = t.wire(log2_of(n))
        for kind in kinds:
            point = kind[PlaneCode.PAIR] | kind[PlaneCode.ONE]
            length = Mux(kind[PlaneCode.VERBATIM], n, Mux(point, field, 0))
            piece = t.wire(self._take(t.wire(length), size))
            made = Mux(kind[PlaneCode.VERBATIM], piece, 0)
            made = Mux(kind[PlaneCode.ONES], (1 << n) - 1, made)
            made = Mux(kind[PlaneCode.PRE_ZERO], above, made)
            made = Mux(kind[PlaneCode.ONE], (1 << piece[: size.bit_length()]), made)
            made = Mux(kind[PlaneCode.PAIR], (3 << piece[: size.bit_length()]), made)
            above = t.wire((above ^ made)[:size])
            pre.insert(0, above)
        w = self._w + (self._tag == Tag.DBX)
        return [Cat(plane[k] for plane in pre)[:w] for k in range(size)]
