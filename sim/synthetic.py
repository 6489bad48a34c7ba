"""Synthetic traces with recorded times, for tests and for bounds on small graphs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from planezip.sim.trace import Kind, Op, Phase, Storage, Trace

__all__ = ["Builder", "random_trace"]


class Builder:
    """Collects operators; each call returns the storages that were created.

    Sizes are bytes, times ns. A storage dies with its last use.
    """

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.storages: list[Storage] = []

    def input(self, size: int) -> int:
        """A model input."""
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
        """An operator that creates storages of ``sizes`` and alters ``changes`` in place."""
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

    def forward(self, *args: Any, **more: Any) -> list[int]:
        """:meth:`op` in the forward pass."""
        return self.op(Phase.FORWARD, *args, **more)

    def backward(self, *args: Any, **more: Any) -> list[int]:
        """:meth:`op` in the backward pass."""
        return self.op(Phase.BACKWARD, *args, **more)

    def build(self) -> Trace:
        """The trace."""
        last = {}
        for i, op in enumerate(self.ops):
            for s in op.reads + op.writes:
                last[s] = i
        storages = tuple(
            Storage(s.bytes, s.dtype, s.kind, s.producer, s.slot, last.get(n, max(s.producer, 0)))
            for n, s in enumerate(self.storages)
        )
        return Trace("test", 1, tuple(self.ops), storages)


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
