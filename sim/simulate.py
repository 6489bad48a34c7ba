"""Run a plan on the machine of :mod:`planezip.sim.machine`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planezip.sim.graph import WRITES, Graph, Ints
from planezip.sim.machine import run
from planezip.sim.machine_state import (
    ARRIVES,
    CHAIN,
    HELD,
    IN_NS,
    ISSUE_NS,
    LAST_NEED,
    LOG_COLUMNS,
    NEXT,
    OUT_NS,
    Machine,
    S,
)
from planezip.sim.plan import Plan
from planezip.sim.replay import SWAP

__all__ = ["Outcome", "Simulator"]


@dataclass(frozen=True)
class Outcome:
    """What one iteration took; times in ns.

    ``rows`` is the log (:class:`planezip.sim.machine_state.Events`), empty unless asked for.
    ``failed_op`` is the operator (a position of the graph) at which the plan overflowed
    by ``missing_bytes``, or -1.
    """

    iteration_ns: int
    compute_ns: int
    replay_ns: int
    operand_stall_ns: int
    memory_stall_ns: int
    swap_out_ns: int
    swap_in_ns: int
    peak_bytes: int
    swapped_raw_bytes: int
    swapped_wire_bytes: int
    failed_op: int
    missing_bytes: int
    rows: Ints

    @property
    def ok(self) -> bool:
        """Whether the iteration ended."""
        return self.failed_op < 0

    @property
    def overhead(self) -> float:
        """Time over that of unlimited memory, minus one."""
        return self.iteration_ns / self.compute_ns - 1

    @property
    def stall_ns(self) -> int:
        """Time in which the compute stream waited."""
        return self.operand_stall_ns + self.memory_stall_ns


class Simulator:
    """Simulates plans of one graph with given wire bytes, reusing its work space.

    Parameters
    ----------
    graph : Graph
    wire_bytes : array of int64, per tensor
        Bytes on the link; those of the tensor itself where it is not compressed.
    """

    def __init__(self, graph: Graph, wire_bytes: Ints) -> None:
        self.graph = graph
        self.wire_bytes = np.minimum(wire_bytes, graph.tensor_bytes)
        setup = graph.platform.setup_ns
        self.copy_ns = np.array(
            [
                graph.platform.transfer_ns(int(raw), int(wire))
                for raw, wire in zip(graph.tensor_bytes, self.wire_bytes, strict=True)
            ],
            np.int64,
        )
        self._transfer_ns = self.copy_ns + setup
        a = graph.arrays
        self._tensors = np.zeros((graph.tensors + 1, ISSUE_NS + 1), np.int64)
        self._storages = np.zeros((a.storage_count, HELD + 1), np.int64)
        self._lists = np.zeros((max(a.op_count, 3 * a.storage_count), NEXT + 1), np.int64)
        self._scalars = np.zeros(S.COUNT, np.int64)
        self._rows_of_op = 5 + 3 * np.diff(a.ops[:, WRITES])
        self._no_log = np.zeros((0, LOG_COLUMNS), np.int64)

    def __call__(self, plan: Plan, budget_bytes: int, *, log: bool = False) -> Outcome:
        """Simulate ``plan`` under ``budget_bytes``."""
        a = plan.arrays
        rows = self._no_log
        if log:
            bound = self._rows_of_op.sum() + self._rows_of_op[plan.chain_ops].sum()
            swaps = np.count_nonzero(plan.state == SWAP)
            bound += 2 * a.storage_count + 16 * (swaps + 4) + 2 * swaps * len(plan.chain_ops)
            rows = np.zeros((int(bound), LOG_COLUMNS), np.int64)
        work = self._tensors
        work[:-1, ARRIVES] = plan.arrives
        work[:-1, LAST_NEED] = plan.last_need
        work[:-1, OUT_NS] = work[:-1, IN_NS] = self._transfer_ns
        work[:, CHAIN] = plan.chain_bounds
        machine = Machine(
            plan.state,
            plan.order,
            plan.chain_ops,
            work,
            self._storages,
            self._lists,
            self._scalars,
            rows,
        )
        run(a, machine, budget_bytes)
        s = machine.scalars
        swapped = plan.state == SWAP
        return Outcome(
            iteration_ns=int(s[S.NOW]),
            compute_ns=self.graph.iteration_ns,
            replay_ns=int(s[S.REPLAY]),
            operand_stall_ns=int(s[S.WAIT_OPERAND]),
            memory_stall_ns=int(s[S.WAIT_MEMORY]),
            swap_out_ns=int(self._transfer_ns[swapped].sum()),
            swap_in_ns=int(self._transfer_ns[swapped].sum()),
            peak_bytes=int(s[S.PEAK]),
            swapped_raw_bytes=int(self.graph.tensor_bytes[swapped].sum()),
            swapped_wire_bytes=int(self.wire_bytes[swapped].sum()),
            failed_op=int(s[S.FAILED_OP]),
            missing_bytes=int(s[S.MISSING]),
            rows=rows[: int(s[S.ROWS])] if log else rows,
        )
