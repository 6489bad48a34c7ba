"""A network and plans worked out by hand, for planner and machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planezip.sim.engine_rate import Engine
from planezip.sim.evict import cost_all
from planezip.sim.graph import FIRST_BACKWARD, Graph, Ints
from planezip.sim.liveness import draft, measure, memory
from planezip.sim.plan import Decision, Plan
from planezip.sim.platform import Platform
from planezip.sim.replay import chain, scratch
from planezip.sim.synthetic import Builder
from planezip.sim.trace import Trace

__all__ = ["Chain", "chain_of", "keep_everything", "manual_plan", "platform", "three_layers"]


def platform(link: float = 1.0, setup_ns: int = 0, engine: float = 0.0, chunk: int = 1) -> Platform:
    """Platform with rates in bytes per ns; operators have recorded times."""
    return Platform(
        name="test",
        float_bytes=0,
        peak_flops_per_s=1,
        math_percent=100,
        memory_bytes_per_s=1,
        memory_percent=100,
        link_bytes_per_s=round(link * 1e9),
        setup_ns=setup_ns,
        host_chunk_bytes=chunk,
        engine=Engine(round(engine * 1e9), "test"),
    )


def three_layers() -> Trace:
    """x(8) -f0 10-> a(100) -f1 20-> b(60) -f2 30-> c(40); g2 30 reads b, c, makes d(60);
    g1 20 reads a, d, makes e(10). Stall-free 110 ns; peak 260 bytes, during g2."""
    t = Builder()
    x = t.input(8)
    (a,) = t.forward(10, [x], [100])
    (b,) = t.forward(20, [a], [60])
    (c,) = t.forward(30, [b], [40])
    (d,) = t.backward(30, [b, c], [60])
    t.backward(20, [a, d], [10])
    return t.build()


def manual_plan(
    graph: Graph, decisions: dict[int, Decision], arrives: dict[int, int] | None = None
) -> Plan:
    """Plan with the given decisions and prefetch points, by tensor."""
    a = graph.arrays
    d = draft(graph)
    for t, decision in decisions.items():
        d.state[t] = decision
    for t, op in (arrives or {}).items():
        d.arrives[t] = op
    cost_all(a, d, scratch(graph))
    m = memory(graph)
    measure(a, d, m)
    chains = []
    for t in range(graph.tensors):
        found = chain_of(graph, t, d.state) if d.state[t] == Decision.DROP else None
        chains.append(list(found.ops) if found else [])
    swapped = [t for t in range(graph.tensors) if d.state[t] == Decision.SWAP]
    swapped.sort(key=lambda t: (int(d.arrives[t]), int(a.tensors[t, FIRST_BACKWARD]), t))
    return Plan(
        name="manual",
        state=d.state,
        arrives=d.arrives,
        order=np.array(swapped, np.int64),
        last_need=m.last_need.copy(),
        chain_bounds=np.concatenate(([0], np.cumsum([len(c) for c in chains]))).astype(np.int64),
        chain_ops=np.array([op for c in chains for op in c], np.int64),
        copy_ns=np.zeros(graph.tensors, np.int64),
        peak_bytes=int(m.peak.max()),
        arrays=a,
    )


def keep_everything(graph: Graph) -> Plan:
    """Plan without any eviction."""
    count = graph.tensors
    empty = np.zeros(0, np.int64)
    return Plan(
        name="keep",
        state=np.zeros(count, np.int64),
        arrives=graph.arrays.tensors[:, FIRST_BACKWARD].copy(),
        order=empty,
        last_need=np.full(count, -1, np.int64),
        chain_bounds=np.zeros(count + 1, np.int64),
        chain_ops=empty,
        copy_ns=np.zeros(count, np.int64),
        peak_bytes=graph.peak_bytes,
        arrays=graph.arrays,
    )


class Chain(NamedTuple):
    """Replay of one tensor: operators in order, tensors read, cost and own bytes."""

    ops: tuple[int, ...]
    leaves: tuple[int, ...]
    cost_ns: int
    peak_bytes: int


def chain_of(graph: Graph, tensor: int, state: Ints) -> Chain | None:
    """Chain of ``tensor``, or None if it cannot be rebuilt."""
    w = scratch(graph)
    chain(graph.arrays, tensor, state, w)
    ops, leaves, cost, peak, ok = (int(x) for x in w.out)
    if not ok or not ops:
        return None
    return Chain(tuple(w.ops[:ops].tolist()), tuple(w.leaves[:leaves].tolist()), cost, peak)
