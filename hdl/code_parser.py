"""Code parser: the plane codes of a block, several planes a cycle.

The recurrence of the decompressor. Where a code starts depends on all codes before it, so
the parser follows all positions at once: ``S_j`` is a one-hot vector that says at which
bit of the window the code of plane j of this cycle starts (empty if plane j lies inside a
zero run). One AND-OR gate leads from plane to plane, whatever the codes are:

    S_j+1 = S_j[code of 1 bit] << 1 | S_j[3 bits] << 3 | S_j[5 bits] << 5 | runs that end here

After the planes of a cycle the window moves by whole units of ``unit`` bits; the rest of
the position stays in the one-hot vector. How far it moves is decided three planes before the
end of the cycle, so that the move runs beside the last three. The codes are decoded, at all
positions, in the cycle before they are parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.parser_shape import LONGEST, ParserShape, parse_codes
from planezip.hdl.summary import PlaneClass
from planezip.model.format import DEFAULT, Parameters

__all__ = ["CodeParser", "ParserShape", "parse_codes"]


class CodeParser(wiring.Component):
    """Parses the codes of a block, ``planes`` of them in each of ``cycles`` cycles.

    ``load`` takes a block; the window is parsed from the next cycle on, in w / planes
    cycles; the classes of each of these cycles appear one cycle later (``valid``).
    A new block may be loaded in the last cycle of the one before: one block per
    ``cycles`` cycles. ``units``, ``rest`` and ``wrong`` are valid with the last classes and
    hold until the first classes of another block.

    Parameters
    ----------
    parameters : Parameters
    cycles : int
        Cycles per block at the widest symbols.

    Attributes
    ----------
    load : In(1)
    window : In(shape.window)
        Code bits; the first code starts at the bit that ``start`` marks.
    start : In(shape.span)
        One-hot.
    pending : In(1)
        ``start`` marks a zero run that began with the plane before (the top plane of DBX).
    active : In(1)
        0: the block has no codes.
    width : In
        Index into ``symbol_bits``.
    classes : Out(ArrayLayout(PlaneClass, planes))
        First plane first; ZERO where ``valid`` is 0.
    units, rest : Out
        End of the codes parsed so far: ``units`` units and the one-hot ``rest``.
    wrong : Out(1)
        A run does not end below its first plane; ``units`` and ``rest`` say where it begins.
    """

    def __init__(self, parameters: Parameters = DEFAULT, cycles: int = 4) -> None:
        self._parameters = parameters
        self.shape = shape = ParserShape.of(parameters, cycles)
        self._cycles = cycles
        super().__init__(
            {
                "load": In(1),
                "window": In(shape.window),
                "start": In(shape.span),
                "pending": In(1),
                "active": In(1),
                "width": In(range(len(parameters.symbol_bits))),
                "valid": Out(1),
                "classes": Out(data.ArrayLayout(PlaneClass, shape.planes)),
                "units": Out(range(shape.window // shape.unit + 1)),
                "rest": Out(shape.span),
                "wrong": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        s = self.shape
        count, n, unit = s.planes, s.codes, s.unit

        window = Signal(s.window, reset_less=True)
        start = Signal(s.span, reset_less=True)
        pending = Signal()  # `start` marks a zero run that began in a cycle before
        width = Signal(len(s.run_bits))  # one-hot
        busy = Signal()
        # Per width one-hot: number of cycles that follow this one.
        later = [Signal(w // count, name=f"later_{w}") for w in self._parameters.symbol_bits]

        # Class of a code at each position, decoded in the cycle before.
        # ending: a run that ends in this cycle; lands[j]: if its end is before plane j.
        kinds = three, five, ending = [
            Signal(n, name=k, reset_less=True) for k in ("three", "five", "ending")
        ]
        one, zero_run = window[:n], ~window[:n] & window[1 : n + 1]
        low = count.bit_length() - 1
        fields = [window[2 + k : 2 + k + n] for k in range(low)]
        lands: list[Value] = [Const(0, n)]
        for j in range(1, count + 1):
            lands.append(Signal(n, name=f"lands_{j}"))
            m.d.comb += lands[j].eq(_equal(fields, count - j, n) & ending)

        def decoded(bits: Value, last: Sequence[Value]) -> tuple[Value, ...]:
            """three, five, ending of the next cycle; ``last[i]``: its ``later[i]``."""
            size = len(bits) - 2 - s.run_bits[-1]
            b = [bits[k : k + size] for k in range(2 + s.run_bits[-1])]
            ends = _any(
                _equal(b[2 + low : 2 + run], value, size) & last[i][value].replicate(size)
                for i, run in enumerate(s.run_bits)
                for value in range(1 << run - low)
                if value < len(last[i])
            )
            return ~b[0] & ~b[1] & b[2], ~b[0] & ~b[1] & ~b[2], ~b[0] & b[1] & ends

        def after_run(vector: Value) -> Value:
            return _any(
                (vector & width[i].replicate(n)) << 2 + bits for i, bits in enumerate(s.run_bits)
            )

        # The chain from plane to plane.
        at: list[Signal] = []  # at[j]: one-hot position of the code of plane j
        ones: list[Signal] = []
        threes: list[Signal] = []
        fives: list[Signal] = []
        seen: list[Signal] = []  # seen[j]: positions of all codes up to that of plane j
        ends: list[Value] = []  # ends[j]: the run among them that ends before plane j
        for j in range(count + 1):
            if j == 0:
                here = start
                ends.append(Const(0, n))
            else:
                before = seen[j - 2] if j > 1 else start & pending.replicate(s.span)
                ends.append(Signal(n, name=f"ends_{j}"))
                m.d.comb += ends[j].eq(before & lands[j])
                here = ones[-1] << 1 | threes[-1] << 3 | fives[-1] << 5 | after_run(ends[j])
            at.append(Signal(n + LONGEST, name=f"at_{j}"))
            m.d.comb += at[j].eq(here)
            if j < count:
                for name, group, kind in (
                    ("one", ones, one),
                    ("three", threes, three),
                    ("five", fives, five),
                ):
                    group.append(Signal(n, name=f"{name}_{j}"))
                    m.d.comb += group[j].eq(at[j] & kind)
                seen.append(Signal(n, name=f"seen_{j}"))
                m.d.comb += seen[j].eq(at[j] | (seen[j - 1] if j else 0))

        # Position after this cycle (of a run that goes on: its own), and the move.
        goes_on = Signal(n)
        end = Signal(n + LONGEST)
        front = Signal(n)
        early = seen[s.early - 1] & zero_run & ~_any(ends[: s.early + 1], n) if s.early else 0
        m.d.comb += [
            goes_on.eq(seen[-1] & zero_run & ~_any(ends, n)),
            end.eq(at[count] | goes_on),
            front.eq(at[s.early] | early),
        ]
        hops = Signal(-(-n // unit))
        m.d.comb += hops.eq(Cat(front[k : k + unit].any() for k in range(0, n, unit)))

        def moved(vector: Value) -> Value:
            return _any(
                (vector >> k * unit) & hops[k].replicate(len(vector)) for k in range(len(hops))
            )

        units = Signal.like(self.units)  # moved so far
        position = {
            "rest": moved(end),
            "units": units + _any(Mux(hop, k, 0) for k, hop in enumerate(hops)),
            "wrong": goes_on.any(),
        }
        state = (window, start, units, pending, *kinds)
        m.d.sync += self.valid.eq(busy)
        with m.If(busy):
            m.d.sync += [getattr(self, name).eq(value) for name, value in position.items()]
            following = decoded(window, [k[1:] for k in later])
            m.d.sync += [
                *_assign(state, (moved(window), *position.values(), *map(moved, following))),
                busy.eq(~Cat(k[0] for k in later).any()),
                *(k.eq(k >> 1) for k in later),
            ]
        with m.If(self.load):
            steps = [Mux(self.width == i, 1 << len(k) - 1, 0) for i, k in enumerate(later)]
            first = decoded(self.window, steps)
            m.d.sync += [
                *_assign(state, (self.window, self.start, 0, self.pending, *first)),
                *_assign(later, steps),
                width.eq(1 << self.width),
                busy.eq(self.active),
            ]

        for j in range(count):
            verbatim, five_bits = ones[j].any(), fives[j].any()
            bits = Cat((fives[j] & window[k : k + n]).any() for k in (3, 4))
            bottom = bits[0] | ~(verbatim | five_bits)
            here = Cat(bottom, bits[1], five_bits)
            m.d.sync += self.classes[j].eq(Mux(busy, here, PlaneClass.ZERO))
        return m


def _assign(targets: Iterable[Value], values: Iterable[Value | int]) -> list[Any]:
    return [target.eq(value) for target, value in zip(targets, values, strict=True)]


def _any(values: Iterable[Value], width: int = 1) -> Value:
    result: Value = Const(0, width)
    for value in values:
        result = result | value
    return result


def _equal(bits: Sequence[Value], value: int, width: int) -> Value:
    """Per position: the vectors ``bits`` spell ``value`` (least significant first)."""
    result: Value = Const(-1, width)
    for k, vector in enumerate(bits):
        result = result & (vector if value >> k & 1 else ~vector)
    return result
