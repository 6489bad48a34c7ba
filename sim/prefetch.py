"""Last step of Algorithm 1: each prefetch at the earliest point that the budget allows.

Tensors are fetched in the order in which they are needed, by an operator or by a replay
before it. A point is an operator of the backward pass: the transfer is issued when the
compute stream reaches it.
"""

from __future__ import annotations

import numpy as np

from planezip.sim.graph import (
    BY_TURN,
    FIRST_BACKWARD,
    SIZE,
    STORAGE,
)
from planezip.sim.kernel import kernel
from planezip.sim.liveness import measure
from planezip.sim.replay import SWAP

__all__ = ["schedule_prefetches"]


@kernel
def schedule_prefetches(a, d, m, budget):  # type: ignore[no-untyped-def]
    """Set ``d.arrives``; returns the tensors in the order of their transfers."""
    measure(a, d, m)
    ops = a.op_count
    swapped = np.zeros(a.tensor_count, np.int64)
    need = np.zeros(a.tensor_count, np.int64)
    count = 0
    for i in range(a.tensor_count):
        t = a.tensors[i, BY_TURN]
        if d.state[t] == SWAP:
            swapped[count] = t
            need[count] = min(a.tensors[t, FIRST_BACKWARD], m.first_need[t]) * a.tensor_count + i
            count += 1
    order = swapped[:count][np.argsort(need[:count])]
    earliest = a.forward_ops
    for t in order:
        size = a.storages[a.tensors[t, STORAGE], SIZE]
        at = min(d.arrives[t], a.tensors[t, FIRST_BACKWARD], m.first_need[t], ops - 1)
        at = max(at, earliest)
        limit = max(earliest, d.leaves[t] + 1)
        while at > limit and m.peak[at - 1] + size <= budget:
            at -= 1
            m.peak[at] += size
        d.arrives[t] = at
        earliest = max(earliest, at)
    return order
