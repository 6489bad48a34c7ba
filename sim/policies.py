"""The six policies of the paper's evaluation and the ablations of its Fig. 5."""

from __future__ import annotations

from dataclasses import dataclass

from planezip.sim.eventlog import event_log
from planezip.sim.evict import CHEAPER, LARGEST
from planezip.sim.graph import Graph, Ints
from planezip.sim.plan import Decision, InfeasibleError, Plan
from planezip.sim.planner import Choice, Planner, Recipe, compressed_recipes, plain_recipes
from planezip.sim.simulate import Outcome, Simulator
from planezip.sim.sizes import Sizes
from planezip.sim.validate import Summary, validate

__all__ = ["ABLATIONS", "POLICIES", "Policy", "Result", "run_policy"]

_TRIES = 8


@dataclass(frozen=True)
class Policy:
    """How a policy plans, and what its transfers take.

    Parameters
    ----------
    label : str
        As in the paper.
    recipes : tuple of Recipe
        The fastest is taken.
    planned : str
        Sizes that it plans with, by name in :class:`planezip.sim.sizes.Sizes`; empty:
        raw; ``actual``: those of the transfers.
    moved : str
        Codec of the transfers; empty: raw.
    """

    label: str
    recipes: tuple[Recipe, ...]
    planned: str = ""
    moved: str = ""


_PORTFOLIO = tuple(compressed_recipes())

POLICIES = {
    "RECOMP": Policy("RECOMP (DTR)", (Recipe(),)),
    "SWAP": Policy("SWAP", (Recipe(compressed=False, evict=LARGEST),)),
    "DTE": Policy("DTE (MegTaiChi)", (Recipe(compressed=False, evict=CHEAPER),)),
    "BW": Policy("BW", tuple(plain_recipes())),
    "BW+ZVC": Policy("BW+ZVC", _PORTFOLIO, "ZVC", "ZVC"),
    "PlaneZip": Policy("PlaneZip", _PORTFOLIO, "PlaneZip", "PlaneZip"),
}
"""Fig. 4."""

ABLATIONS = {
    "DTE": POLICIES["DTE"],
    "DTE+compression": Policy(
        "DTE + compression", (Recipe(evict=CHEAPER),), "PlaneZip", "PlaneZip"
    ),
    "BW": POLICIES["BW"],
    "unaware": Policy("BW + codec, unaware plan", tuple(plain_recipes()), "", "PlaneZip"),
    "BW+ZVC": POLICIES["BW+ZVC"],
    "PlaneZip-32": Policy("PlaneZip, 32-bit symbols", _PORTFOLIO, "PlaneZip-32", "PlaneZip-32"),
    "op-type": Policy("PlaneZip, op-type predictor", _PORTFOLIO, "op_type", "PlaneZip"),
    "PlaneZip": POLICIES["PlaneZip"],
    "oracle": Policy("PlaneZip, oracle ratios", _PORTFOLIO, "actual", "PlaneZip"),
}
"""Fig. 5, in its order."""


@dataclass(frozen=True)
class Result:
    """A policy's plan for one budget, what it took, and what its event log adds up to."""

    policy: str
    plan: Plan
    outcome: Outcome
    summary: Summary

    @property
    def overhead_percent(self) -> float:
        """Extra time over unlimited memory."""
        return 100 * self.outcome.overhead

    @property
    def swapped_bytes(self) -> int:
        """Raw bytes that are swapped."""
        return self.outcome.swapped_raw_bytes

    @property
    def dropped(self) -> int:
        """Tensors that are dropped."""
        return len(self.plan.tensors(Decision.DROP))


def run_policy(
    policy: Policy,
    graph: Graph,
    sizes: Sizes,
    budget_bytes: int,
    *,
    charge_again: bool = True,
    skip: bool = True,
) -> Result:
    """Plan, simulate and check one policy; the readings are those of :class:`Planner`.

    A plan that overflows with the actual sizes is made again for a smaller budget; where
    that does not help either, the policy falls back on recomputation alone.

    Raises
    ------
    InfeasibleError
        If nothing fits.
    """
    raw = graph.tensor_bytes
    moved: Ints = sizes.actual[policy.moved] if policy.moved else raw
    planned = moved if policy.planned == "actual" else sizes.planned.get(policy.planned, raw)
    planner = Planner(graph, planned, charge_again=charge_again, skip=skip)
    simulator = Simulator(graph, moved)
    found = _fitting(planner, simulator, list(policy.recipes), budget_bytes)
    if found is None:
        found = _fitting(planner, simulator, [Recipe()], budget_bytes)
    if found is None:
        raise _infeasible(planner, budget_bytes)
    plan, outcome = found
    log = event_log(graph, plan, simulator, budget_bytes)
    return Result(policy.label, plan, outcome, validate(log))


def _fitting(
    planner: Planner, simulator: Simulator, recipes: list[Recipe], budget_bytes: int
) -> tuple[Plan, Outcome] | None:
    target = budget_bytes
    for _ in range(_TRIES):
        try:
            choice: Choice = planner.choose(recipes, target)
        except InfeasibleError:
            return None
        outcome = simulator(choice.plan, budget_bytes)
        if outcome.ok:
            return choice.plan, outcome
        target -= max(outcome.missing_bytes, budget_bytes // 256)
    return None


def _infeasible(planner: Planner, budget_bytes: int) -> InfeasibleError:
    """The error of recomputation alone, which says what is missing."""
    try:
        planner.choose([Recipe()], budget_bytes)
    except InfeasibleError as error:
        return error
    raise AssertionError("a plan that fits was refused")
