"""Plans for a user's own model: what to keep, swap and drop, and what compression buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from planezip.sim.eventlog import EventLog, event_log
from planezip.sim.graph import STORAGE, Graph
from planezip.sim.plan import Decision, InfeasibleError, Plan
from planezip.sim.planner import (
    Planner,
    Recipe,
    compressed_recipes,
    keeping_recipes,
    plain_recipes,
)
from planezip.sim.simulate import Outcome
from planezip.sim.sizes import Sizes
from planezip.sim.validate import Summary, validate

__all__ = ["VARIANTS", "Advice", "advise", "plan_json", "smallest_budget", "sweep"]

PLAN_VERSION = 1
VARIANTS = {"no engine": "", "ZVC": "ZVC", "PlaneZip": "PlaneZip"}
"""What moves the swapped tensors, and its codec."""


@dataclass(frozen=True)
class Advice:
    """Plan, what it is predicted to take, and its checked event log."""

    variant: str
    plan: Plan
    outcome: Outcome
    log: EventLog
    summary: Summary


def advise(
    graph: Graph,
    sizes: Sizes,
    budget_bytes: int,
    variant: str = "PlaneZip",
    pins: Mapping[int, Decision] | None = None,
) -> Advice:
    """Best plan for one budget: the paper's portfolio, and replays that keep what they
    rebuild.

    Parameters
    ----------
    variant : str
        Of :data:`VARIANTS`.
    pins : mapping of tensor to Decision
        What-if: tensors that must be kept, swapped or dropped.

    Raises
    ------
    InfeasibleError
        If nothing fits.
    ValueError
        If a pin is impossible.
    """
    codec = VARIANTS[variant]
    planner = Planner(
        graph, sizes.planned[codec] if codec else graph.tensor_bytes, dict(pins or {})
    )
    recipes = compressed_recipes() if codec else plain_recipes()
    choice = planner.choose(recipes + keeping_recipes(bool(codec)), budget_bytes)
    log = event_log(graph, choice.plan, planner.simulator, budget_bytes)
    return Advice(variant, choice.plan, choice.predicted, log, validate(log))


def smallest_budget(graph: Graph) -> int:
    """Smallest budget, within 0.1% of the peak, below which no plan was found.

    Greedy plans are not monotone, so this steps down from the peak until a budget and
    the next two below it fail.
    """
    step = max(graph.peak_bytes // 1000, 1)
    planner = Planner(graph, graph.tensor_bytes)
    recipes = [Recipe(), *keeping_recipes(False)[-1:]]

    def fits(budget: int) -> bool:
        try:
            planner.choose(recipes, budget)
        except InfeasibleError:
            return False
        return True

    low, high = max(graph.minimum_bytes - 1, 0), graph.peak_bytes
    while high - low > step:
        middle = (low + high) // 2
        if any(fits(max(middle - k * step, 1)) for k in range(3)):
            high = middle
        else:
            low = middle
    return next((b for k in (2, 1, 0) if fits(b := max(high - k * step, 1))), high)


def _point(point: tuple[Graph, Sizes, int, str]) -> dict[str, Any]:
    """One point of the curve; None for the overhead where nothing fits."""
    graph, sizes, budget_bytes, variant = point
    row: dict[str, Any] = {"variant": variant, "budget_bytes": budget_bytes}
    try:
        found = advise(graph, sizes, budget_bytes, variant)
    except InfeasibleError as error:
        return {**row, "overhead_percent": None, "plan": None, "reason": str(error)}
    return {
        **row,
        "overhead_percent": 100 * found.outcome.overhead,
        "plan": found.plan.name,
        "reason": None,
    }


def sweep(
    graph: Graph,
    sizes: Sizes,
    budgets: Sequence[int],
    variants: Sequence[str] = tuple(VARIANTS),
    executor: Executor | None = None,
) -> list[dict[str, Any]]:
    """Overhead for each variant and budget, ascending, on any executor.

    Beside each ``overhead_percent`` stands ``best_percent``, that of the best plan for
    this budget or any smaller one of the sweep: greedy plans are not monotone, and a plan
    for less memory fits as well.
    """
    points = [(graph, sizes, b, v) for v in variants for b in sorted(set(budgets))]
    rows = list(map(_point, points) if executor is None else executor.map(_point, points))
    best: dict[str, float] = {}
    for row in rows:
        value = row["overhead_percent"]
        if value is not None:
            best[row["variant"]] = min(best.get(row["variant"], value), value)
        row["best_percent"] = best.get(row["variant"])
    return rows


def plan_json(graph: Graph, sizes: Sizes, advice: Advice, budget_bytes: int) -> dict[str, Any]:
    """Plan as JSON values (``schemas/plan.json``); operators are those of the trace."""
    plan, trace = advice.plan, graph.trace
    codec = VARIANTS[advice.variant]
    wire = sizes.planned[codec] if codec else graph.tensor_bytes
    tensors = []
    for t, storage in enumerate(graph.arrays.tensors[:, STORAGE]):
        number = graph.storage_of[storage]
        producer = trace.storages[number].producer
        decision = Decision(int(plan.state[t]))
        swapped = decision is Decision.SWAP
        tensors.append(
            {
                "operator": producer,
                "slot": trace.storages[number].slot,
                "name": trace.ops[producer].name if producer >= 0 else "input",
                "scope": trace.ops[producer].scope if producer >= 0 else "",
                "bytes": int(graph.tensor_bytes[t]),
                "decision": decision.name.lower(),
                "wire_bytes": int(wire[t]) if swapped else None,
                "prefetch_at_operator": graph.op_of[int(plan.arrives[t])] if swapped else None,
                "replay_operators": [graph.op_of[k] for k in plan.chain(t)],
            }
        )
    return {
        "format": "planezip-plan",
        "version": PLAN_VERSION,
        "model": trace.model,
        "batch": trace.batch,
        "platform": graph.platform.name,
        "variant": advice.variant,
        "ratios": sizes.source,
        "budget_bytes": budget_bytes,
        "predicted": {
            "iteration_ns": advice.outcome.iteration_ns,
            "compute_ns": advice.outcome.compute_ns,
            "replay_ns": advice.outcome.replay_ns,
            "stall_ns": advice.outcome.stall_ns,
            "peak_bytes": advice.outcome.peak_bytes,
            "peak_host_bytes": advice.summary.peak_host_bytes,
            "host_fragmentation": advice.summary.host_fragmentation,
            "plan": plan.name,
        },
        "tensors": tensors,
    }
