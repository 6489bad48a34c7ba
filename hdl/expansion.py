"""Expansion of ZBX: compacted bits move to the places that a mask names.

The network is an inverse butterfly: level k moves bits up by 2**k, the highest level
first. Its controls are found from the mask, the lowest level first, two levels a cycle, by
one piece of hardware that a block has for three cycles.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.wires import any_of, registers, wire
from planezip.model.format import DEFAULT, Parameters

__all__ = ["ExpansionControl", "expand", "expansion_levels", "expansion_moves", "moved"]


def expand(value: int, mask: int) -> int:
    """Software model: the low bits of ``value``, in order, at the places of ``mask``'s ones."""
    result = 0
    for k in range(mask.bit_length()):
        if mask >> k & 1:
            result |= (value & 1) << k
            value >>= 1
    return result


def expansion_moves(mask: int, bits: int) -> list[int]:
    """Software model of the network's controls: level k moves bits up by 2**k where a one is.

    Bit i at the end has come from i minus the zeros below it; seen from there (lowest level
    first) it moves down by 2**k if bit k of that number is set: parity of the zeros that are
    left.
    """
    moves, zeros = [], ~mask << 1 & ((1 << bits) - 1)
    for level in range(bits.bit_length() - 1):
        parity = zeros
        for k in range(bits.bit_length() - 1):
            parity ^= parity << (1 << k) & ((1 << bits) - 1)
        move = parity & mask
        moves.append(move)
        mask = (mask ^ move) | move >> (1 << level)
        zeros &= ~parity
    return moves


def expansion_levels(parameters: Parameters) -> int:
    """Levels of the network: of the longest plane."""
    return parameters.symbols_per_block.bit_length() - 1


def moved(m: Module, planes: Value, move: Value, level: int) -> Value:
    """``planes`` after a level; each plane (or two of the wider symbols) is as long as ``move``.

    What moves leaves a zero behind, unless another bit comes there.
    """
    size = len(move)
    stays = wire(m, ~move & ~(move >> (1 << level)), "stays")
    parts = [planes[k : k + size] for k in range(0, len(planes), size)]
    return wire(
        m,
        Cat((part & stays) | ((part << (1 << level))[:size] & move) for part in parts),
        "moved",
    )


class ExpansionControl(wiring.Component):
    """Controls of the levels, held for the four slots of a block.

    They are there from phase 0 on, eight cycles after phase 0 of the mask.

    Parameters
    ----------
    parameters : Parameters

    Attributes
    ----------
    phase : In(2)
    mask : In(symbols), on : In(1), wide : In(1)
        Of a block, in phases 0 to 3: its mask, whether it is expanded at all, and whether two
        planes of the wider symbols lie side by side.
    moves : Out(ArrayLayout(symbols, levels))
    """

    def __init__(self, parameters: Parameters = DEFAULT) -> None:
        self._size = size = parameters.symbols_per_block
        self._levels = levels = expansion_levels(parameters)
        super().__init__(
            {
                "phase": In(2),
                "mask": In(size),
                "on": In(1),
                "wide": In(1),
                "moves": Out(data.ArrayLayout(size, levels)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        size, levels = self._size, self._levels
        phase = [self.phase == k for k in range(4)]
        half = size // 2
        mask = wire(m, Mux(self.wide, self.mask[:half].replicate(2), self.mask), "mask_of_all")
        mask = wire(m, mask | (~self.on).replicate(size), "places")
        # A move is by the zeros below a place; the first place of a plane has none.
        zeros = wire(m, Cat(Const(0, 1), ~mask[: size - 1]), "zeros")
        zeros = zeros & ~(self.wide << half)[:size]
        # Phases 1 to 3: two levels each.
        first = phase[3]
        steps = [phase[k] for k in (1, 2, 3)]
        now = registers(m, {"wide": self.wide}, "loaded", first)
        left, left_zeros = (Signal(size, name=k, reset_less=True) for k in ("left", "zeros"))
        rest = left
        found: list[Value] = []
        counts = self._counts(m, left_zeros, now["wide"])
        for j, odd in enumerate(counts):
            move = wire(m, odd & rest, "move")
            found.append(move)
            down = any_of(
                [
                    (move >> (1 << (2 * k + j))) & on.replicate(size)
                    for k, on in enumerate(steps)
                    if 2 * k + j < levels
                ]
            )
            rest = wire(m, (rest ^ move) | down, "rest")
        zero = left_zeros & ~(counts[0] | counts[1])
        with m.If(first):
            m.d.sync += [left.eq(mask), left_zeros.eq(zeros)]
        with m.Elif(~phase[0]):
            m.d.sync += [left.eq(rest), left_zeros.eq(zero)]
        moves = [registers(m, {k: found[k % 2]}, "move", steps[k // 2])[k] for k in range(levels)]
        # Those that are found before the last step wait for it.
        held = registers(m, {k: moves[k] for k in range(min(levels, 4))}, "held", first)
        m.d.comb += [self.moves[k].eq(held.get(k, moves[k])) for k in range(levels)]
        return m

    def _counts(self, m: Module, zeros: Value, wide: Value) -> tuple[Value, Value]:
        """Both low bits of the number of zeros up to and with each place, of each plane."""
        size = self._size
        ones: Value = zeros
        twos: Value = Const(0, size)
        for level in range(self._levels):
            low, high = [], []
            for k in range(size):
                one, two = ones[k], twos[k]
                if k >> level & 1:
                    below = (k >> level << level) - 1
                    # Only the last level leaves the lower plane.
                    alone = wide if 2 << level == size else Const(0, 1)
                    more, twice = ones[below] & ~alone, twos[below] & ~alone
                    two = two ^ twice ^ (one & more)
                    one = one ^ more
                low.append(one)
                high.append(two)
            ones, twos = wire(m, Cat(low), "ones"), wire(m, Cat(high), "twos")
        return ones, twos
