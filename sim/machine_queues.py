"""Memory and the two copy queues of the machine (:mod:`planezip.sim.machine`)."""

from __future__ import annotations

import numpy as np

from planezip.sim.graph import (
    SIZE,
    STORAGE,
)
from planezip.sim.kernel import inlined, kernel
from planezip.sim.machine_state import (
    COPIED,
    IN_NS,
    ISSUE_NS,
    OUT_END,
    OUT_NS,
    QUEUE,
    RESIDENT,
    UNUSED,
    Event,
    S,
)

__all__ = ["add_row", "advance", "free", "make_room", "queue_swap_out", "take", "wait_for"]

_NEVER = np.int64(1) << 62


@inlined
def add_row(m, event, start, end, x, y, z):  # type: ignore[no-untyped-def]
    """Add a row to the log, where there is room for it."""
    row = m.scalars[S.ROWS]
    m.scalars[S.ROWS] += 1
    if row < len(m.log):
        m.log[row, 0] = event
        m.log[row, 1] = start
        m.log[row, 2] = end
        m.log[row, 3] = x
        m.log[row, 4] = y
        m.log[row, 5] = z


@inlined
def take(a, m, time, storage, owner):  # type: ignore[no-untyped-def]
    """Take the memory of a storage."""
    m.scalars[S.LIVE] += a.storages[storage, SIZE]
    m.scalars[S.PEAK] = max(m.scalars[S.PEAK], m.scalars[S.LIVE])
    add_row(m, Event.ALLOCATE, time, time, storage, owner, a.storages[storage, SIZE])


@inlined
def free(a, m, time, storage, owner):  # type: ignore[no-untyped-def]
    """Give it back."""
    m.scalars[S.LIVE] -= a.storages[storage, SIZE]
    add_row(m, Event.FREE, time, time, storage, owner, a.storages[storage, SIZE])


@inlined
def _next_copied(m):  # type: ignore[no-untyped-def]
    """When the earliest swap-out in flight ends."""
    if m.scalars[S.COPIED] < m.scalars[S.QUEUED]:
        return m.tensors[m.tensors[m.scalars[S.COPIED], QUEUE], OUT_END]
    return _NEVER


@inlined
def _next_start(a, m, budget):  # type: ignore[no-untyped-def]
    """When the head of the prefetch queue can start."""
    if m.scalars[S.BUSY] or m.scalars[S.HEAD] >= m.scalars[S.ISSUED]:
        return _NEVER
    t = m.order[m.scalars[S.HEAD]]
    if m.scalars[S.LIVE] + a.storages[a.tensors[t, STORAGE], SIZE] > budget:
        return _NEVER
    ready = max(m.tensors[t, ISSUE_NS], m.tensors[t, OUT_END])
    return max(ready, m.scalars[S.IN_FREE], m.scalars[S.CLOCK])


@inlined
def advance(a, m, until, budget, may_start):  # type: ignore[no-untyped-def]
    """Follow both queues up to ``until``."""
    while True:
        copied = _next_copied(m)
        arrived = m.scalars[S.IN_FREE] if m.scalars[S.BUSY] else _NEVER
        start = _next_start(a, m, budget) if may_start else _NEVER
        time = min(copied, arrived, start)
        if time > until:
            break
        m.scalars[S.CLOCK] = max(m.scalars[S.CLOCK], time)
        if copied == time:
            t = m.tensors[m.scalars[S.COPIED], QUEUE]
            m.scalars[S.COPIED] += 1
            m.tensors[t, COPIED] = 1
            if m.tensors[t, UNUSED]:
                free(a, m, time, a.tensors[t, STORAGE], -1)
        elif arrived == time:
            m.tensors[m.order[m.scalars[S.HEAD]], RESIDENT] = 1
            m.scalars[S.HEAD] += 1
            m.scalars[S.BUSY] = 0
        else:
            t = m.order[m.scalars[S.HEAD]]
            take(a, m, time, a.tensors[t, STORAGE], -1)
            m.scalars[S.BUSY] = 1
            m.scalars[S.IN_FREE] = time + m.tensors[t, IN_NS]
            add_row(m, Event.SWAP_IN, time, time + m.tensors[t, IN_NS], t, 0, 0)
    m.scalars[S.CLOCK] = max(m.scalars[S.CLOCK], until)


@kernel
def wait_for(a, m, op, t, budget):  # type: ignore[no-untyped-def]
    """Let time pass until tensor ``t`` has come back; False on overflow."""
    began = m.scalars[S.NOW]
    while not m.tensors[t, RESIDENT]:
        arrived = m.scalars[S.IN_FREE] if m.scalars[S.BUSY] else _NEVER
        time = min(_next_copied(m), arrived, _next_start(a, m, budget))
        if time == _NEVER:
            head = m.order[m.scalars[S.HEAD]]
            m.scalars[S.FAILED_OP] = op
            m.scalars[S.MISSING] = (
                m.scalars[S.LIVE] + a.storages[a.tensors[head, STORAGE], SIZE] - budget
            )
            return False
        advance(a, m, time, budget, True)
        m.scalars[S.NOW] = max(m.scalars[S.NOW], time)
    waited = m.scalars[S.NOW] - began
    if waited:
        m.scalars[S.WAIT_OPERAND] += waited
        add_row(m, Event.STALL, began, m.scalars[S.NOW], op, t, 0)
    return True


@kernel
def make_room(a, m, op, size, budget):  # type: ignore[no-untyped-def]
    """Let time pass until ``size`` bytes are free; False on overflow."""
    while m.scalars[S.LIVE] + size > budget:
        time = _next_copied(m)
        if time == _NEVER:
            m.scalars[S.FAILED_OP] = op
            m.scalars[S.MISSING] = m.scalars[S.LIVE] + size - budget
            return False
        t = m.tensors[m.scalars[S.COPIED], QUEUE]
        began = m.scalars[S.NOW]
        advance(a, m, time, budget, False)
        m.scalars[S.NOW] = max(began, time)
        if m.scalars[S.NOW] > began:
            m.scalars[S.WAIT_MEMORY] += m.scalars[S.NOW] - began
            add_row(m, Event.STALL, began, m.scalars[S.NOW], op, t, 1)
    return True


@inlined
def queue_swap_out(a, m, t):  # type: ignore[no-untyped-def]
    """Queue the swap-out of tensor ``t``, whose last forward write has ended."""
    start = max(m.scalars[S.NOW], m.scalars[S.OUT_FREE])
    m.tensors[t, OUT_END] = start + m.tensors[t, OUT_NS]
    m.scalars[S.OUT_FREE] = m.tensors[t, OUT_END]
    m.tensors[m.scalars[S.QUEUED], QUEUE] = t
    m.scalars[S.QUEUED] += 1
    add_row(m, Event.SWAP_OUT, start, m.tensors[t, OUT_END], t, 0, 0)
