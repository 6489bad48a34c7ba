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
from numba import njit

from planezip.sim.graph import Ints
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

    ``state``, ``arrives``, ``last_need``, ``out_ns``, ``in_ns`` per tensor; ``order`` of
    the prefetches; ``chain_bounds``, ``chain_ops`` per tensor; the rest is work space.
    """

    state: Ints
    arrives: Ints
    last_need: Ints
    out_ns: Ints
    in_ns: Ints
    order: Ints
    chain_bounds: Ints
    chain_ops: Ints
    scalars: Ints
    queue: Ints
    out_end: Ints
    copied: Ints
    resident: Ints
    unused: Ints
    issue_ns: Ints
    at_end: Ints
    next_at_end: Ints
    last: Ints
    held: Ints
    log: Ints


@njit(cache=True)
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


@njit(cache=True)
def _take(a, m, time, storage, owner):  # type: ignore[no-untyped-def]
    m.scalars[S.LIVE] += a.size[storage]
    m.scalars[S.PEAK] = max(m.scalars[S.PEAK], m.scalars[S.LIVE])
    _row(m, Event.ALLOCATE, time, time, storage, owner, a.size[storage])


@njit(cache=True)
def _free(a, m, time, storage, owner):  # type: ignore[no-untyped-def]
    m.scalars[S.LIVE] -= a.size[storage]
    _row(m, Event.FREE, time, time, storage, owner, a.size[storage])


@njit(cache=True)
def _next_copied(m):  # type: ignore[no-untyped-def]
    """When the earliest swap-out in flight ends."""
    if m.scalars[S.COPIED] < m.scalars[S.QUEUED]:
        return m.out_end[m.queue[m.scalars[S.COPIED]]]
    return _NEVER


@njit(cache=True)
def _next_start(a, m, budget):  # type: ignore[no-untyped-def]
    """When the head of the prefetch queue can start."""
    if m.scalars[S.BUSY] or m.scalars[S.HEAD] >= m.scalars[S.ISSUED]:
        return _NEVER
    t = m.order[m.scalars[S.HEAD]]
    if m.scalars[S.LIVE] + a.size[a.storage[t]] > budget:
        return _NEVER
    ready = max(m.issue_ns[t], m.out_end[t])
    return max(ready, m.scalars[S.IN_FREE], m.scalars[S.CLOCK])


@njit(cache=True)
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
            t = m.queue[m.scalars[S.COPIED]]
            m.scalars[S.COPIED] += 1
            m.copied[t] = 1
            if m.unused[t]:
                m.resident[t] = 0
                _free(a, m, time, a.storage[t], -1)
        elif arrived == time:
            m.resident[m.order[m.scalars[S.HEAD]]] = 1
            m.scalars[S.HEAD] += 1
            m.scalars[S.BUSY] = 0
        else:
            t = m.order[m.scalars[S.HEAD]]
            _take(a, m, time, a.storage[t], -1)
            m.scalars[S.BUSY] = 1
            m.scalars[S.IN_FREE] = time + m.in_ns[t]
            _row(m, Event.SWAP_IN, time, time + m.in_ns[t], t, 0, 0)
    m.scalars[S.CLOCK] = max(m.scalars[S.CLOCK], until)


@njit(cache=True)
def _wait_for(a, m, op, t, budget):  # type: ignore[no-untyped-def]
    """Let time pass until tensor ``t`` has come back; False on overflow."""
    began = m.scalars[S.NOW]
    while not m.resident[t]:
        arrived = m.scalars[S.IN_FREE] if m.scalars[S.BUSY] else _NEVER
        time = min(_next_copied(m), arrived, _next_start(a, m, budget))
        if time == _NEVER:
            head = m.order[m.scalars[S.HEAD]]
            m.scalars[S.FAILED_OP] = op
            m.scalars[S.MISSING] = m.scalars[S.LIVE] + a.size[a.storage[head]] - budget
            return False
        _advance(a, m, time, budget, True)
        m.scalars[S.NOW] = max(m.scalars[S.NOW], time)
    waited = m.scalars[S.NOW] - began
    if waited:
        m.scalars[S.WAIT_OPERAND] += waited
        _row(m, Event.STALL, began, m.scalars[S.NOW], op, t, 0)
    return True


@njit(cache=True)
def _make_room(a, m, op, size, budget):  # type: ignore[no-untyped-def]
    """Let time pass until ``size`` bytes are free; False on overflow."""
    while m.scalars[S.LIVE] + size > budget:
        time = _next_copied(m)
        if time == _NEVER:
            m.scalars[S.FAILED_OP] = op
            m.scalars[S.MISSING] = m.scalars[S.LIVE] + size - budget
            return False
        t = m.queue[m.scalars[S.COPIED]]
        began = m.scalars[S.NOW]
        _advance(a, m, time, budget, False)
        m.scalars[S.NOW] = max(began, time)
        if m.scalars[S.NOW] > began:
            m.scalars[S.WAIT_MEMORY] += m.scalars[S.NOW] - began
            _row(m, Event.STALL, began, m.scalars[S.NOW], op, t, 1)
    return True


@njit(cache=True)
def _compute(a, m, op, owner, budget):  # type: ignore[no-untyped-def]
    """The time of one operator; memory is already taken."""
    began = m.scalars[S.NOW]
    _row(m, Event.COMPUTE, began, began + a.time[op], op, owner, 0)
    m.scalars[S.NOW] = began + a.time[op]
    _advance(a, m, m.scalars[S.NOW], budget, True)


@njit(cache=True)
def _replay(a, m, target, budget):  # type: ignore[no-untyped-def]
    """Run the chain of ``target``; False on overflow."""
    first, end = m.chain_bounds[target], m.chain_bounds[target + 1]
    for i in range(first, end):
        k = m.chain_ops[i]
        for j in range(a.replay_bounds[k], a.replay_bounds[k + 1]):
            if resident_source(a, target, m.state, j) < 0:
                m.last[a.replay_reads[j]] = i
        for j in range(a.write_bounds[k], a.write_bounds[k + 1]):
            m.last[a.writes[j]] = i
            m.held[a.writes[j]] = 0
    m.last[a.storage[target]] = end
    for i in range(first, end):
        k = m.chain_ops[i]
        size = 0
        for j in range(a.replay_bounds[k], a.replay_bounds[k + 1]):
            t = resident_source(a, target, m.state, j)
            if t >= 0 and not m.resident[t] and not _wait_for(a, m, k, t, budget):
                return False
        for j in range(a.write_bounds[k], a.write_bounds[k + 1]):
            if not m.held[a.writes[j]]:
                size += a.size[a.writes[j]]
        if not _make_room(a, m, k, size, budget):
            return False
        for j in range(a.write_bounds[k], a.write_bounds[k + 1]):
            s = a.writes[j]
            if not m.held[s]:
                m.held[s] = 1
                _take(a, m, m.scalars[S.NOW], s, target)
        _compute(a, m, k, target, budget)
        m.scalars[S.REPLAY] += a.time[k]
        for j in range(a.replay_bounds[k], a.replay_bounds[k + 1]):
            s = a.replay_reads[j]
            if m.held[s] and m.last[s] == i and resident_source(a, target, m.state, j) < 0:
                m.held[s] = 0
                _free(a, m, m.scalars[S.NOW], s, target)
        for j in range(a.write_bounds[k], a.write_bounds[k + 1]):
            s = a.writes[j]
            if m.held[s] and m.last[s] == i:
                m.held[s] = 0
                _free(a, m, m.scalars[S.NOW], s, target)
    for i in range(first, end):  # so that marks never outlive the chain
        k = m.chain_ops[i]
        for j in range(a.write_bounds[k], a.write_bounds[k + 1]):
            m.held[a.writes[j]] = 0
    m.resident[target] = 1
    return True


@njit(cache=True)
def _queue_swap_out(a, m, t):  # type: ignore[no-untyped-def]
    start = max(m.scalars[S.NOW], m.scalars[S.OUT_FREE])
    m.out_end[t] = start + m.out_ns[t]
    m.scalars[S.OUT_FREE] = m.out_end[t]
    m.queue[m.scalars[S.QUEUED]] = t
    m.scalars[S.QUEUED] += 1
    _row(m, Event.SWAP_OUT, start, m.out_end[t], t, 0, 0)


@njit(cache=True)
def _operator_ended(a, m, op):  # type: ignore[no-untyped-def]
    """Free what is not used any more, queue the swap-outs of what became final."""
    now = m.scalars[S.NOW]
    item = m.at_end[op]
    while item >= 0:
        kind, number = item % 3, item // 3
        if kind == 0:
            t = a.tensor[number]
            if t < 0 or m.resident[t]:
                _free(a, m, now, number, -1)
        elif kind == 1:
            _queue_swap_out(a, m, number)
        else:
            m.unused[number] = 1
            if m.state[number] == DROP or m.copied[number]:
                m.resident[number] = 0
                _free(a, m, now, a.storage[number], -1)
        item = m.next_at_end[item]


@njit(cache=True)
def _prepare(a, m):  # type: ignore[no-untyped-def]
    """Lists of what happens at the end of each operator; initial memory."""
    m.scalars[:] = 0
    m.scalars[S.FAILED_OP] = -1
    m.out_end[:] = 0
    m.copied[:] = 0
    m.unused[:] = 0
    m.resident[:] = 1
    m.held[:] = 0
    m.at_end[:] = -1
    ops = len(a.time)
    for t in range(len(a.storage) - 1, -1, -1):
        if m.state[t] != 0 and a.last_forward[t] >= 0:
            item = 3 * t + 2
            m.next_at_end[item] = m.at_end[a.last_forward[t]]
            m.at_end[a.last_forward[t]] = item
    for t in range(len(a.storage) - 1, -1, -1):
        if m.state[t] == SWAP and a.final[t] >= 0:
            item = 3 * t + 1
            m.next_at_end[item] = m.at_end[a.final[t]]
            m.at_end[a.final[t]] = item
    for s in range(len(a.size) - 1, -1, -1):
        last = a.death[s]
        if a.tensor[s] >= 0:
            last = max(last, m.last_need[a.tensor[s]])
        if last < ops:
            item = 3 * s
            m.next_at_end[item] = m.at_end[last]
            m.at_end[last] = item
    for s in range(len(a.size)):
        if a.birth[s] < 0:
            _take(a, m, 0, s, -1)
    for t in range(len(a.storage)):
        if m.state[t] == SWAP and a.final[t] < 0:
            _queue_swap_out(a, m, t)


@njit(cache=True)
def run(a, m, budget):  # type: ignore[no-untyped-def]
    """Run one iteration; results are in ``m.scalars`` and ``m.log``."""
    _prepare(a, m)
    if m.scalars[S.LIVE] > budget:
        m.scalars[S.FAILED_OP] = 0
        m.scalars[S.MISSING] = m.scalars[S.LIVE] - budget
        return
    turn = 0
    for op in range(len(a.time)):
        count = m.scalars[S.ISSUED]
        while count < len(m.order) and m.arrives[m.order[count]] <= op:
            m.issue_ns[m.order[count]] = m.scalars[S.NOW]
            _row(m, Event.ISSUE, m.scalars[S.NOW], m.scalars[S.NOW], m.order[count], op, 0)
            count += 1
        m.scalars[S.ISSUED] = count
        while turn < len(a.by_turn) and a.first_backward[a.by_turn[turn]] == op:
            t = a.by_turn[turn]
            turn += 1
            if m.state[t] == DROP and not _replay(a, m, t, budget):
                return
        size = 0
        for j in range(a.read_bounds[op], a.read_bounds[op + 1]):
            t = a.tensor[a.reads[j]]
            if t >= 0 and not m.resident[t] and not _wait_for(a, m, op, t, budget):
                return
        for j in range(a.write_bounds[op], a.write_bounds[op + 1]):
            if a.birth[a.writes[j]] == op:
                size += a.size[a.writes[j]]
        if not _make_room(a, m, op, size, budget):
            return
        for j in range(a.write_bounds[op], a.write_bounds[op + 1]):
            if a.birth[a.writes[j]] == op:
                _take(a, m, m.scalars[S.NOW], a.writes[j], -1)
        _compute(a, m, op, -1, budget)
        _operator_ended(a, m, op)
