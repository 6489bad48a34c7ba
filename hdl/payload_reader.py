"""Payload reader: the words of the ring that hold the payload of a slot, slot by slot."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import DecoderGeometry
from planezip.hdl.wires import wire
from planezip.model.format import DEFAULT, Parameters

__all__ = ["PayloadReader", "ring_window"]


def ring_window(ring: int, bits: int, at: int, size: int) -> int:
    """Software model: ``size`` bits of a ring of ``bits`` bits from bit ``at`` on."""
    doubled = ring | ring << bits
    return doubled >> at % bits & ((1 << size) - 1)


class PayloadReader(wiring.Component):
    """A window of the ring per cycle, though the ring is read in three of four cycles only.

    Slots 0 and 1 are read; slots 2 and 3 lie in twice as many words from the start of slot 1
    on: the second half of them is read for slot 2, and what slot 3 needs is held.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    phase : In(2)
    at : In
        Position of the first bit of slot 0 in phase 1, of slot 1 in phase 2, and so on.
    word : Out
        In phases 1 to 3: first of the words of the ring to be read.
    data : In
        The banks, one cycle later.
    window : Out
        The words from that of ``at`` on, one cycle later.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = DecoderGeometry(parameters, beats_per_block)
        super().__init__(
            {
                "phase": In(2),
                "at": In(g.position_bits),
                "word": Out(g.word_bits),
                "data": In(g.line),
                "window": Out(g.line),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        bits, select = g.bank.bit_length() - 1, g.bank_select
        here = self.at[bits:]
        second = Signal(g.word_bits, reset_less=True)  # word of slot 1
        before = Signal(g.word_bits, reset_less=True)
        held = Signal(g.line, reset_less=True)
        m.d.sync += before.eq(here)
        with m.If(self.phase == 2):
            m.d.sync += second.eq(here)
        m.d.comb += self.word.eq(Mux(self.phase == 3, second + g.banks, here))
        past = wire(m, before - second, "past")[: select + 1]  # slot 2 against slot 1
        next_past = wire(m, here - second, "next_past")[: select + 1]
        banks: list[Value] = []
        for b in range(g.banks):
            live = self.data[b * g.bank : (b + 1) * g.bank]
            old = held[b * g.bank : (b + 1) * g.bank]
            order = wire(m, (Const(b, select) - second[:select])[:select], "order")
            fresh = (self.phase == 2) | (self.phase == 3) | ((self.phase == 0) & (order < past))
            banks.append(Mux(fresh, live, old))
            with m.If((self.phase == 3) | ((self.phase == 0) & (order < next_past))):
                m.d.sync += old.eq(live)
        m.d.comb += self.window.eq(g.turned(m, wire(m, Cat(banks), "banks"), before))
        return m
