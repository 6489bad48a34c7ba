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
)
from planezip.sim.kernel import inlined, kernel
from planezip.sim.machine_queues import (
    add_row,
    advance,
    free,
    make_room,
    queue_swap_out,
    take,
    wait_for,
)
from planezip.sim.machine_state import (
    ARRIVES,
    AT_END,
    CHAIN,
    COPIED,
    HELD,
    ISSUE_NS,
    LAST,
    LAST_NEED,
    NEXT,
    OUT_END,
    RESIDENT,
    UNUSED,
    Event,
    S,
)
from planezip.sim.replay import (
    DROP,
    SWAP,
    resident_source,
)

__all__ = ["run"]


@inlined
def _compute(a, m, op, owner, budget):  # type: ignore[no-untyped-def]
    """The time of one operator; memory is already taken."""
    began = m.scalars[S.NOW]
    add_row(m, Event.COMPUTE, began, began + a.ops[op, TIME], op, owner, 0)
    m.scalars[S.NOW] = began + a.ops[op, TIME]
    if m.scalars[S.COPIED] < m.scalars[S.QUEUED] or m.scalars[S.HEAD] < m.scalars[S.ISSUED]:
        advance(a, m, m.scalars[S.NOW], budget, True)
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
            if t >= 0 and not m.tensors[t, RESIDENT] and not wait_for(a, m, k, t, budget):
                return False
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            if not m.storages[a.writes[j], HELD]:
                size += a.storages[a.writes[j], SIZE]
        if m.scalars[S.LIVE] + size > budget and not make_room(a, m, k, size, budget):
            return False
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            s = a.writes[j]
            if not m.storages[s, HELD]:
                m.storages[s, HELD] = 1
                take(a, m, m.scalars[S.NOW], s, target)
        _compute(a, m, k, target, budget)
        m.scalars[S.REPLAY] += a.ops[k, TIME]
        for j in range(a.ops[k, REPLAYS], a.ops[k + 1, REPLAYS]):
            s = a.replays[j, READ_STORAGE]
            if m.storages[s, HELD] and m.storages[s, LAST] == i:
                m.storages[s, HELD] = 0
                free(a, m, m.scalars[S.NOW], s, target)
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            s = a.writes[j]
            if m.storages[s, HELD] and m.storages[s, LAST] == i:
                m.storages[s, HELD] = 0
                free(a, m, m.scalars[S.NOW], s, target)
    for i in range(first, end):  # so that marks never outlive the chain
        k = m.chain_ops[i]
        for j in range(a.ops[k, WRITES], a.ops[k + 1, WRITES]):
            m.storages[a.writes[j], HELD] = 0
    m.tensors[target, RESIDENT] = 1
    return True


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
                free(a, m, now, number, -1)
        elif kind == 1:
            queue_swap_out(a, m, number)
        else:
            m.tensors[number, UNUSED] = 1
            m.tensors[number, RESIDENT] = 0
            if m.state[number] == DROP or m.tensors[number, COPIED]:
                free(a, m, now, a.tensors[number, STORAGE], -1)
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
            take(a, m, 0, s, -1)
    for t in range(a.tensor_count):
        if m.state[t] == SWAP and a.tensors[t, FINAL] < 0:
            queue_swap_out(a, m, t)


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
            add_row(m, Event.ISSUE, m.scalars[S.NOW], m.scalars[S.NOW], m.order[count], op, 0)
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
            if t >= 0 and not m.tensors[t, RESIDENT] and not wait_for(a, m, op, t, budget):
                return
        for j in range(a.ops[op, WRITES], a.ops[op + 1, WRITES]):
            if a.storages[a.writes[j], BIRTH] == op:
                size += a.storages[a.writes[j], SIZE]
        if m.scalars[S.LIVE] + size > budget and not make_room(a, m, op, size, budget):
            return
        for j in range(a.ops[op, WRITES], a.ops[op + 1, WRITES]):
            if a.storages[a.writes[j], BIRTH] == op:
                take(a, m, m.scalars[S.NOW], a.writes[j], -1)
        _compute(a, m, op, -1, budget)
        _operator_ended(a, m, op)
