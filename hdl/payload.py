"""Payload packer of pass 2: the units of a slot one behind the other, at their place in a ring.

Every unit knows its place in the stream beforehand (a prefix sum of lengths, known
before the data), so units are first rotated by their place modulo a unit, each on its
own, and then merged pairwise: two units into a ring of two units, two of those into a
ring of four. A merge is one AND-OR, and the packed slot needs no aligner any more. A
packer that shifts one string behind another and then aligns the whole has twice the
multiplexers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry
from planezip.hdl.wires import parts_of, rotated, wire, wires
from planezip.model.format import DEFAULT, Parameters

__all__ = [
    "PayloadPacker",
    "PayloadPlaces",
    "expand",
    "grouped",
    "inner_flags",
    "packed",
    "places",
    "shares",
    "thermometer",
]


_NO = Const(0)


def places(start: int, lengths: Sequence[int], ring: int) -> list[int]:
    """Software model: place of each unit, and the end."""
    result = [start]
    for length in lengths:
        result.append(result[-1] + length)
    return [at % ring for at in result]


def packed(units: Sequence[int], starts: Sequence[int], unit_bits: int, ring: int) -> int:
    """Software model: the ring with each unit at its place."""
    value = 0
    for unit, start in zip(units, starts, strict=True):
        for bit in range(unit_bits):
            value |= (unit >> bit & 1) << (start + bit) % ring
    return value


def thermometer(m: Module, value: Value, bits: int, flip: Value = _NO) -> Value:
    """``bits`` flags: bit k is set if k >= ``value`` (0 to bits - 1), or the opposite if ``flip``.

    One AND-OR per flag: the upper half of the value chooses a group, of which the lower
    half fills a part.
    """
    if bits == 1:
        return ~flip
    if bits <= 4:
        return Cat((value <= k) ^ flip for k in range(bits))
    low = len(value) // 2
    return grouped(m, thermometer(m, value[:low], 1 << low, flip), value[low:], flip)


def grouped(m: Module, inner: Value, group: Value, flip: Value = _NO) -> Value:
    """A :func:`thermometer` whose lower half, ``inner``, is known already."""
    size = len(inner)
    groups = range(1 << len(group))
    here = wires(m, [group == k for k in groups], "here")
    full = wires(m, [((group < k) ^ flip) & ~here[k] for k in groups], "full")
    return wire(
        m,
        Cat(inner & h.replicate(size) | f.replicate(size) for h, f in zip(here, full, strict=True)),
        "thermometer",
    )


def inner_flags(start: Value, ring: int, flip: Value = _NO) -> Value:
    """What :func:`grouped` needs of a place in a ring: to be computed a stage before."""
    low = (ring.bit_length() - 1) // 2
    return Cat((start[:low] <= k) ^ flip for k in range(1 << low))


def expand(
    m: Module, value: Value, start: Value, ring: int, inner_low: Value | None = None
) -> Value:
    """A ring of ``ring`` bits with the ring ``value`` laid from ``start`` upwards, else zero.

    ``inner_low``: :func:`inner_flags` of ``start`` and the ring ``value``, if they are known.
    """
    size = len(value)
    if size == ring:
        return value
    inner, bits = size.bit_length() - 1, ring.bit_length() - 1
    window = start[inner:bits]
    count = ring // size
    if count == 2:
        lower = thermometer(m, start[:inner], size, window)
        return wire(m, Cat(value & lower, value & ~lower), "expanded")
    if inner_low is None:
        above = thermometer(m, start[:inner], size)
    else:
        above = grouped(m, inner_low, start[inner // 2 : inner])
    here = wire(m, value & above, "here")
    wrapped = wire(m, value & ~above, "wrapped")
    parts = []
    for k in range(count):
        parts.append(
            (here & (window == k).replicate(size))
            | (wrapped & (window == (k - 1) % count).replicate(size))
        )
    return wire(m, Cat(parts), "expanded")


def shares(plane_bits: Value, geometry: Geometry) -> Value:
    """How many bits of a plane of ``plane_bits`` each of its units has."""
    unit = geometry.unit_bits
    size = unit.bit_length()
    result = []
    for below in range(0, geometry.symbols, unit):
        left = (plane_bits - below)[:size]
        whole = plane_bits >= below + unit
        result.append(Mux(whole, Const(unit, size), Mux(plane_bits > below, left, 0)))
    return Cat(result)


class PayloadPlaces(wiring.Component):
    """Where each unit of a slot starts, and where the next slot does.

    What decides the lengths is taken at the end of a cycle with ``enable``; ``start`` goes
    with the slot taken last, and the outputs follow it combinationally.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    enable : In(1)
    start : In(pointer_bits)
        Where the slot taken last starts.
    width : In, planes : In(1)
        Index of the symbol width; planes, or symbols that fill ``symbol_bits`` of the slot.
    verbatim, positions : In(units)
        As in :class:`~planezip.hdl.position.PositionEncoder`.
    shares : In, position_bits : In
        Length of each unit of a verbatim plane (:func:`shares`), and of a position.
    symbol_bits : In
        Bits of the slot in symbol order.
    places : Out(units * log2(beat_bits))
        Start of each unit in a ring of ``beat_bits``.
    end : Out(pointer_bits)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        self._ring = g.beat_bits.bit_length() - 1
        super().__init__(
            {
                "enable": In(1),
                "start": In(g.pointer_bits),
                "width": In(range(max(2, len(parameters.symbol_bits)))),
                "planes": In(1),
                "verbatim": In(g.units),
                "positions": In(g.units),
                "shares": In(g.symbols // g.unit_bits * g.unit_bits.bit_length()),
                "position_bits": In(range(g.symbols.bit_length())),
                "symbol_bits": In(range(g.beat_bits + 1)),
                "places": Out(g.units * self._ring),
                "end": Out(g.pointer_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        sums = wires(m, [self._length(k) for k in range(g.units)], "lengths")
        for level in range(g.units.bit_length() - 1):
            sums = [
                s + sums[(k >> level << level) - 1] if k >> level & 1 else s
                for k, s in enumerate(sums)
            ]
            sums = wires(m, sums, "sums")
        none = Const(0, self._ring)
        ahead: list[Value] = [none]
        for k in range(1, g.units):
            ahead.append(none | Mux(self.planes, sums[k - 1], k * g.unit_bits))
        ahead_of = Signal(len(self.places), reset_less=True)
        moves = Signal(range(g.beat_bits + 1), reset_less=True)
        with m.If(self.enable):
            m.d.sync += [
                ahead_of.eq(Cat(value[: self._ring] for value in ahead)),
                moves.eq(Mux(self.planes, sums[-1], self.symbol_bits)),
            ]
        starts = [(self.start + value)[: self._ring] for value in parts_of(ahead_of, self._ring)]
        m.d.comb += [self.places.eq(Cat(starts)), self.end.eq(self.start + moves)]
        return m

    def _length(self, k: int) -> Value:
        """Length of unit k: its share of a verbatim plane, or a position in the lowest unit."""
        g = self._geometry
        shares = parts_of(self.shares, g.unit_bits.bit_length())
        result: Value = Const(0)
        for index, w in enumerate(g.parameters.symbol_bits):
            at = k % (g.parameters.symbols(w) // g.unit_bits)
            value = shares[at] & self.verbatim[k].replicate(len(shares[at]))
            if at == 0:
                field = self.position_bits & self.positions[k].replicate(len(self.position_bits))
                value = value | field
            result = Mux(self.width == index, value, result)
        return result


class PayloadPacker(wiring.Component):
    """Each unit at its place in a ring of ``beat_bits``, a cycle later: a slot a cycle.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    enable : In(1)
        Takes the next slot at the end of the cycle.
    units : In(beat_bits)
        Zero above their lengths.
    places : In(units * log2(beat_bits))
        Start of each unit; units do not overlap.
    ring : Out(beat_bits)
        Of the slot taken last.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        self._place_bits = g.beat_bits.bit_length() - 1
        super().__init__(
            {
                "enable": In(1),
                "units": In(g.beat_bits),
                "places": In(g.units * self._place_bits),
                "ring": Out(g.beat_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        units = parts_of(self.units, self._geometry.unit_bits)
        places = parts_of(self.places, self._place_bits)
        turned = [rotated(m, unit, place) for unit, place in zip(units, places, strict=True)]
        rotations = Signal(len(self.units), reset_less=True)
        starts = Signal(len(self.places), reset_less=True)
        with m.If(self.enable):
            m.d.sync += [rotations.eq(Cat(turned)), starts.eq(self.places)]
        rings: list[Value] = parts_of(rotations, self._geometry.unit_bits)
        places = parts_of(starts, self._place_bits)
        while len(rings) > 1:
            wide = 2 * len(rings[0])
            grown = [expand(m, ring, at, wide) for ring, at in zip(rings, places, strict=True)]
            rings = [wire(m, a | b, "merged") for a, b in zip(grown[::2], grown[1::2], strict=True)]
            places = places[::2]
        m.d.comb += self.ring.eq(rings[0])
        return m
