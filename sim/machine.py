"""Event-driven machine: compute stream, two copy queues, a hard memory budget.

The rules (paper Section IV, Simulator), each of them in one place below:

* Operators run one at a time in the order of the trace; the replays of an operator's
  dropped operands run just before it.
* A swap-out is queued when its tensor is final, and served first in, first out. The
  device copy is freed when the copy and the last forward use have both ended.
* A prefetch is issued when the compute stream reaches its point, and served first in,
  first out, once the tensor's own swap-out has ended. Its memory is taken when the
  transfer starts; a head that does not fit blocks the queue.
* An operator waits for operands on their way. Then it takes the memory of what it
  creates; where that does not fit it waits for the earliest swap-out in flight, before
  any prefetch gets memory. With none in flight the plan overflows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planezip.sim.graph import (
    BIRTH,
    BY_TURN,
    DEATH,
    FINAL,
    FIRST_BACKWARD,
    LAST_FORWARD,
    READ_STORAGE,
    READS,
    REPLAYS,
    SIZE,
    STORAGE,
    TENSOR,
    TIME,
    WRITES,
    Ints,
)
from planezip.sim.kernel import inlined, kernel
from planezip.sim.replay import DROP, SWAP, resident_source

__all__ = ["LOG_COLUMNS", "Event", "Machine", "S", "run"]

LOG_COLUMNS = 6
_NEVER = np.int64(1) << 62


class Events(NamedTuple):
    """First column of a log row; then start, end in ns and three numbers."""

    COMPUTE: int = 0  # op, replayed tensor or -1, -
    ALLOCATE: int = 1  # storage, owner (replayed tensor, -1: resident), bytes
    FREE: int = 2  # likewise
    SWAP_OUT: int = 3  # tensor
    SWAP_IN: int = 4  # tensor
    ISSUE: int = 5  # tensor, op
    STALL: int = 6  # op, tensor waited for, 0: operand, 1: memory


Event = Events()


class Scalars(NamedTuple):
    """Places of the machine's scalars."""

    NOW: int = 0
    LIVE: int = 1
    PEAK: int = 2
    QUEUED: int = 3  # swap-outs queued so far
    COPIED: int = 4  # and ended
    OUT_FREE: int = 5  # when the device-to-host link is free
    ISSUED: int = 6  # prefetches issued so far
    HEAD: int = 7  # next to start or in flight
    BUSY: int = 8  # one is in flight
    IN_FREE: int = 9  # when the host-to-device link is free
    CLOCK: int = 10  # time up to which the queues were followed
    ROWS: int = 11  # of the log
    REPLAY: int = 12  # ns of replays
    WAIT_OPERAND: int = 13  # ns
    WAIT_MEMORY: int = 14  # ns
    FAILED_OP: int = 15  # -1: none
    MISSING: int = 16  # bytes
    COUNT: int = 17


S = Scalars()


class Machine(NamedTuple):
    """Plan, durations and work space; int64 arrays.

    ``state`` per tensor, ``order`` of the prefetches, ``chain_ops`` of all replays;
    ``tensors`` with a column for each name from ARRIVES to ISSUE_NS (one row more than
    tensors, for CHAIN), ``storages`` with LAST and HELD, ``lists`` with AT_END (per
    operator) and NEXT (per item).
    """

    state: Ints
    order: Ints
    chain_ops: Ints
    tensors: Ints
    storages: Ints
    lists: Ints
    scalars: Ints
    log: Ints


# columns of tensors: prefetch point, last replay, durations, first of its chain_ops;
# then work space: swap-out queue, end of the swap-out, it has ended, the tensor is on
# the device, its last forward use has ended, prefetch issued at
ARRIVES, LAST_NEED, OUT_NS, IN_NS, CHAIN = 0, 1, 2, 3, 4
QUEUE, OUT_END, COPIED, RESIDENT, UNUSED, ISSUE_NS = 5, 6, 7, 8, 9, 10
LAST, HELD = 0, 1
AT_END, NEXT = 0, 1


@inlined
def _row(m, event, start, end, x, y, z):  # type: ignore[no-untyped-def]
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
def _take(a, m, time, storage, owner):  # type: ignore[no-untyped-def]
    m.scalars[S.LIVE] += a.storages[storage, SIZE]
    m.scalars[S.PEAK] = max(m.scalars[S.PEAK], m.scalars[S.LIVE])
    _row(m, Event.ALLOCATE, time, time, storage, owner, a.storages[storage, SIZE])


@inlined
def _free(a, m, time, storage, owner):  # type: ignore[no-untyped-def]
    m.scalars[S.LIVE] -= a.storages[storage, SIZE]
    _row(m, Event.FREE, time, time, storage, owner, a.storages[storage, SIZE])


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
def _advance(a, m, until, budget, may_start):  # type: ignore[no-untyped-def]
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
                _free(a, m, time, a.tensors[t, STORAGE], -1)
        elif arrived == time:
            m.tensors[m.order[m.scalars[S.HEAD]], RESIDENT] = 1
            m.scalars[S.HEAD] += 1
            m.scalars[S.BUSY] = 0
        else:
            t = m.order[m.scalars[S.HEAD]]
            _take(a, m, time, a.tensors[t, STORAGE], -1)
            m.scalars[S.BUSY] = 1
            m.scalars[S.IN_FREE] = time + m.tensors[t, IN_NS]
            _row(m, Event.SWAP_IN, time, time + m.tensors[t, IN_NS], t, 0, 0)
    m.scalars[S.CLOCK] = max(m.scalars[S.CLOCK], until)


@kernel
def _wait_for(a, m, op, t, budget):  # type: ignore[no-untyped-def]
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
        _advance(a, m, time, budget, True)
        m.scalars[S.NOW] = max(m.scalars[S.NOW], time)
    waited = m.scalars[S.NOW] - began
    if waited:
        m.scalars[S.WAIT_OPERAND] += waited
        _row(m, Event.STALL, began, m.scalars[S.NOW], op, t, 0)
    return True


@kernel
def _make_room(a, m, op, size, budget):  # type: ignore[no-untyped-def]
    """Let time pass until ``size`` bytes are free; False on overflow."""
    while m.scalars[S.LIVE] + size > budget:
        time = _next_copied(m)
        if time == _NEVER:
            m.scalars[S.FAILED_OP] = op
            m.scalars[S.MISSING] = m.scalars[S.LIVE] + size - budget
            return False
        t = m.tensors[m.scalars[S.COPIED], QUEUE]
        began = m.scalars[S.NOW]
        _advance(a, m, time, budget, False)
        m.scalars[S.NOW] = max(began, time)
        if m.scalars[S.NOW] > began:
            m.scalars[S.WAIT_MEMORY] += m.scalars[S.NOW] - began
            _row(m, Event.STALL, began, m.scalars[S.NOW], op, t, 1)
    return True


@inlined
def _compute(a, m, op, owner, budget):  # type: ignore[no-untyped-def]
    """The time of one operator; memory is already taken."""
    began = m.scalars[S.NOW]
    _row(m, Event.COMPUTE, began, began + a.ops[op, TIME], op, owner, 0)
    m.scalars[S.NOW] = began + a.ops[op, TIME]
    if m.scalars[S.COPIED] < m.scalars[S.QUEUED] or m.scalars[S.HEAD] < m.scalars[S.ISSUED]:
        _advance(a, m, m.scalars[S.NOW], budget, True)
    else:
        m.scalars[S.CLOCK] = m.scalars[S.NOW]


@kernel
def _replay(a, m, target, budget):  # type: ignore[no-untyped-def]
    """Run the chain of ``target``; False on overflow."""
    first, end = m.tensors[target, CHAIN], m.tensors[target + 1, CHAIN]
    for i in range(first, end):
        k = m.chain_ops[i]
        for j in range(a.ops[k, REPLAYS], a.ops[k + 1, REPLAYS]):
            if resident_source(a, target, m.state, j) < 0:
                m.storages[a.replays[j, READ_STORAGE], LAST] = i
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            m.storages[a.writes[j], LAST] = i
            m.storages[a.writes[j], HELD] = 0
    m.storages[a.tensors[target, STORAGE], LAST] = end
    for i in range(first, end):
        k = m.chain_ops[i]
        size = 0
        for j in range(a.ops[k, REPLAYS], a.ops[k + 1, REPLAYS]):
            t = resident_source(a, target, m.state, j)
            if t >= 0 and not m.tensors[t, RESIDENT] and not _wait_for(a, m, k, t, budget):
                return False
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            if not m.storages[a.writes[j], HELD]:
                size += a.storages[a.writes[j], SIZE]
        if m.scalars[S.LIVE] + size > budget and not _make_room(a, m, k, size, budget):
            return False
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            s = a.writes[j]
            if not m.storages[s, HELD]:
                m.storages[s, HELD] = 1
                _take(a, m, m.scalars[S.NOW], s, target)
        _compute(a, m, k, target, budget)
        m.scalars[S.REPLAY] += a.ops[k, TIME]
        for j in range(a.ops[k, REPLAYS], a.ops[k + 1, REPLAYS]):
            s = a.replays[j, READ_STORAGE]
            if m.storages[s, HELD] and m.storages[s, LAST] == i:
                m.storages[s, HELD] = 0
                _free(a, m, m.scalars[S.NOW], s, target)
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            s = a.writes[j]
            if m.storages[s, HELD] and m.storages[s, LAST] == i:
                m.storages[s, HELD] = 0
                _free(a, m, m.scalars[S.NOW], s, target)
    for i in range(first, end):  # so that marks never outlive the chain
        k = m.chain_ops[i]
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            m.storages[a.writes[j], HELD] = 0
    m.tensors[target, RESIDENT] = 1
    return True


@inlined
def _queue_swap_out(a, m, t):  # type: ignore[no-untyped-def]
    start = max(m.scalars[S.NOW], m.scalars[S.OUT_FREE])
    m.tensors[t, OUT_END] = start + m.tensors[t, OUT_NS]
    m.scalars[S.OUT_FREE] = m.tensors[t, OUT_END]
    m.tensors[m.scalars[S.QUEUED], QUEUE] = t
    m.scalars[S.QUEUED] += 1
    _row(m, Event.SWAP_OUT, start, m.tensors[t, OUT_END], t, 0, 0)


@inlined
def _operator_ended(a, m, op):  # type: ignore[no-untyped-def]
    """Free what is not used any more, queue the swap-outs of what became final."""
    now = m.scalars[S.NOW]
    item = m.lists[op, AT_END]
    while item >= 0:
        kind, number = item % 3, item // 3
        if kind == 0:
            t = a.storages[number, TENSOR]
            if t < 0 or m.tensors[t, RESIDENT]:
                _free(a, m, now, number, -1)
        elif kind == 1:
            _queue_swap_out(a, m, number)
        else:
            m.tensors[number, UNUSED] = 1
            m.tensors[number, RESIDENT] = 0
            if m.state[number] == DROP or m.tensors[number, COPIED]:
                _free(a, m, now, a.tensors[number, STORAGE], -1)
        item = m.lists[item, NEXT]


@kernel
def _prepare(a, m):  # type: ignore[no-untyped-def]
    """Lists of what happens at the end of each operator; initial memory."""
    m.scalars[:] = 0
    m.scalars[S.FAILED_OP] = -1
    m.tensors[:, OUT_END] = 0
    m.tensors[:, COPIED] = 0
    m.tensors[:, UNUSED] = 0
    m.tensors[:, RESIDENT] = 1
    m.storages[:, HELD] = 0
    m.lists[:, AT_END] = -1
    ops = a.op_count
    for t in range(a.tensor_count - 1, -1, -1):
        if m.state[t] != 0 and a.tensors[t, LAST_FORWARD] >= 0:
            item = 3 * t + 2
            m.lists[item, NEXT] = m.lists[a.tensors[t, LAST_FORWARD], AT_END]
            m.lists[a.tensors[t, LAST_FORWARD], AT_END] = item
    for t in range(a.tensor_count - 1, -1, -1):
        if m.state[t] == SWAP and a.tensors[t, FINAL] >= 0:
            item = 3 * t + 1
            m.lists[item, NEXT] = m.lists[a.tensors[t, FINAL], AT_END]
            m.lists[a.tensors[t, FINAL], AT_END] = item
    for s in range(a.storage_count - 1, -1, -1):
        last = a.storages[s, DEATH]
        if a.storages[s, TENSOR] >= 0:
            last = max(last, m.tensors[a.storages[s, TENSOR], LAST_NEED])
        if last < ops:
            item = 3 * s
            m.lists[item, NEXT] = m.lists[last, AT_END]
            m.lists[last, AT_END] = item
    for s in range(a.storage_count):
        if a.storages[s, BIRTH] < 0:
            _take(a, m, 0, s, -1)
    for t in range(a.tensor_count):
        if m.state[t] == SWAP and a.tensors[t, FINAL] < 0:
            _queue_swap_out(a, m, t)


@kernel
def run(a, m, budget):  # type: ignore[no-untyped-def]
    """Run one iteration; results are in ``m.scalars`` and ``m.log``."""
    _prepare(a, m)
    if m.scalars[S.LIVE] > budget:
        m.scalars[S.FAILED_OP] = 0
        m.scalars[S.MISSING] = m.scalars[S.LIVE] - budget
        return
    turn = 0
    for op in range(a.op_count):
        count = m.scalars[S.ISSUED]
        while count < len(m.order) and m.tensors[m.order[count], ARRIVES] <= op:
            m.tensors[m.order[count], ISSUE_NS] = m.scalars[S.NOW]
            _row(m, Event.ISSUE, m.scalars[S.NOW], m.scalars[S.NOW], m.order[count], op, 0)
            count += 1
        m.scalars[S.ISSUED] = count
        while turn < a.tensor_count and a.tensors[a.tensors[turn, BY_TURN], FIRST_BACKWARD] == op:
            t = a.tensors[turn, BY_TURN]
            turn += 1
            if m.state[t] == DROP and not _replay(a, m, t, budget):
                return
        size = 0
        for j in range(a.ops[op, READS], a.ops[op + 1, READS]):
            t = a.storages[a.reads[j], TENSOR]
            if t >= 0 and not m.tensors[t, RESIDENT] and not _wait_for(a, m, op, t, budget):
                return
        for j in range(a.ops[op, WRITES], a.ops[op + 1, WRITES]):
            if a.storages[a.writes[j], BIRTH] == op:
                size += a.storages[a.writes[j], SIZE]
        if m.scalars[S.LIVE] + size > budget and not _make_room(a, m, op, size, budget):
            return
        for j in range(a.ops[op, WRITES], a.ops[op + 1, WRITES]):
            if a.storages[a.writes[j], BIRTH] == op:
                _take(a, m, m.scalars[S.NOW], a.writes[j], -1)
        _compute(a, m, op, -1, budget)
        _operator_ended(a, m, op)
