"""From a trace and a platform to the arrays of :mod:`planezip.sim.graph`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planezip.sim.graph import Arrays, Graph, Ints
from planezip.sim.platform import Platform, op_time_ns
from planezip.sim.trace import OUTSIDE_BUDGET, Kind, Trace, TraceError

__all__ = ["build_graph"]


def build_graph(
    trace: Trace, platform: Platform, *, copies: bool = True, inputs: bool = True
) -> Graph:
    """Arrays of ``trace`` with the sizes and times of ``platform``.

    Parameters
    ----------
    copies : bool
        Whether replays may read the copies that autograd saved.
    inputs : bool
        Whether model inputs and targets count in the budget.

    Raises
    ------
    TraceError
        If nothing in the trace takes time.
    """
    ops = [i for i, op in enumerate(trace.ops) if not op.view or op.time_ns]
    places = np.array(ops, np.int64)
    first_use = _first_uses(trace)
    position = {old: new for new, old in enumerate(ops)}
    float_bytes = platform.float_bytes or None
    sizes = [s.size_bytes(float_bytes) for s in trace.storages]
    counted = [
        i
        for i, s in enumerate(trace.storages)
        if s.kind not in OUTSIDE_BUDGET
        and sizes[i]
        and (inputs or s.kind is not Kind.INPUT)
        and (s.producer < 0 or first_use[i] >= 0)
    ]
    number = {old: new for new, old in enumerate(counted)}
    forward_ops = sum(1 for i in ops if i < trace.backward_start)
    count = len(ops)

    reads = [[] if trace.ops[i].view else _known(trace.ops[i].reads, number) for i in ops]
    writes = [[] if trace.ops[i].view else _known(trace.ops[i].writes, number) for i in ops]
    for s, old in enumerate(counted):
        if first_use[old] != trace.storages[old].producer >= 0:  # made by a view: no contents
            op = position[first_use[old]]
            reads[op] = [r for r in reads[op] if r != s]
            writes[op] = list(dict.fromkeys([*writes[op], s]))
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
        storage = trace.storages[old]
        birth.append(position[first_use[old]] if storage.producer >= 0 else -1)
        last = int(np.searchsorted(places, storage.death, side="right")) - 1
        death.append(max(last, 0) if storage.death < len(trace.ops) else count)
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
    if not time.sum():
        raise TraceError("the trace has no operator that takes time; trace a training step")
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
    found = _saved_copies(trace, ops, reads, writes, forward_ops) if copies else {}
    replay_copy = [
        int(tensor[found[op, s]]) if (op, s) in found else -1
        for op in range(forward_ops)
        for s in reads[op]
    ]
    replay_bounds = _bounds(reads[:forward_ops])
    arrays = Arrays(
        op_count=count,
        forward_ops=forward_ops,
        storage_count=len(counted),
        tensor_count=len(tensors),
        ops=_table(
            count + 1,
            time,
            born,
            np.cumsum(fixed)[:count],
            _bounds(reads),
            _bounds(writes),
            np.pad(replay_bounds, (0, count - forward_ops), mode="edge"),
        ),
        start=np.concatenate(([0], np.cumsum(time))).astype(np.int64),
        reads=_flat(reads),
        writes=_flat(writes),
        replays=_table(len(replay_tensor), _flat(reads[:forward_ops]), replay_tensor, replay_copy),
        storages=_table(
            len(counted) + 1,
            np.array([sizes[old] for old in counted]),
            np.array(birth),
            np.array(death),
            tensor,
            _bounds(writers),
        ),
        writers=_flat(writers),
        tensors=_table(
            len(tensors),
            np.array(tensors),
            np.array(final),
            np.array(last_forward),
            np.array(first_backward),
            np.array(swaps),
            np.array(drops),
            np.argsort(np.array(order, np.int64)),
            np.array(order),
        ),
    )
    copy_ops = frozenset(op - 1 for op, _ in found)
    return Graph(trace, platform, arrays, tuple(ops), tuple(counted), copy_ops)


def _first_uses(trace: Trace) -> list[int]:
    """Operator that gives each storage its memory: the producer, or, where that only
    makes a view (``empty``), the first one that uses it; -1 if there is none."""
    return [
        s.producer
        if s.producer >= 0 and not trace.ops[s.producer].view
        else next(iter(trace.uses[i]), -1)
        for i, s in enumerate(trace.storages)
    ]


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


def _table(rows: int, *columns: Sequence[int] | NDArray[Any]) -> Ints:
    """Columns side by side, padded with zeros to ``rows``."""
    table = np.zeros((rows, len(columns)), np.int64)
    for i, column in enumerate(columns):
        table[: len(column), i] = column
    return table
