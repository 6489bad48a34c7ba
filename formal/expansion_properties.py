"""Expansion of ZBX: the bits of a plane move to the places of its block's mask."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from formal.check import Check
from formal.prove import Property
from formal.sizes import HALF, PAIRED, SMALL
from planezip.hdl.expansion import ExpansionControl, moved
from planezip.model.format import Parameters

__all__ = ["Network", "properties"]


def _network(m: Module, plane: Value, moves: Any) -> Value:
    """All levels, the highest first, as in the plane rebuild."""
    for level in reversed(range(len(moves))):
        plane = moved(m, plane, moves[level], level)
    return plane


class Network(wiring.Component):
    """The levels alone."""

    def __init__(self, size: int) -> None:
        levels = size.bit_length() - 1
        super().__init__(
            {"data": In(size), "moves": In(data.ArrayLayout(size, levels)), "out": Out(size)}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.out.eq(_network(m, self.data, list(self.moves)))
        return m


class _Expansion(wiring.Component):
    """Controls and levels."""

    def __init__(self, p: Parameters) -> None:
        self.control = ExpansionControl(p)
        size = p.symbols_per_block
        ports = self.control.signature.members
        super().__init__(
            {
                **{name: ports[name] for name in ("phase", "mask", "on", "wide")},
                "data": In(size),
                "out": Out(size),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.control = control = self.control
        for name in ("phase", "mask", "on", "wide"):
            m.d.comb += getattr(control, name).eq(getattr(self, name))
        moves = [control.moves[level] for level in range(len(control.moves))]
        m.d.comb += self.out.eq(_network(m, self.data, moves))
        return m


def _expanded(check: Check, value: Value, mask: Value) -> tuple[Value, Value]:
    """The low bits of ``value``, in order, at the places of the mask's ones.

    And whether there are no others: a plane of ZBX has as many bits as the mask has ones.
    """
    bits, rank = [], Value.cast(Const(0, 1))
    for k in range(len(mask)):
        bits.append(mask[k] & value[: k + 1].bit_select(rank, 1))
        rank = check.wire(rank + mask[k], "rank")
    return check.wire(Cat(bits), "expanded"), check.wire((value >> rank) == 0, "short")


def _place(check: Check, plane: Value, mask: Value, wide: Value) -> tuple[Value, Value]:
    """A plane expanded, or (``wide``) two planes side by side; and whether it may be."""
    half = len(mask) // 2
    one, short = _expanded(check, plane, mask)
    (low, low_short), (high, high_short) = (
        _expanded(check, part, mask[:half]) for part in (plane[:half], plane[half:])
    )
    return Mux(wide, Cat(low, high), one), Mux(wide, low_short & high_short, short)


def _moves(check: Check, mask: Value) -> list[Value]:
    """The bit for place i has to go up by the zeros below i, most significant digit first.

    Before it goes by digit k it is as far below i as the digits up to k say.
    """
    size = len(mask)
    levels = size.bit_length() - 1
    zeros: list[Value] = [Const(0, levels)]
    for k in range(size - 1):
        zeros.append(check.wire((zeros[-1] + ~mask[k])[:levels], "zeros"))
    result = []
    for level in range(levels):
        # Bits that come to a place by this level, of all that end here or less than a move above.
        move = [
            Cat(
                mask[i] & zeros[i][level] & (zeros[i][:level] == i - place)
                for i in range(place, min(place + (1 << level), size))
            ).any()
            for place in range(size)
        ]
        result.append(check.wire(Cat(move), "move"))
    return result


def _controls(check: Check, mask: Value, wide: Value) -> list[Value]:
    """Moves of each level; of two planes side by side those of one, twice."""
    halves = _moves(check, mask[: len(mask) // 2])
    two = [*(Cat(move, move) for move in halves), Const(0)]
    one = _moves(check, mask)
    return [check.wire(Mux(wide, b, a)) for a, b in zip(one, two, strict=True)]


def network(size: int) -> Check:
    """The levels alone, with controls from the naive model: every mask, every bits."""
    dut = Network(size)
    check = Check(dut)
    plane = check.feed(dut.data, "data")
    mask, wide = check.free(size, "mask"), check.free(1, "wide")
    for level, move in enumerate(_controls(check, mask, wide)):
        check.m.d.comb += dut.moves[level].eq(move)
    naive, short = _place(check, plane, mask, wide)
    check.require(short)
    check.equal(dut.out, naive)
    return check


def _block(check: Check, control: Any, p: Parameters) -> tuple[Value, Value, Value, Value]:
    """A block between any others: its four slots; its mask, on, wide.

    They are there for four cycles, the slots eight cycles later. Before and behind it the
    inputs are any, in every cycle.
    """
    cycle = check.cycle(16)
    check.m.d.comb += control.phase.eq(cycle)
    held: list[Value] = []
    for name, bits in {"mask": p.symbols_per_block, "on": 1, "wide": 1}.items():
        held.append(check.constant(bits, f"{name}_of_block"))
        now = check.free(bits, name)
        check.m.d.comb += getattr(control, name).eq(Mux(cycle[2:] == 1, held[-1], now))
    mask, on, wide = held
    if len(p.symbol_bits) == 1:
        check.require(~wide)
    return cycle[2:] == 3, mask, on, wide


def controls(p: Parameters) -> Check:
    """Controls alone: those of the naive model."""
    dut = ExpansionControl(p)
    check = Check(dut)
    here, mask, on, wide = _block(check, dut, p)
    for level, move in enumerate(_controls(check, mask, wide)):
        check.equal(dut.moves[level], Mux(on, move, 0), here)
    return check


def expansion(p: Parameters) -> Check:
    """Controls and levels: the slots of each block, of any bits."""
    dut = _Expansion(p)
    check = Check(dut)
    plane = check.feed(dut.data, "data")
    here, mask, on, wide = _block(check, dut, p)
    naive, short = _place(check, plane, mask, wide)
    check.require(~here | ~on | short)
    check.equal(dut.out, Mux(on, naive, plane), here)
    return check


def properties() -> Iterator[Property]:
    """The network alone, its controls alone, and both together."""
    for size in (8, 64):
        yield Property(
            f"expansion network of {size} bits: to the places of a mask",
            partial(network, size),
            quick=size == 8,
        )
    for name, p in (("8x8", SMALL), ("32x4 and 16x8", HALF)):
        yield Property(
            f"expansion {name}: controls of a block",
            partial(controls, p),
            depth=16,
            quick=name == "8x8",
        )
    for name, p in (("8x8", SMALL), ("16x4 and 8x8", PAIRED)):
        yield Property(
            f"expansion {name}: controls and levels of a block",
            partial(expansion, p),
            depth=16,
            quick=name == "8x8",
        )
