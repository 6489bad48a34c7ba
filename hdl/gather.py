"""Gather: the lanes of a beat that are kept move together, to a cyclic place of their own.

A butterfly network: level k exchanges lanes whose numbers differ in bit k, so that each
kept lane stands where bit k of its destination says. Destinations of kept lanes are
consecutive (modulo the lanes), so the two of a pair always differ in bit k: no two meet,
whatever the offset. One network compacts and rotates; with the offset of the lanes kept
so far the beats of a block come out as rows, ready to be written side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Value

from planezip.hdl.plane_cost import count as popcount
from planezip.hdl.wires import wires

__all__ = ["destinations", "gather", "gathered"]


def gathered(lanes: Sequence[int], keep: Sequence[int], offset: int) -> list[int | None]:
    """Software model: lanes after the network; None where no kept lane arrives."""
    out: list[int | None] = [None] * len(lanes)
    for lane in (value for value, kept in zip(lanes, keep, strict=True) if kept):
        out[offset % len(out)] = lane
        offset += 1
    return out


def destinations(m: Module, keep: Value, offset: Value) -> tuple[list[Value], Value]:
    """Destination of each lane, ``offset`` plus kept lanes below, and the count of kept ones.

    Destinations are modulo the number of lanes (a power of two). Parallel prefix.
    """
    count = len(keep)
    bits = count.bit_length() - 1
    sums: list[Value] = [offset[:bits], *keep[:-1]]
    for level in range(bits):
        sums = [
            (s + sums[(k >> level << level) - 1])[:bits] if k >> level & 1 else s
            for k, s in enumerate(sums)
        ]
        sums = wires(m, sums, "places")
    return sums, popcount(m, list(keep), "kept")


def gather(
    m: Module, lanes: Sequence[Value], keep: Value, places: Sequence[Value]
) -> tuple[list[Value], Value]:
    """Combinational network: lanes at their places, and which of them are kept ones.

    A lane that is not kept goes wherever the others leave room; log2(lanes) levels of
    one multiplexer.
    """
    count = len(lanes)
    width = len(lanes[0])
    items = [Cat(lane, keep[k], places[k]) for k, lane in enumerate(lanes)]
    for level in range(count.bit_length() - 1):
        step = 1 << level
        after = list(items)
        for k in range(count):
            if not k & step:
                low, high = items[k], items[k + step]
                swap = low[width] & low[width + 1 + level] | high[width] & ~high[width + 1 + level]
                after[k], after[k + step] = Mux(swap, high, low), Mux(swap, low, high)
        items = wires(m, after, "gathered")
    return [item[:width] for item in items], Cat(item[width] for item in items)
