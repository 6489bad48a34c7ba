"""Exact optimum of a small graph, to bound the planner: every combination is tried."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from planezip.sim.evict import cost_all
from planezip.sim.graph import CAN_DROP, CAN_SWAP, Graph
from planezip.sim.liveness import draft, memory
from planezip.sim.plan import Decision, Plan
from planezip.sim.planner import finish
from planezip.sim.replay import scratch
from planezip.sim.simulate import Outcome, Simulator

__all__ = ["Best", "best_plan"]

_LIMIT = 3**10


@dataclass(frozen=True)
class Best:
    """Fastest combination of decisions, and how many were tried."""

    plan: Plan
    outcome: Outcome
    tried: int


def best_plan(graph: Graph, simulator: Simulator, budget_bytes: int) -> Best | None:
    """Fastest plan over all decisions, prefetches scheduled as the planner does.

    Raises
    ------
    ValueError
        If there are more than 3**10 combinations.
    """
    a = graph.arrays
    options = []
    for row in a.tensors:
        possible = [Decision.KEEP]
        possible += [Decision.SWAP] * int(row[CAN_SWAP]) + [Decision.DROP] * int(row[CAN_DROP])
        options.append(possible)
    count = int(np.prod([len(o) for o in options]))
    if count > _LIMIT:
        raise ValueError(f"{count} combinations are too many; at most {_LIMIT} can be tried")
    memo, work = memory(graph), scratch(graph)
    best: Best | None = None
    for decisions in product(*options):
        d = draft(graph)
        d.state[:] = decisions
        cost_all(a, d, work)
        plan = finish(a, d, memo, work, budget_bytes, "optimum", simulator.copy_ns)
        outcome = simulator(plan, budget_bytes)
        if outcome.ok and (best is None or outcome.iteration_ns < best.outcome.iteration_ns):
            best = Best(plan, outcome, count)
    return best
