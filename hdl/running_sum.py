"""Inverse delta: the running sum of a block's deltas, the first of which is the base."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import slot_geometry
from planezip.hdl.delta import width_shape
from planezip.hdl.wires import wire
from planezip.model.format import DEFAULT, Parameters

__all__ = ["LATENCY", "RunningSum", "running_sum"]

LATENCY = 4


def running_sum(values: list[int], w: int) -> list[int]:
    """Software model: sums of the first, the first two, ... values modulo 2**w."""
    sums, total = [], 0
    for value in values:
        total = total + value & ((1 << w) - 1)
        sums.append(total)
    return sums


class RunningSum(wiring.Component):
    """A beat a cycle, latency ``LATENCY`` cycles; beats without ``on`` pass as they are.

    Words are as wide as the widest symbol; two narrow symbols share the adder of a word, the
    bit between them lets the carry through or stops it.

    Parameters
    ----------
    parameters : Parameters

    Attributes
    ----------
    first : In(1)
        The beat is the first one of its block, LATENCY - 1 cycles later.
    data : In(beat), width : In, on : In(1)
    sums : Out(beat)
    """

    def __init__(self, parameters: Parameters = DEFAULT) -> None:
        self._geometry = g = slot_geometry(parameters)
        super().__init__(
            {
                "first": In(1),
                "data": In(g.slot),
                "width": In(width_shape(parameters)),
                "on": In(1),
                "sums": Out(g.slot),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        size = g.widest
        split = len(g.parameters.symbol_bits) == 2  # words may hold two symbols
        part = size // 2
        count = g.slot // size
        words: list[Value] = [self.data[k : k + size] for k in range(0, g.slot, size)]
        on: Value = self.on
        narrow: Value = (self.width == 0) if split else Const(0, 1)

        steps = 0

        def spread(word: Value) -> Value:
            """What the words above must add: their last symbol's sum."""
            if not split:
                return word & on.replicate(size)
            upper = word[part:]
            return Cat(Mux(narrow, upper, word[:part]), upper) & on.replicate(size)

        def add(a: Value, b: Value) -> Value:
            if not split:
                return wire(m, a + b, "sum")[:size]
            total = wire(
                m, Cat(a[:part], ~narrow, a[part:]) + Cat(b[:part], Const(0, 1), b[part:]), "sum"
            )
            return Cat(total[:part], total[part + 1 : size + 1])

        def step() -> None:
            nonlocal words, on, narrow, steps
            steps += 1
            held = Signal(g.slot + 2, reset_less=True)
            m.d.sync += held.eq(Cat(*words, on, narrow))
            words = [held[k : k + size] for k in range(0, g.slot, size)]
            on, narrow = held[g.slot], held[g.slot + 1]

        if split:
            words = [
                Cat(word[:part], (word[part:] + Mux(narrow & on, word[:part], 0))[:part])
                for word in words
            ]
        # The words' sums from the start of the beat, in the last cycle from that of the block.
        levels = (count - 1).bit_length()
        while steps + levels < LATENCY - 1:
            step()
        for level in range(levels):
            words = [
                add(word, spread(words[(k >> level << level) - 1])) if k >> level & 1 else word
                for k, word in enumerate(words)
            ]
            if levels - level < LATENCY:  # otherwise two levels in the first cycle
                step()
        before = Signal(size, reset_less=True)  # sum of the beats before
        carry = wire(m, Mux(self.first, 0, before), "carry")
        words = [add(word, carry) for word in words]
        sums = Signal(g.slot, reset_less=True)
        m.d.sync += [before.eq(spread(words[-1])), sums.eq(Cat(words))]
        m.d.comb += self.sums.eq(sums)
        return m
