"""Memory of a plan per operator, replays included (paper Section III-C).

A kept tensor exists from its birth to its death. A dropped one is absent between its
last forward use and its replay; a swapped one between ``leaves`` (the operator during
which its copy ends, at least the last forward use) and ``arrives`` (its prefetch point).
A tensor that a replay reads exists until that replay's operator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planezip.sim.graph import (
    BIRTH,
    BORN,
    BY_TURN,
    DEATH,
    FIRST_BACKWARD,
    FIXED_LIVE,
    LAST_FORWARD,
    SIZE,
    STORAGE,
    Graph,
    Ints,
)
from planezip.sim.kernel import kernel
from planezip.sim.replay import DROP, SWAP

__all__ = ["Draft", "Memory", "draft", "measure", "memory"]


class Draft(NamedTuple):
    """A plan in the making; per tensor, all int64.

    ``state`` is KEEP, SWAP or DROP; ``leaves`` and ``arrives`` are operators. Of the
    chain that would rebuild or rebuilds a tensor: ``cost`` in ns (-1: none), ``extra``
    bytes, ``inputs`` (a row of tensors) with ``input_count``; ``needed_by[t, c]`` is 1
    if ``t`` is among the inputs of ``c``.
    """

    state: Ints
    leaves: Ints
    arrives: Ints
    cost: Ints
    extra: Ints
    inputs: Ints
    input_count: Ints
    needed_by: Ints


class Memory(NamedTuple):
    """Result of :func:`measure`.

    ``live`` bytes during each operator, ``peak`` the same or more where a replay just
    before it needs more, ``first_need`` and ``last_need`` the first and last operator
    whose replays read a tensor, ``base`` scratch.
    """

    live: Ints
    peak: Ints
    first_need: Ints
    last_need: Ints
    base: Ints


def draft(graph: Graph) -> Draft:
    """Plan that keeps everything."""
    count = graph.tensors
    a = graph.arrays
    return Draft(
        state=np.zeros(count, np.int64),
        leaves=a.tensors[:, LAST_FORWARD].copy(),
        arrives=a.tensors[:, FIRST_BACKWARD].copy(),
        cost=np.full(count, -1, np.int64),
        extra=np.zeros(count, np.int64),
        inputs=np.zeros((count, count), np.int64),
        input_count=np.zeros(count, np.int64),
        needed_by=np.zeros((count, count), np.int64),
    )


def memory(graph: Graph) -> Memory:
    """Room for the result of :func:`measure`."""
    ops, count = graph.arrays.op_count, graph.tensors
    return Memory(*(np.zeros(n, np.int64) for n in (ops, ops, count, count, ops + 1)))


@kernel
def measure(a, d, m):  # type: ignore[no-untyped-def]
    """Fill ``m`` for draft ``d``; returns the operator of the peak."""
    ops = a.op_count
    tensors = a.tensor_count
    m.first_need[:] = ops
    m.last_need[:] = -1
    for t in range(tensors):
        if d.state[t] == DROP:
            use = a.tensors[t, FIRST_BACKWARD]
            for i in range(d.input_count[t]):
                leaf = d.inputs[t, i]
                m.first_need[leaf] = min(m.first_need[leaf], use)
                m.last_need[leaf] = max(m.last_need[leaf], use)
    change = m.base
    change[:] = 0
    for t in range(tensors):
        s = a.tensors[t, STORAGE]
        size = a.storages[s, SIZE]
        change[max(a.storages[s, BIRTH], 0)] += size
        change[min(max(a.storages[s, DEATH], m.last_need[t]) + 1, ops)] -= size
        if d.state[t] == DROP:
            gone, back = a.tensors[t, LAST_FORWARD], a.tensors[t, FIRST_BACKWARD]
        elif d.state[t] == SWAP:
            gone, back = d.leaves[t], min(d.arrives[t], m.first_need[t])
        else:
            continue
        if gone + 1 < back:
            change[gone + 1] -= size
            change[back] += size
    total = 0
    for op in range(ops):
        total += change[op]
        m.live[op] = a.ops[op, FIXED_LIVE] + total
        m.peak[op] = m.live[op]
    # replays: those before one operator run in turn, each finds the later ones absent
    i = 0
    while i < tensors:
        op = a.tensors[a.tensors[i, BY_TURN], FIRST_BACKWARD]
        if op >= ops:
            break
        end = i
        absent = 0
        while end < tensors and a.tensors[a.tensors[end, BY_TURN], FIRST_BACKWARD] == op:
            t = a.tensors[end, BY_TURN]
            if d.state[t] == DROP:
                absent += a.storages[a.tensors[t, STORAGE], SIZE]
            end += 1
        before = m.live[op] - a.ops[op, BORN] - absent
        while i < end:
            t = a.tensors[i, BY_TURN]
            if d.state[t] == DROP:
                m.peak[op] = max(m.peak[op], before + d.extra[t])
                before += a.storages[a.tensors[t, STORAGE], SIZE]
            i += 1
    return np.argmax(m.peak)
