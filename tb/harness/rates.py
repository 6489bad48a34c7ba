"""Rates of a run, from the time stamps of its raw side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tb.harness.lanes import Lane
from tb.harness.tensors import Tensor

__all__ = ["Rates", "rates_of", "worst_window"]

_WINDOW_BLOCKS = 32
_SHOWN = 10


@dataclass(frozen=True)
class Rates:
    """Cycles on the raw side: of the run, per block, in the worst window; chunks too slow."""

    cycles: int = 0
    mean: float = 0.0
    worst: float = 0.0
    slow: Sequence[str] = ()


def worst_window(starts: NDArray[np.int64]) -> float:
    """Cycles a block in the worst window of 32, from the cycles in which blocks began."""
    window = min(_WINDOW_BLOCKS, len(starts) - 1)
    if window < 1:
        return 0.0
    return round(float((starts[window:] - starts[:-window]).max() / window), 4)


def rates_of(
    lane: Lane, path: Path, tensors: Sequence[Tensor], arrivals: Sequence[int], first_in: int
) -> Rates:
    """Rates on the raw side, and the chunks that took too long.

    A block lasts from its first beat to that of the next block, the last one as long as it
    may. Cycles that tensors without raw beats may take (empty ones; behind the
    decompressor also those in mode measure) are not counted against the others. Nor is the
    wait for a chunk that began no later than ``latency_cycles`` after its arrival.
    """
    limit = lane.cycles_per_block
    stamps = np.loadtxt(path, np.int64, ndmin=2, delimiter=" ") if path.stat().st_size else None
    unseen, counts, before, due = 0, [], [], []
    waits, chunk = 0, 0  # unseen chunks keep the next one waiting
    for tensor in tensors:
        seen = tensor.blocks > 0 and (lane.raw_side == "in" or tensor.mode != "measure")
        for blocks_here in tensor.chunks:
            arrived = first_in + arrivals[chunk] + lane.latency_cycles if arrivals else 0
            chunk += 1
            waits = max(waits, arrived)
            if seen:
                counts.append(blocks_here)
                before.append(unseen)
                due.append(waits)
                waits = 0
            else:
                waits += limit * blocks_here
        if not seen:
            unseen += max(tensor.blocks, 1)
            waits += limit * (tensor.blocks == 0)
    if stamps is None or not counts:
        return Rates()
    starts = stamps[stamps[:, 1] & 1 == 1, 0]
    if len(starts) != sum(counts):
        return Rates()  # the mismatches tell
    blocks = np.array(counts, np.int64)
    firsts = np.cumsum(blocks) - blocks
    busy = starts - limit * np.repeat(before, blocks)
    late = np.maximum(np.diff(busy[firsts]) - limit * blocks[:-1], 0)
    late[starts[firsts[1:]] > np.array(due[1:], np.int64)] = 0  # no excuse
    busy = busy - np.repeat(np.concatenate([[0], np.cumsum(late)]), blocks)
    took = np.diff(busy[firsts])
    slow = np.flatnonzero(took > limit * blocks[:-1])
    problems = [
        f"chunk of {counts[k]} blocks, from cycle {starts[firsts[k]]}: {took[k]} cycles"
        f" instead of {limit * counts[k]}"
        for k in slow[:_SHOWN]
    ]
    if arrivals and starts[0] > due[0]:
        problems.append(f"first chunk: from cycle {starts[0]} on instead of {due[0]}")
    cycles = int(starts[-1] - starts[0]) + limit
    mean = (int(busy[-1] - busy[0]) + limit) / len(starts)
    return Rates(cycles, round(mean, 4), worst_window(busy), problems)
