"""A plan: what to keep, swap and drop, when to fetch, what to replay."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from planezip.sim.graph import Arrays, Graph, Ints
from planezip.sim.replay import DROP, KEEP, SWAP

__all__ = ["Decision", "InfeasibleError", "Plan"]


class Decision(IntEnum):
    """What happens to a tensor between its last forward and first backward use."""

    KEEP = KEEP
    SWAP = SWAP
    DROP = DROP


class InfeasibleError(ValueError):
    """No plan fits the budget.

    Attributes
    ----------
    op : int
        Operator of the trace at which memory runs out.
    op_name : str
    missing_bytes : int
        By how much, at the least over the plans that were tried.
    budget_bytes : int
    """

    def __init__(self, graph: Graph, position: int, missing_bytes: int, budget_bytes: int) -> None:
        self.op = graph.op_of[position]
        self.op_name = graph.trace.ops[self.op].name
        self.missing_bytes = missing_bytes
        self.budget_bytes = budget_bytes
        super().__init__(
            f"no plan fits {budget_bytes} bytes: operator {self.op} ({self.op_name}, "
            f"{graph.trace.ops[self.op].phase}) lacks {missing_bytes} bytes; "
            f"the largest working set of one operator is {graph.minimum_bytes} bytes"
        )


@dataclass(frozen=True)
class Plan:
    """One plan for one graph and budget; arrays are per tensor, int64.

    Parameters
    ----------
    name : str
        How it was made.
    state : array
        :class:`Decision` values.
    arrives : array
        Operator at which the prefetch of a swapped tensor is issued.
    order : array
        Swapped tensors in the order of their prefetches.
    last_need : array
        Last operator whose replays read the tensor, -1 for none.
    chain_bounds, chain_ops : array
        Operators of each dropped tensor's replay.
    copy_ns : array
        Predicted transfer times, without setup.
    peak_bytes : int
        Predicted peak.
    arrays : Arrays
        Tables that the plan is made for: the graph's, but dropped tensors may come back
        before their first use (:mod:`planezip.sim.keep`).
    """

    name: str
    state: Ints
    arrives: Ints
    order: Ints
    last_need: Ints
    chain_bounds: Ints
    chain_ops: Ints
    copy_ns: Ints
    peak_bytes: int
    arrays: Arrays

    def chain(self, tensor: int) -> list[int]:
        """Operators of the replay of ``tensor``; empty unless it is dropped."""
        return self.chain_ops[self.chain_bounds[tensor] : self.chain_bounds[tensor + 1]].tolist()

    def tensors(self, decision: Decision) -> list[int]:
        """Tensors with this decision."""
        return np.flatnonzero(self.state == decision).tolist()
