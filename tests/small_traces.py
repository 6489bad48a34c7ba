"""Small traces with recorded times, and plans made by hand, for planner and machine."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from planezip.sim.engine_rate import Engine
from planezip.sim.evict import cost_all
from planezip.sim.graph import FIRST_BACKWARD, Graph
from planezip.sim.liveness import draft, measure, memory
from planezip.sim.plan import Decision, Plan
from planezip.sim.platform import Platform
from planezip.sim.replay import chain_of, scratch
from planezip.sim.trace import Kind, Op, Phase, Storage, Trace

__all__ = ["Builder", "manual_plan", "platform", "random_trace", "three_layers"]


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


class Builder:
    """Collects operators; each call returns the storages that were created."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.storages: list[Storage] = []

    def input(self, size: int) -> int:
        self.storages.append(Storage(size, "uint8", Kind.INPUT, -1, 0, 0))
        return len(self.storages) - 1

    def op(
        self,
        phase: Phase,
        time_ns: int,
        reads: Sequence[int] = (),
        sizes: Sequence[int] = (),
        *,
        changes: Sequence[int] = (),
        name: str = "",
        random: bool = False,
    ) -> list[int]:
        number = len(self.ops)
        kind = Kind.ACTIVATION if phase is Phase.FORWARD else Kind.GRADIENT
        made = []
        for slot, size in enumerate(sizes):
            self.storages.append(Storage(size, "uint8", kind, number, slot, number))
            made.append(len(self.storages) - 1)
        self.ops.append(
            Op(
                name or f"op{number}",
                phase,
                reads=tuple(dict.fromkeys((*reads, *changes))),
                writes=(*changes, *made),
                random=random,
                time_ns=time_ns,
            )
        )
        return made

    def forward(self, *args: object, **kwargs: object) -> list[int]:
        return self.op(Phase.FORWARD, *args, **kwargs)  # type: ignore[arg-type]

    def backward(self, *args: object, **kwargs: object) -> list[int]:
        return self.op(Phase.BACKWARD, *args, **kwargs)  # type: ignore[arg-type]

    def build(self) -> Trace:
        last = {}
        for i, op in enumerate(self.ops):
            for s in op.reads + op.writes:
                last[s] = i
        storages = tuple(
            Storage(s.bytes, s.dtype, s.kind, s.producer, s.slot, last.get(n, max(s.producer, 0)))
            for n, s in enumerate(self.storages)
        )
        return Trace("test", 1, tuple(self.ops), storages)


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


def random_trace(seed: int, layers: int = 8) -> Trace:
    """A random network: skips, several results, in-place changes, random operators.

    Each forward operator reads one to three earlier storages, may change one of its
    inputs in place (with a clone of it before, at times), and has a backward operator
    that reads some of what it read and made.
    """
    r = random.Random(seed)
    t = Builder()
    alive = [t.input(r.randint(1, 50))]
    saved: list[list[int]] = []
    for _ in range(layers):
        reads = r.sample(alive, min(len(alive), r.randint(1, 3)))
        kept = [s for s in reads if r.random() < 0.4]
        if r.random() < 0.25 and len(alive) > 1:
            target = r.choice(alive[1:])
            if r.random() < 0.5:
                kept += t.forward(
                    r.randint(1, 9), [target], [t.storages[target].bytes], name="clone"
                )
            t.forward(r.randint(1, 20), reads, changes=[target], random=r.random() < 0.2)
            saved.append([*kept, target])
            continue
        made = t.forward(
            r.randint(1, 30),
            reads,
            [r.randint(1, 100) for _ in range(r.randint(1, 2))],
            random=r.random() < 0.2,
        )
        saved.append(kept + [s for s in made if r.random() < 0.7])
        alive.append(made[0])
        if len(alive) > 4 and r.random() < 0.5:
            alive.pop(r.randrange(1, len(alive)))
    (gradient,) = t.backward(r.randint(1, 9), [alive[-1]], [r.randint(1, 60)])
    for group in reversed(saved):
        reads = list(dict.fromkeys([*group, gradient]))
        (gradient,) = t.backward(r.randint(1, 40), reads, [r.randint(1, 80)])
    return t.build()
