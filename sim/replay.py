"""Replay of a dropped tensor: which forward operators, at what cost, in how many bytes.

A chain rebuilds one tensor just before its first backward use. It goes back from the
tensor's writers to storages that are resident then: kept and swapped tensors, and
dropped ones whose own replay comes earlier. Everything else that it needs it makes in
buffers of its own, freed after their last use in the chain, so that nothing resident is
touched; writes to parameters and buffers are left out, random operators draw the same
numbers again. An older version of a storage (before a later in-place change) counts as
not resident, but is read from its copy where the framework saved one: the replay of
``silu_`` reads the tensor that was cloned just before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planezip.sim.graph import (
    READ_COPY,
    READ_STORAGE,
    READ_TENSOR,
    REPLAYS,
    SIZE,
    STORAGE,
    TIME,
    TURN,
    WRITERS,
    WRITES,
    Graph,
    Ints,
)
from planezip.sim.kernel import kernel

__all__ = [
    "DROP",
    "KEEP",
    "SWAP",
    "Scratch",
    "chain",
    "resident_source",
    "scratch",
]

KEEP, SWAP, DROP = 0, 1, 2


class Scratch(NamedTuple):
    """Work space of :func:`chain`; results are in ``ops``, ``leaves`` and ``out``.

    ``out`` has the number of operators, of leaves, the cost in ns, the bytes that the
    chain needs at most (the tensor included), and 1 if the tensor can be rebuilt.
    """

    ops: Ints
    leaves: Ints
    out: Ints
    stamp: Ints
    op_mark: Ints
    leaf_mark: Ints
    last: Ints
    held_mark: Ints
    pending: Ints


def scratch(graph: Graph) -> Scratch:
    """Work space for the tensors of ``graph``."""
    a = graph.arrays

    def empty(size: int) -> Ints:
        return np.zeros(size, np.int64)

    return Scratch(
        ops=empty(a.forward_ops),
        leaves=empty(a.tensor_count),
        out=empty(5),
        stamp=empty(1),
        op_mark=empty(a.forward_ops),
        leaf_mark=empty(a.tensor_count),
        last=empty(a.storage_count),
        held_mark=empty(a.storage_count),
        pending=empty(a.forward_ops + 1),
    )


@kernel
def _push(op, pending, count):  # type: ignore[no-untyped-def]
    """Insert into the ascending list of pending operators."""
    i = count
    while i > 0 and pending[i - 1] > op:
        pending[i] = pending[i - 1]
        i -= 1
    pending[i] = op
    return count + 1


@kernel
def resident_source(a, target, state, position):  # type: ignore[no-untyped-def]
    """Tensor that ``replay_reads[position]`` of a replay for ``target`` is read from.

    -1 if no resident one has that version, so that the chain makes its own.
    """
    for t in (a.replays[position, READ_TENSOR], a.replays[position, READ_COPY]):
        if (
            t >= 0
            and t != target
            and (state[t] != DROP or a.tensors[t, TURN] < a.tensors[target, TURN])
        ):
            return t
    return -1


@kernel
def chain(a, target, state, w):  # type: ignore[no-untyped-def]
    """Chain that rebuilds tensor ``target`` under ``state``; results in ``w``."""
    w.stamp[0] += 1
    stamp = w.stamp[0]
    count = 0
    ops = 0
    leaves = 0
    cost = 0
    ok = 1
    s = a.tensors[target, STORAGE]
    version = a.forward_ops  # writers before this operator are wanted
    k = -1
    position = 0
    while True:
        # s at the version before operator `version`: its latest writer until then, which
        # itself reads the version before that if it changed s in place
        found = False
        for i in range(a.storages[s + 1, WRITERS] - 1, a.storages[s, WRITERS] - 1, -1):
            op = a.writers[i]
            if op < version:
                found = True
                if w.op_mark[op] != stamp:
                    w.op_mark[op] = stamp
                    count = _push(op, w.pending, count)
                break
        if not found:
            ok = 0
        # next read that is not resident
        s = -1
        while s < 0:
            if k < 0 or position == a.ops[k + 1, REPLAYS]:
                if count == 0:
                    break
                count -= 1
                k = w.pending[count]
                w.ops[ops] = k
                ops += 1
                cost += a.ops[k, TIME]
                position = a.ops[k, REPLAYS]
                continue
            t = resident_source(a, target, state, position)
            position += 1
            if t < 0:
                s = a.replays[position - 1, READ_STORAGE]
                version = k
            elif w.leaf_mark[t] != stamp:
                w.leaf_mark[t] = stamp
                w.leaves[leaves] = t
                leaves += 1
        if s < 0:
            break
    w.ops[:ops] = w.ops[:ops][::-1].copy()
    w.out[0] = ops
    w.out[1] = leaves
    w.out[2] = cost
    w.out[3] = _peak(a, target, state, w, ops, stamp)
    w.out[4] = ok


@kernel
def _peak(a, target, state, w, ops, stamp):  # type: ignore[no-untyped-def]
    """Most bytes that the chain's own buffers take, the tensor included."""
    for i in range(ops):
        k = w.ops[i]
        for j in range(a.ops[k, REPLAYS], a.ops[k + 1, REPLAYS]):
            if resident_source(a, target, state, j) < 0:
                w.last[a.replays[j, READ_STORAGE]] = i
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            w.last[a.writes[j]] = i
    goal = a.tensors[target, STORAGE]
    w.last[goal] = ops
    held = 0
    peak = 0
    for i in range(ops):
        k = w.ops[i]
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            s = a.writes[j]
            if w.held_mark[s] != stamp:
                w.held_mark[s] = stamp
                held += a.storages[s, SIZE]
        peak = max(peak, held)
        for j in range(a.ops[k, REPLAYS], a.ops[k + 1, REPLAYS]):
            s = a.replays[j, READ_STORAGE]
            if w.held_mark[s] == stamp and w.last[s] == i:
                w.held_mark[s] = 0
                held -= a.storages[s, SIZE]
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            s = a.writes[j]
            if w.held_mark[s] == stamp and w.last[s] == i:
                w.held_mark[s] = 0
                held -= a.storages[s, SIZE]
    return peak
