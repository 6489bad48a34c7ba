"""Prototype of the decompressor's parse loop, for timing: from a block's start to the next one.

Two streams share it, in turn: a block enters every 4 cycles (``phase`` 0 to 3), and the next
block of the same stream starts 8 cycles later:

| cycle | phase | stage |
|---|---|---|
| 1 | 0 | start: last payload length added, SRAM address |
| 2 | 1 | SRAM out, turned (back stream), aligned to units of 8 bits |
| 3 | 2 | tag, mask or base skipped, DBX top plane, into the code parser |
| 4-7 | 3, 0, 1, 2 | code parser, 8 planes a cycle; payload lengths of the earlier planes |
| 8 | 3 | payload length of the last planes; end of the codes |

Positions are coordinates of a stream: bit x of the front stream is bit x of the SRAM, bit x
of the back stream is bit ~x, so that both count upwards. They are held 5 bits below the
block's start: mask, base and codes then begin a whole number of units behind the window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.code_parser import CodeParser
from planezip.hdl.summary import PlaneClass
from planezip.model.format import DEFAULT, Tag, log2_ceil

__all__ = ["BIAS", "ParseLoop"]

BIAS = 5  # positions are held this much below the block's start
_BANKS, _BANK_BITS, _POSITION_BITS, _UNIT = 4, 128, 16, 8
_WINDOW = 216  # 33 codes of five bits behind 32 bits of base and the tag, from any bit of a unit


class ParseLoop(wiring.Component):
    """Parse loop for the default parameters: a block per 4 cycles, 8 cycles around.

    Attributes
    ----------
    first, init, back, wide, coded : In
        Taken in phase 0: the block starts at ``init`` (otherwise where the block before the
        last one ended), in the back stream, with 32-bit symbols, in a coded chunk.
    rows : Out(4 x 7)
        SRAM addresses, in phase 0.
    data : In(512)
        SRAM data, a cycle later.
    phase : Out(2)
    position : Out(16)
        Start of the block less BIAS, in phase 1.
    tag : Out(3)
        In phase 3.
    valid, classes : Out
        Of the code parser, from phase 0 on.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "first": In(1),
                "init": In(_POSITION_BITS),
                "back": In(1),
                "wide": In(1),
                "coded": In(1),
                "rows": Out(data.ArrayLayout(unsigned(7), _BANKS)),
                "data": In(_BANKS * _BANK_BITS),
                "phase": Out(2),
                "position": Out(_POSITION_BITS),
                "tag": Out(3),
                "valid": Out(1),
                "classes": Out(data.ArrayLayout(PlaneClass, 8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.parser = parser = CodeParser(DEFAULT)
        m.d.sync += self.phase.eq(self.phase + 1)
        starts, loads, counts = (self.phase == k for k in (0, 2, 3))

        # 1: start and address.
        (length,) = _registers("payload", length=10)
        (low_end,) = _registers("end", low=9)
        end_rows = _registers("end", row_0=7, row_1=7, row_2=7)  # row of the end, plus 0, 1, 2
        low = Signal(10)  # length is 512 at most: carries one row
        m.d.comb += low.eq(Mux(self.first, self.init[:9], low_end + length))
        rows = [Mux(self.first, self.init[9:] + k, row) for k, row in enumerate(end_rows)]
        for k in range(_BANKS):
            later = low[7:9] > Mux(self.back, _BANKS - 1 - k, k)  # its words are in the next row
            choice = (~low[9] & ~later, low[9] ^ later, low[9] & later)
            m.d.comb += self.rows[k].eq(
                _any(
                    (row ^ self.back.replicate(7)) & here.replicate(7)
                    for row, here in zip(rows, choice, strict=True)
                )
            )
        wide_1, coded_1, back = _registers("start", wide=1, coded=1, back=1)
        m.d.sync += [
            self.position.eq(Cat(low[:9], Mux(low[9], rows[1], rows[0]))),
            back.eq(self.back),
            wide_1.eq(self.wide),
            coded_1.eq(self.coded),
        ]

        # 2: window and tag.
        window, tag, position, fine, wide, coded = _registers(
            "window", bits=_WINDOW, tag=3, position=_POSITION_BITS, fine=_UNIT, wide=1, coded=1
        )
        aligned = Signal(_WINDOW)
        m.d.comb += aligned.eq(_window(self.data, self.position, back))
        fine_now = Cat(self.position[:3] == k for k in range(_UNIT))
        m.d.sync += [
            window.eq(aligned),
            tag.eq(_shifted(aligned[BIAS:], fine_now, 3)),
            position.eq(self.position),
            fine.eq(fine_now),
            wide.eq(wide_1),
            coded.eq(coded_1),
        ]

        # 3: skip, top plane of DBX.
        delta = coded & (tag == Tag.DBX)
        masked = coded & ((tag == Tag.ZVC) | (tag == Tag.ZBX))
        planes = coded & ((tag == Tag.DBX) | (tag == Tag.BX) | (tag == Tag.ZBX))
        skips = {
            1: ~delta & ~masked,
            3: delta & ~wide,
            5: (delta | masked) & wide,
            9: masked & ~wide,
        }
        top = [Mux(wide, window[40 + k : 48 + k], window[24 + k : 32 + k]) for k in range(5)]
        one, run = fine & top[0], fine & ~top[0] & top[1]
        three, five = fine & ~top[0] & ~top[1] & top[2], fine & ~top[0] & ~top[1] & ~top[2]
        m.d.comb += [
            parser.load.eq(loads),
            parser.window.eq(
                _any(window[_UNIT * k :] & here.replicate(_WINDOW) for k, here in skips.items())
            ),
            parser.start.eq(Mux(delta, one << 1 | three << 3 | five << 5 | run, fine)),
            parser.pending.eq(delta & run.any()),
            parser.active.eq(planes),
            parser.width.eq(wide),
            self.valid.eq(parser.valid),
            self.classes.eq(parser.classes),
        ]
        skipped, origin, now_wide, active, top_verbatim, top_position = _registers(
            "skip", units=4, origin=_POSITION_BITS, wide=1, active=1, verbatim=1, position=1
        )
        ones = _registers("skip", **{f"ones_{k}": 3 for k in range(16)})  # of the mask, in fours
        mask = _shifted(window[_UNIT:], fine, 64) & Cat(Const(-1, 32), ~wide.replicate(32))
        names = ("zvc", "delta", "zbx", "raw", "bypass")
        kinds = dict(zip(names, _registers("skip", **dict.fromkeys(names, 1)), strict=True))
        m.d.sync += [
            self.tag.eq(tag),
            skipped.eq(_any(here.replicate(4) & k for k, here in skips.items())),
            origin.eq(position),
            *(four.eq(sum(mask[4 * k : 4 * k + 4])) for k, four in enumerate(ones)),
            now_wide.eq(wide),
            active.eq(planes),
            kinds["zvc"].eq(masked & (tag == Tag.ZVC)),
            kinds["zbx"].eq(masked & (tag == Tag.ZBX)),
            kinds["delta"].eq(delta),
            kinds["raw"].eq(coded & (tag == Tag.RAW)),
            kinds["bypass"].eq(~coded),
            top_verbatim.eq(delta & one.any()),
            top_position.eq(delta & (five & top[3]).any()),
        ]

        # 4: plane width n, length known so far.
        symbols = Mux(now_wide, 32, 64)
        n, field, zvc_payload, was_wide, was_active, total, early = _registers(
            "total", n=7, field=3, zvc=1, wide=1, active=1, sum=_POSITION_BITS, early=4
        )
        known = _any(
            Mux(here, value % (1 << _POSITION_BITS), 0)
            for here, value in (
                (kinds["raw"], 1024 - BIAS),
                (kinds["bypass"], 2048 - _UNIT),
                (top_verbatim & now_wide, 31 - BIAS),
                (top_verbatim & ~now_wide, 63 - BIAS),
                (top_position, Mux(now_wide, 5, 6) - BIAS),
                (~kinds["raw"] & ~kinds["bypass"] & ~top_verbatim & ~top_position, -BIAS),
            )
        )
        with m.If(counts):
            m.d.sync += [
                n.eq(Mux(kinds["zbx"] | kinds["zvc"], sum(ones), symbols - kinds["delta"])),
                field.eq(0),
                zvc_payload.eq(kinds["zvc"]),
                was_wide.eq(now_wide),
                was_active.eq(active),
                total.eq(Cat(origin[:3] & ~active.replicate(3), origin[3:] + skipped) + known),
            ]

        # 5-8: lengths of the planes; end of the codes.
        flags = [(~c[0] & ~c[2], c[0] & c[2]) for c in map(Value.cast, parser.classes)]
        m.d.sync += length.eq(sum(Mux(v, n, Mux(p, field, 0)) for v, p in flags))
        # early: positions of the first planes, which come before `field`
        with m.If(starts):
            m.d.sync += [field.eq(_field_bits(n)), early.eq(sum(p for _, p in flags))]
        with m.Else():
            m.d.sync += early.eq(0)
        zvc = Mux(zvc_payload, Mux(was_wide, n << 5, n << 4), 0)
        with m.If(~counts):
            m.d.sync += total.eq(total + Mux(starts, zvc, length + early * field))
        rest = Cat(Cat(b for i, b in enumerate(parser.rest) if i >> k & 1).any() for k in range(5))
        codes = (parser.units << 3) + rest
        behind = total + length + Mux(was_active, codes, 0)
        m.d.sync += [
            low_end.eq(behind),
            *(row.eq((behind + (k << 9))[9:]) for k, row in enumerate(end_rows)),
        ]
        return m


def _registers(stage: str, **bits: int) -> list[Any]:
    """Registers without reset, named after the stage that ends at them."""
    return [Signal(size, name=f"{stage}_{key}", reset_less=True) for key, size in bits.items()]


def _window(words: Value, position: Value, back: Value) -> Value:
    """``_WINDOW`` bits from the unit of ``position`` on, out of the rows of the four banks."""
    banks = [words[_BANK_BITS * k : _BANK_BITS * (k + 1)] for k in range(_BANKS)]
    bank = position[7:9]
    parts = []
    for k in range(3):
        forward = Array(banks[(b + k) % _BANKS] for b in range(_BANKS))[bank]
        backward = Array(banks[_BANKS - 1 - (b + k) % _BANKS][::-1] for b in range(_BANKS))[bank]
        parts.append(Mux(back, backward, forward))
    window: Value = Cat(parts)
    for k in (3, 2, 1, 0):
        size = _WINDOW + _UNIT * ((1 << k) - 1)
        window = Mux(position[3 + k], window >> (_UNIT << k), window)[:size]
    return window


def _any(values: Iterable[Value]) -> Value:
    result: Value = Const(0, 1)
    for value in values:
        result = result | value
    return result


def _shifted(bits: Value, amount: Value, size: int) -> Value:
    """``size`` bits from the one that the one-hot ``amount`` says."""
    return Cat((bits[k : k + _UNIT] & amount).any() for k in range(size))


def _field_bits(count: Value) -> Value:
    """ceil(log2(count)) of 0 to 64; 0 for 0 and 1."""
    return Array(log2_ceil(k) for k in range(65))[count]
