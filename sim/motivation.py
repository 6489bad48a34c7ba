"""Cost of a swap against recomputation, and what the link can move (paper Fig. 1).

The definitions that give the paper's numbers:

* swap time: bytes over the rate of the link, no setup;
* recompute time: sum of the times of the operators that produce the tensor, with its
  inputs resident: followed back through storages that are neither saved nor parameter,
  buffer or input (for a ReLU in place that is batch norm and ReLU);
* share that the link can move: rate of the link times the shorter of forward and
  backward time, over the saved bytes. Here operators that only make a view take the
  launch overhead too (those of autograd itself, ``detach``, do not): ViT-B/16 dispatches
  so many that without it the shares are 36.5% and 11.1%, not 37% and 12%.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planezip.sim.platform import Platform, op_time_ns
from planezip.sim.trace import Kind, Trace

__all__ = ["CostRatio", "cost_ratios", "movable_share", "share_above", "weighted_median"]

_FREE = {"aten.detach", "aten.empty", "aten.empty_like", "aten.empty_strided", "aten.new_empty"}


@dataclass(frozen=True)
class CostRatio:
    """A saved tensor: its size, and swap time over recompute time."""

    storage: int
    bytes: int
    ratio: float


def cost_ratios(trace: Trace, platform: Platform) -> list[CostRatio]:
    """Cost ratio of every saved tensor that an operator made."""
    times = [op_time_ns(op, platform) for op in trace.ops]
    writers: dict[int, list[int]] = {}
    for i, op in enumerate(trace.ops[: trace.backward_start]):
        for n in op.writes:
            writers.setdefault(n, []).append(i)
    saved = set(trace.saved)

    def resident(n: int) -> bool:
        return n in saved or trace.storages[n].kind is not Kind.ACTIVATION

    found = []
    for n in trace.saved:
        storage = trace.storages[n]
        if storage.producer < 0:
            continue
        needed: set[int] = set()
        pending = list(writers[n])
        while pending:
            i = pending.pop()
            if i in needed:
                continue
            needed.add(i)
            for other in trace.ops[i].reads:
                if other != n and not resident(other):
                    pending += [k for k in writers.get(other, ()) if k < i]
        size = storage.size_bytes(platform.float_bytes or None)
        swap_ns = size * 1e9 / platform.link_share_bytes_per_s
        found.append(CostRatio(n, size, swap_ns / max(sum(times[i] for i in needed), 1)))
    return found


def weighted_median(ratios: Sequence[CostRatio]) -> float:
    """Ratio of the tensor at half of all bytes, from the smallest ratio up."""
    total, seen = sum(r.bytes for r in ratios), 0
    for r in sorted(ratios, key=lambda r: r.ratio):
        seen += r.bytes
        if 2 * seen >= total:
            return r.ratio
    raise ValueError("ratios must not be empty")


def share_above(ratios: Sequence[CostRatio], limit: float = 1.0) -> float:
    """Share of the bytes whose ratio is above ``limit``."""
    return sum(r.bytes for r in ratios if r.ratio > limit) / sum(r.bytes for r in ratios)


def movable_share(
    trace: Trace,
    platform: Platform,
    wire_bytes: Mapping[int, int] | None = None,
    view_launches: bool = True,
) -> float:
    """Share of the saved bytes that the link can move, each way, during one iteration.

    Parameters
    ----------
    wire_bytes : mapping of saved storage to bytes, optional
        The link then moves compressed bytes, each transfer limited by the engine too
        (Equation 2).
    view_launches : bool
        Whether views take the launch overhead.
    """
    times = [op_time_ns(op, platform) for op in trace.ops]
    if view_launches:
        for i, op in enumerate(trace.ops):
            if op.view and op.time_ns is None and op.name not in _FREE:
                times[i] = platform.launch_ns
    forward = sum(times[: trace.backward_start])
    backward = sum(times[trace.backward_start : trace.backward_end])
    queue_ns = 0
    for n in trace.saved:
        raw = trace.storages[n].size_bytes(platform.float_bytes or None)
        queue_ns += platform.transfer_ns(raw, raw if wire_bytes is None else wire_bytes[n])
    return min(forward, backward) / queue_ns
