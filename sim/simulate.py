"""Run a plan on the machine of :mod:`planezip.sim.machine`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planezip.sim.graph import Graph, Ints
from planezip.sim.machine import LOG_COLUMNS, Machine, S, run
from planezip.sim.plan import Plan
from planezip.sim.replay import SWAP

__all__ = ["Outcome", "Simulator"]


@dataclass(frozen=True)
class Outcome:
    """What one iteration took; times in ns.

    ``rows`` is the log (:class:`planezip.sim.machine.Event`), empty unless asked for.
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
        count, ops = graph.tensors, len(a.time)
        sizes = (S.COUNT, count, count, count, count, count, count, ops)
        self._work = [np.zeros(n, np.int64) for n in sizes]
        self._work += [np.zeros(3 * len(a.size), np.int64)]
        self._work += [np.zeros(len(a.size), np.int64) for _ in range(2)]
        writes = np.diff(a.write_bounds)
        self._rows_of_op = 5 + 3 * writes
        self._no_log = np.zeros((0, LOG_COLUMNS), np.int64)

    def __call__(self, plan: Plan, budget_bytes: int, *, log: bool = False) -> Outcome:
        """Simulate ``plan`` under ``budget_bytes``."""
        a = self.graph.arrays
        rows = self._no_log
        if log:
            bound = self._rows_of_op.sum() + self._rows_of_op[plan.chain_ops].sum()
            swaps = np.count_nonzero(plan.state == SWAP)
            bound += len(a.size) * 2 + 8 * swaps + 2 * swaps * len(plan.chain_ops)
            bound += 2 * swaps + 64
            rows = np.zeros((int(bound), LOG_COLUMNS), np.int64)
        machine = Machine(
            plan.state,
            plan.arrives,
            plan.last_need,
            self._transfer_ns,
            self._transfer_ns,
            plan.order,
            plan.chain_bounds,
            plan.chain_ops,
            *self._work,
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
