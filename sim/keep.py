"""Keep what a replay rebuilds anyway, where the budget allows it.

The paper's replays are thrown away after each use, so that a dropped input is rebuilt
once for every replay that needs it and once more for its own use. Here a dropped tensor
comes back with the first replay that goes through it and stays. For everything else that
is as if its first backward use were earlier; the tables of the graph are changed so.
"""

from __future__ import annotations

import numpy as np

from planezip.sim.evict import cost_all
from planezip.sim.graph import (
    BIRTH,
    BY_TURN,
    FINAL,
    FIRST_BACKWARD,
    SIZE,
    STORAGE,
    TURN,
    Arrays,
    Ints,
)
from planezip.sim.liveness import Draft, Memory, measure
from planezip.sim.replay import DROP, KEEP, Scratch, chain

__all__ = ["keep_replays", "undo_needless"]


def keep_replays(a: Arrays, d: Draft, memo: Memory, work: Scratch, budget_bytes: int) -> Arrays:
    """Tables in which dropped tensors come back with the first replay that rebuilds them.

    Of the tensors that a replay goes through, the dearest are kept first; one that would
    push memory above ``budget_bytes`` stays as it is. Updates ``d``.
    """
    order = a.tensors[:, BY_TURN].tolist()
    a = a._replace(tensors=a.tensors.copy())
    for t in order:
        if d.state[t] != DROP:
            continue
        chain(a, t, d.state, work)
        ops = set(work.ops[: work.out[0]].tolist())
        inside = [
            s
            for s in np.flatnonzero(d.state == DROP).tolist()
            if a.tensors[s, FIRST_BACKWARD] > a.tensors[t, FIRST_BACKWARD]
            and a.tensors[s, FINAL] in ops
        ]
        for s in sorted(inside, key=lambda s: (-d.cost[s] / _size(a, s), s)):
            before = a.tensors[s, FIRST_BACKWARD]
            _come_back(a, s, int(a.tensors[t, FIRST_BACKWARD]))
            cost_all(a, d, work)
            if memo.peak[measure(a, d, memo)] > budget_bytes:
                _come_back(a, s, int(before))
                cost_all(a, d, work)
    measure(a, d, memo)
    return a


def undo_needless(
    a: Arrays, d: Draft, memo: Memory, work: Scratch, budget_bytes: int, allowed: Ints
) -> None:
    """Keep dropped tensors after all where there is room, the dearest first.

    The greedy loop stops below the budget, and what it dropped early may not be needed
    once later choices are made. Updates ``d``.
    """
    dropped = np.flatnonzero((d.state == DROP) & (allowed == 1)).tolist()
    total = _replay_ns(d)
    for t in sorted(dropped, key=lambda t: (-d.cost[t], t)):
        d.state[t] = KEEP
        cost_all(a, d, work)
        if memo.peak[measure(a, d, memo)] <= budget_bytes and _replay_ns(d) <= total:
            total = _replay_ns(d)
        else:
            d.state[t] = DROP
    cost_all(a, d, work)
    measure(a, d, memo)


def _replay_ns(d: Draft) -> int:
    return int(d.cost[d.state == DROP].sum())


def _size(a: Arrays, tensor: int) -> int:
    return int(a.storages[a.tensors[tensor, STORAGE], SIZE])


def _come_back(a: Arrays, tensor: int, op: int) -> None:
    """Set the operator before which ``tensor`` has to be there, and the turns with it."""
    a.tensors[tensor, FIRST_BACKWARD] = op
    birth = a.storages[a.tensors[:, STORAGE], BIRTH]
    order = np.lexsort((np.arange(a.tensor_count), birth, a.tensors[:, FIRST_BACKWARD]))
    a.tensors[order, TURN] = np.arange(a.tensor_count)
    a.tensors[:, BY_TURN] = order
