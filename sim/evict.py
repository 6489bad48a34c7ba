"""Stage two of Algorithm 1, and the two policies that are the same loop with another cost.

While the plan's peak is above the budget, the tensor with the least cost per byte and
second of idle time among those idle at the peak is evicted:

* ``RECOMPUTE``: dropped; the cost is its replay, dropped inputs included, charged again
  for every dropped tensor whose replay needs it (DTR's heuristic);
* ``CHEAPER``: the smaller of that and the transfer, Equation 1; swapped if that is less;
* ``LARGEST``: always swapped, by the largest product of bytes and idle time;
* ``KEEPING``: dropped, by the cost per byte with everything else kept, for plans whose
  replays keep what they rebuild (:mod:`planezip.sim.keep`).

A candidate whose eviction would push an operator that was within the budget above it is
skipped, and looked at once more when nothing else is left.
"""

from __future__ import annotations

import numpy as np

from planezip.sim.graph import (
    CAN_DROP,
    CAN_SWAP,
    FIRST_BACKWARD,
    LAST_FORWARD,
    SIZE,
    STORAGE,
    TURN,
)
from planezip.sim.kernel import kernel
from planezip.sim.liveness import measure
from planezip.sim.replay import DROP, KEEP, SWAP, chain

__all__ = ["CHEAPER", "KEEPING", "LARGEST", "RECOMPUTE", "cost_all", "cover_deficit"]

RECOMPUTE, CHEAPER, LARGEST, KEEPING = 0, 1, 2, 3


@kernel
def cost_one(a, d, w, t):  # type: ignore[no-untyped-def]
    """Chain of tensor ``t`` under the draft, entered into it."""
    for i in range(d.input_count[t]):
        d.needed_by[d.inputs[t, i], t] = 0
    d.input_count[t] = 0
    d.cost[t] = -1
    if a.tensors[t, CAN_DROP] == 0:
        return
    chain(a, t, d.state, w)
    if w.out[4] == 0:
        return
    d.cost[t] = w.out[2]
    d.extra[t] = w.out[3]
    d.input_count[t] = w.out[1]
    for i in range(w.out[1]):
        d.inputs[t, i] = w.leaves[i]
        d.needed_by[w.leaves[i], t] = 1


@kernel
def cost_all(a, d, w):  # type: ignore[no-untyped-def]
    """Chains of all tensors."""
    for t in range(a.tensor_count):
        cost_one(a, d, w, t)


@kernel
def _drop(a, d, w, t, touched):  # type: ignore[no-untyped-def]
    """Drop ``t``; the chains that read it where it lay go further back.

    Returns their number, with the tensors in ``touched``.
    """
    d.state[t] = DROP
    count = 0
    for c in range(a.tensor_count):
        if d.needed_by[t, c] == 1 and a.tensors[t, TURN] > a.tensors[c, TURN]:
            touched[count] = c
            count += 1
    for i in range(count):
        cost_one(a, d, w, touched[i])
    return count


@kernel
def _best(a, d, mode, copy_ns, allowed, blocked, peak_op, times, again, alone):  # type: ignore[no-untyped-def]
    """Cheapest candidate idle at the peak and what to do with it; -1 if none is left."""
    times[:] = 1
    for c in range(a.tensor_count):
        if d.state[c] == DROP:
            for i in range(d.input_count[c]):
                if a.tensors[d.inputs[c, i], TURN] > a.tensors[c, TURN]:
                    times[d.inputs[c, i]] += again
    best = -1
    best_score = np.inf
    best_state = DROP
    for t in range(a.tensor_count):
        if d.state[t] != KEEP or allowed[t] == 0 or blocked[t] == 1 or a.tensors[t, CAN_SWAP] == 0:
            continue
        if not (a.tensors[t, LAST_FORWARD] < peak_op < a.tensors[t, FIRST_BACKWARD]):
            continue
        idle = a.start[a.tensors[t, FIRST_BACKWARD]] - a.start[a.tensors[t, LAST_FORWARD] + 1]
        if idle <= 0:
            continue
        size = a.storages[a.tensors[t, STORAGE], SIZE]
        cost = np.inf
        state = DROP
        if d.cost[t] >= 0 and mode != LARGEST:
            cost = float(d.cost[t] * times[t])
        if mode == LARGEST:
            cost, state = 1.0, SWAP
        elif mode == CHEAPER and copy_ns[t] < cost:
            cost, state = float(copy_ns[t]), SWAP
        score = cost / (float(size) * float(idle))
        if mode == KEEPING:
            score = cost if d.cost[t] < 0 else float(alone[t]) / float(size)
        if score < best_score:
            best, best_score, best_state = t, score, state
    return best, best_state


@kernel
def cover_deficit(a, d, m, w, mode, copy_ns, budget, allowed, again, skip):  # type: ignore[no-untyped-def]
    """Evict until the peak of ``d`` is at most ``budget``.

    ``again`` and ``skip`` (1 or 0) switch off two readings of the paper: that a replay is
    charged again for every replay that needs it, and that candidates are skipped.
    Returns the operator of a peak that cannot be lowered, or -1; expects chains from
    :func:`cost_all`.
    """
    blocked = np.zeros(a.tensor_count, np.int64)
    alone = d.cost.copy()
    touched = np.zeros(a.tensor_count, np.int64)
    times = np.zeros(a.tensor_count, np.int64)
    progress = False
    peak_op = measure(a, d, m)
    before = m.peak.copy()
    while m.peak[peak_op] > budget:
        t, state = _best(a, d, mode, copy_ns, allowed, blocked, peak_op, times, again, alone)
        if t < 0:
            if not progress:
                return peak_op
            progress = False
            blocked[:] = 0
            continue
        count = 0
        if state == DROP:
            count = _drop(a, d, w, t, touched)
        else:
            d.state[t] = state
        before[:] = m.peak
        new_peak_op = measure(a, d, m)
        pushed = False
        for op in range(a.op_count):
            if skip == 1 and m.peak[op] > budget and before[op] <= budget:
                pushed = True
                break
        if pushed:
            blocked[t] = 1
            d.state[t] = KEEP
            for i in range(count):
                cost_one(a, d, w, touched[i])
            measure(a, d, m)
        else:
            progress = True
            peak_op = new_peak_op
    return -1
