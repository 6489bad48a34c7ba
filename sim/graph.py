"""A trace on a platform as flat arrays: times, liveness, and what replays need.

Operators are those that take time or touch data, in order; ``op`` below is a position
in that list. Storages are those that the activation budget counts. Tensors are the
storages that can be resident in the backward pass without being replayed: the saved
ones and the inputs; a tensor is what the planner keeps, swaps or drops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planezip.sim.platform import Platform, op_time_ns
from planezip.sim.trace import OUTSIDE_BUDGET, Kind, Trace

__all__ = ["Arrays", "Graph", "Ints", "build_graph"]

Ints = NDArray[np.int64]


class Arrays(NamedTuple):
    """What the compiled kernels read; all int64, lists of lists as values and bounds.

    Per operator: ``time`` and ``start`` (stall-free, one more than operators) in ns,
    ``born`` bytes created; ``reads``, ``writes`` (storages), ``replay_*`` (storages that a
    replay reads, the tensor that has that version while resident, and one that is its
    copy; -1: none). Per storage: ``size``, ``birth``, ``death``, ``tensor`` (-1: not one),
    ``writers`` (forward operators, ascending). Per tensor: ``storage``, ``final`` (last
    forward write), ``last_forward`` and ``first_backward`` use, ``can_swap``,
    ``can_drop``; ``turn`` is the rank in the order of replays (first backward use, then
    production), ``by_turn`` its inverse.
    """

    time: Ints
    start: Ints
    forward_ops: int
    born: Ints
    read_bounds: Ints
    reads: Ints
    write_bounds: Ints
    writes: Ints
    replay_bounds: Ints
    replay_reads: Ints
    replay_tensor: Ints
    replay_copy: Ints
    size: Ints
    birth: Ints
    death: Ints
    tensor: Ints
    writer_bounds: Ints
    writers: Ints
    fixed_live: Ints
    storage: Ints
    final: Ints
    last_forward: Ints
    first_backward: Ints
    can_swap: Ints
    can_drop: Ints
    turn: Ints
    by_turn: Ints


@dataclass(frozen=True)
class Graph:
    """Trace and platform with their arrays.

    Attributes
    ----------
    op_of : tuple of int
        Operator of the trace for each position.
    storage_of : tuple of int
        Storage of the trace for each counted storage.
    """

    trace: Trace
    platform: Platform
    arrays: Arrays
    op_of: tuple[int, ...]
    storage_of: tuple[int, ...]

    @property
    def tensors(self) -> int:
        """Number of tensors."""
        return len(self.arrays.storage)

    @cached_property
    def tensor_bytes(self) -> Ints:
        """Bytes of each tensor."""
        return self.arrays.size[self.arrays.storage]

    @cached_property
    def signatures(self) -> tuple[tuple[int, int], ...]:
        """Predictor signature of each tensor: producing operator of the trace and slot."""
        found = (self.trace.storages[self.storage_of[s]] for s in self.arrays.storage)
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
        live = a.fixed_live.copy()
        for s in a.storage:
            live[max(a.birth[s], 0) : a.death[s] + 1] += a.size[s]
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
        for op in range(len(a.time)):
            used = set(a.reads[a.read_bounds[op] : a.read_bounds[op + 1]].tolist())
            used |= set(a.writes[a.write_bounds[op] : a.write_bounds[op + 1]].tolist())
            best = max(best, sum(int(a.size[s]) for s in used))
        return best


def build_graph(trace: Trace, platform: Platform) -> Graph:
    """Arrays of ``trace`` with the sizes and times of ``platform``."""
    ops = [i for i, op in enumerate(trace.ops) if not op.view or op.time_ns]
    places = np.array(ops, np.int64)
    position = {old: new for new, old in enumerate(ops)}
    float_bytes = platform.float_bytes or None
    sizes = [s.size_bytes(float_bytes) for s in trace.storages]
    counted = [i for i, s in enumerate(trace.storages) if s.kind not in OUTSIDE_BUDGET and sizes[i]]
    number = {old: new for new, old in enumerate(counted)}
    forward_ops = sum(1 for i in ops if i < trace.backward_start)
    count = len(ops)

    reads = [[] if trace.ops[i].view else _known(trace.ops[i].reads, number) for i in ops]
    writes = [[] if trace.ops[i].view else _known(trace.ops[i].writes, number) for i in ops]
    writers: list[list[int]] = [[] for _ in counted]
    written_backward = set()
    for op in range(count):
        for s in writes[op]:
            if op < forward_ops:
                writers[s].append(op)
            elif trace.storages[counted[s]].producer < trace.backward_start:
                written_backward.add(s)

    birth, death = [], []
    for old in counted:
        s = trace.storages[old]
        birth.append(position[s.producer] if s.producer >= 0 else -1)
        last = int(np.searchsorted(places, s.death, side="right")) - 1
        death.append(max(last, 0) if s.death < len(trace.ops) else count)
    tensors, swaps, drops = _tensors(trace, counted, writers, written_backward)
    tensor = np.full(len(counted), -1, np.int64)
    tensor[tensors] = np.arange(len(tensors))
    uses: list[list[int]] = [[] for _ in counted]
    for op in range(count):
        for s in dict.fromkeys(reads[op] + writes[op]):
            uses[s].append(op)
    first_backward = [next((u for u in uses[s] if u >= forward_ops), count) for s in tensors]
    last_forward = [
        max((u for u in uses[s] if u < forward_ops), default=max(birth[s], 0)) for s in tensors
    ]
    final = [writers[s][-1] if writers[s] else -1 for s in tensors]
    order = sorted(range(len(tensors)), key=lambda t: (first_backward[t], birth[tensors[t]], t))

    time = np.array([op_time_ns(trace.ops[i], platform) for i in ops], np.int64)
    born = np.zeros(count, np.int64)
    fixed = np.zeros(count + 1, np.int64)
    for i, old in enumerate(counted):
        if birth[i] >= 0:
            born[birth[i]] += sizes[old]
        if tensor[i] < 0:
            fixed[max(birth[i], 0)] += sizes[old]
            fixed[min(death[i] + 1, count)] -= sizes[old]
    replay_tensor = [
        int(tensor[s]) if not any(w >= op for w in writers[s]) and s not in written_backward else -1
        for op in range(forward_ops)
        for s in reads[op]
    ]
    copies = _saved_copies(trace, ops, reads, writes, forward_ops)
    replay_copy = [
        int(tensor[copies[op, s]]) if (op, s) in copies else -1
        for op in range(forward_ops)
        for s in reads[op]
    ]
    overwrites = [int(s not in reads[w]) for s in range(len(counted)) for w in writers[s]]
    arrays = Arrays(
        time=time,
        start=np.concatenate(([0], np.cumsum(time))).astype(np.int64),
        forward_ops=forward_ops,
        born=born,
        read_bounds=_bounds(reads),
        reads=_flat(reads),
        write_bounds=_bounds(writes),
        writes=_flat(writes),
        replay_bounds=_bounds(reads[:forward_ops]),
        replay_reads=_flat(reads[:forward_ops]),
        replay_tensor=np.array(replay_tensor, np.int64),
        replay_copy=np.array(replay_copy, np.int64),
        size=np.array([sizes[old] for old in counted], np.int64),
        birth=np.array(birth, np.int64),
        death=np.array(death, np.int64),
        tensor=tensor,
        writer_bounds=_bounds(writers),
        writers=_flat(writers),
        fixed_live=np.cumsum(fixed)[:count].astype(np.int64),
        storage=np.array(tensors, np.int64),
        final=np.array(final, np.int64),
        last_forward=np.array(last_forward, np.int64),
        first_backward=np.array(first_backward, np.int64),
        can_swap=np.array(swaps, np.int64),
        can_drop=np.array(drops, np.int64),
        turn=np.argsort(np.array(order, np.int64)).astype(np.int64),
        by_turn=np.array(order, np.int64),
    )
    return Graph(trace, platform, arrays, tuple(ops), tuple(counted))


def _saved_copies(
    trace: Trace,
    ops: Sequence[int],
    reads: list[list[int]],
    writes: list[list[int]],
    forward_ops: int,
) -> dict[tuple[int, int], int]:
    """Storage with the same contents, for operator and storage of an in-place change.

    Autograd clones what an in-place operator is about to overwrite: a ``clone`` of the
    whole storage, directly before the change, and never changed itself.
    """
    found = {}
    changed = {s for op in range(forward_ops) for s in writes[op] if s in reads[op]}
    for op in range(forward_ops - 1):
        name = trace.ops[ops[op]].name.rsplit(".", 1)[-1]
        if name == "clone" and len(reads[op]) == len(writes[op]) == 1:
            source, copy = reads[op][0], writes[op][0]
            if source in reads[op + 1] and source in writes[op + 1] and copy not in changed:
                found[op + 1, source] = copy
    return found


def _tensors(
    trace: Trace,
    counted: Sequence[int],
    writers: list[list[int]],
    written_backward: set[int],
) -> tuple[list[int], list[int], list[int]]:
    """Counted storages that are tensors, and whether each can be swapped, dropped.

    One that the backward pass changes has no contents to come back to: it is kept. One
    that existed before the iteration cannot be recomputed.
    """
    saved = set(trace.saved)
    tensors, swaps, drops = [], [], []
    for s, old in enumerate(counted):
        storage = trace.storages[old]
        if old not in saved and storage.kind is not Kind.INPUT:
            continue
        free = old in saved and s not in written_backward
        tensors.append(s)
        swaps.append(int(free))
        drops.append(int(free and storage.producer >= 0 and bool(writers[s])))
    return tensors, swaps, drops


def _known(storages: Sequence[int], number: dict[int, int]) -> list[int]:
    return [number[s] for s in storages if s in number]


def _bounds(lists: Sequence[Sequence[int]]) -> Ints:
    return np.concatenate(([0], np.cumsum([len(x) for x in lists]))).astype(np.int64)


def _flat(lists: Sequence[Sequence[int]]) -> Ints:
    return np.array([x for row in lists for x in row], np.int64)
