"""A trace on a platform as flat arrays: times, liveness, and what replays need.

Operators are those that take time or touch data, in order; ``op`` below is a position
in that list. Storages are those that the activation budget counts. Tensors are the
storages that can be resident in the backward pass without being replayed: the saved
ones and the inputs; a tensor is what the planner keeps, swaps or drops.
:func:`planezip.sim.build_graph.build_graph` makes one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planezip.sim.platform import Platform
from planezip.sim.trace import Trace

__all__ = ["Arrays", "Graph", "Ints"]

Ints = NDArray[np.int64]


class Arrays(NamedTuple):
    """What the compiled kernels read: few arrays, int64, with a column per name.

    ``ops`` (one row more than operators): TIME in ns, bytes BORN, FIXED_LIVE bytes that no
    plan can move, first row in ``reads``, ``writes`` (storages) and ``replays``.
    ``start`` : stall-free start of each operator in ns, and the end.
    ``replays``, what the replay of a forward operator reads: READ_STORAGE, READ_TENSOR
    that has this version while it is resident, READ_COPY that has the same contents (-1:
    none). ``storages`` (one row more): SIZE, BIRTH, DEATH, TENSOR (-1: not one), first
    row in ``writers`` (forward operators, ascending). ``tensors``: STORAGE, FINAL (last
    forward write), LAST_FORWARD and FIRST_BACKWARD use, CAN_SWAP, CAN_DROP; TURN is the
    rank in the order of replays (first backward use, then production), BY_TURN its
    inverse.
    """

    op_count: int
    forward_ops: int
    storage_count: int
    tensor_count: int
    ops: Ints
    start: Ints
    reads: Ints
    writes: Ints
    replays: Ints
    storages: Ints
    writers: Ints
    tensors: Ints


TIME, BORN, FIXED_LIVE, READS, WRITES, REPLAYS = 0, 1, 2, 3, 4, 5
READ_STORAGE, READ_TENSOR, READ_COPY = 0, 1, 2
SIZE, BIRTH, DEATH, TENSOR, WRITERS = 0, 1, 2, 3, 4
STORAGE, FINAL, LAST_FORWARD, FIRST_BACKWARD = 0, 1, 2, 3
CAN_SWAP, CAN_DROP, TURN, BY_TURN = 4, 5, 6, 7


@dataclass(frozen=True)
class Graph:
    """Trace and platform with their arrays.

    Attributes
    ----------
    op_of : tuple of int
        Operator of the trace for each position.
    storage_of : tuple of int
        Storage of the trace for each counted storage.
    copy_ops : frozenset of int
        Operators that save a copy of what the next one changes in place.
    """

    trace: Trace
    platform: Platform
    arrays: Arrays
    op_of: tuple[int, ...]
    storage_of: tuple[int, ...]
    copy_ops: frozenset[int]

    @property
    def tensors(self) -> int:
        """Number of tensors."""
        return self.arrays.tensor_count

    @cached_property
    def tensor_bytes(self) -> Ints:
        """Bytes of each tensor."""
        return self.arrays.storages[self.arrays.tensors[:, STORAGE], SIZE]

    @cached_property
    def signatures(self) -> tuple[tuple[int, int], ...]:
        """Predictor signature of each tensor: producing operator of the trace and slot."""
        found = [self.trace.storages[self.storage_of[s]] for s in self.arrays.tensors[:, STORAGE]]
        return tuple((s.producer, s.slot) for s in found)

    @cached_property
    def forward_ns(self) -> int:
        """Stall-free time of the forward pass."""
        return int(self.arrays.start[self.arrays.forward_ops])

    @cached_property
    def backward_ns(self) -> int:
        """Stall-free time of the backward pass."""
        end = sum(1 for i in self.op_of if i < self.trace.backward_end)
        return int(self.arrays.start[end]) - self.forward_ns

    @cached_property
    def iteration_ns(self) -> int:
        """Stall-free time of the iteration, optimizer included."""
        return int(self.arrays.start[-1])

    @cached_property
    def live_bytes(self) -> Ints:
        """Bytes that exist during each operator when every tensor is kept."""
        a = self.arrays
        live = a.ops[:-1, FIXED_LIVE].copy()
        for s in a.storages[a.tensors[:, STORAGE]]:
            live[max(s[BIRTH], 0) : s[DEATH] + 1] += s[SIZE]
        return live

    @cached_property
    def peak_bytes(self) -> int:
        """Peak without eviction."""
        return int(self.live_bytes.max(initial=0))

    @cached_property
    def minimum_bytes(self) -> int:
        """Largest working set of one operator: no plan can need less."""
        a = self.arrays
        best = 0
        for op in range(a.op_count):
            used = set(a.reads[a.ops[op, READS] : a.ops[op + 1, READS]].tolist())
            used |= set(a.writes[a.ops[op, WRITES] : a.ops[op + 1, WRITES]].tolist())
            best = max(best, sum(int(a.storages[s, SIZE]) for s in used))
        return best
