"""Stage one of Algorithm 1: swaps that fill idle link time (paper Section III-C).

Queue deadlines are checked on the stall-free timeline, with the setup of every
transfer: the device-to-host queue, in the order of production, drains before the
forward pass ends; the host-to-device queue, in the order of first backward use, is
served backwards from the uses and must not start before the backward pass does. A
tensor that meets both fits in its own windows.
"""

from __future__ import annotations

import numpy as np

from planezip.sim.graph import (
    BY_TURN,
    CAN_SWAP,
    FINAL,
    FIRST_BACKWARD,
    LAST_FORWARD,
)
from planezip.sim.kernel import kernel
from planezip.sim.liveness import measure
from planezip.sim.replay import KEEP, SWAP

__all__ = ["fill_link", "queues_meet_deadlines"]


@kernel
def queues_meet_deadlines(a, d, copy_ns, setup_ns, by_final):  # type: ignore[no-untyped-def]
    """Whether both queues can serve the swaps of ``d``; sets ``leaves`` and ``arrives``.

    ``copy_ns`` per tensor without setup; ``by_final`` has the tensors in the order in
    which they become final.
    """
    forward_end = a.start[a.forward_ops]
    clock = 0
    for t in by_final:
        if d.state[t] == SWAP:
            clock = max(clock, a.start[a.tensors[t, FINAL] + 1]) + setup_ns + copy_ns[t]
            if clock > forward_end:
                return False
            during = np.searchsorted(a.start, clock, side="left") - 1
            d.leaves[t] = max(during, a.tensors[t, LAST_FORWARD])
    clock = a.start[-1]
    for i in range(a.tensor_count - 1, -1, -1):
        t = a.tensors[i, BY_TURN]
        if d.state[t] == SWAP:
            clock = min(clock, a.start[a.tensors[t, FIRST_BACKWARD]]) - setup_ns - copy_ns[t]
            if clock < forward_end:
                return False
            d.arrives[t] = np.searchsorted(a.start, clock, side="right") - 1
    return True


@kernel
def fill_link(a, d, m, ranked, copy_ns, setup_ns, by_final, link_ns, budget, allowed):  # type: ignore[no-untyped-def]
    """Swap tensors in the order ``ranked`` until the budget holds or ``link_ns`` is used.

    ``link_ns`` is the budget of copy time, eta * min(T_fwd, T_bwd); ``allowed`` is 0
    for tensors that must stay.
    """
    used = 0
    if m.peak[measure(a, d, m)] <= budget:
        return
    for t in ranked:
        if a.tensors[t, CAN_SWAP] == 0 or allowed[t] == 0 or used + copy_ns[t] > link_ns:
            continue
        d.state[t] = SWAP
        if not queues_meet_deadlines(a, d, copy_ns, setup_ns, by_final):
            d.state[t] = KEEP
            continue
        used += copy_ns[t]
        queues_meet_deadlines(a, d, copy_ns, setup_ns, by_final)
        if m.peak[measure(a, d, m)] <= budget:
            break
    # a refused candidate has moved the others' points
    queues_meet_deadlines(a, d, copy_ns, setup_ns, by_final)
