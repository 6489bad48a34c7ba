"""Candidate plans and the portfolio (paper Algorithm 1, Section III-C)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planezip.sim.evict import CHEAPER, KEEPING, LARGEST, RECOMPUTE, cost_all, cover_deficit
from planezip.sim.graph import BIRTH, CAN_DROP, CAN_SWAP, FINAL, STORAGE, Arrays, Graph, Ints
from planezip.sim.keep import keep_replays, undo_needless
from planezip.sim.liveness import Draft, Memory, draft, measure, memory
from planezip.sim.plan import InfeasibleError, Plan
from planezip.sim.prefetch import schedule_prefetches
from planezip.sim.replay import DROP, KEEP, SWAP, Scratch, chain, scratch
from planezip.sim.simulate import Outcome, Simulator
from planezip.sim.swaps import fill_link

__all__ = [
    "ETAS",
    "Choice",
    "Planner",
    "Recipe",
    "compressed_recipes",
    "finish",
    "keeping_recipes",
    "plain_recipes",
]

ETAS = (100, 75, 50, 25)
"""Percent of the shorter of the forward and backward times that swaps may take."""

_TRIES = 8  # plans with ever tighter targets before a recipe is given up


@dataclass(frozen=True)
class Recipe:
    """How to make one candidate plan.

    Parameters
    ----------
    ranking : str
        Stage one: ``recompute_per_link`` (C_r / x), ``bytes_per_link`` (m / x),
        ``recompute_per_byte`` (C_r / m), or empty: no stage one.
    eta_percent : int
    compressed : bool
        Whether transfers are planned with compressed sizes.
    evict : int
        Stage two: RECOMPUTE, CHEAPER (Equation 1), LARGEST (swap only) or KEEPING.
    """

    ranking: str = ""
    eta_percent: int = 0
    compressed: bool = True
    evict: int = RECOMPUTE

    @property
    def name(self) -> str:
        """Short name for reports."""
        sizes = "compressed" if self.compressed else "raw"
        if self.ranking:
            kept = ", keeping" if self.evict == KEEPING else ""
            return f"{self.ranking} {self.eta_percent}% {sizes}{kept}"
        return {
            RECOMPUTE: "recompute",
            CHEAPER: f"cost model {sizes}",
            LARGEST: f"swap {sizes}",
            KEEPING: "recompute, keeping",
        }[self.evict]


def plain_recipes() -> list[Recipe]:
    """The planner without compression: four budgets and recomputation alone.

    With raw sizes C_r / x is C_r / m and m / x is the same for every tensor, so one
    ranking is left.
    """
    return [Recipe("recompute_per_byte", eta, False) for eta in ETAS] + [Recipe()]


def compressed_recipes() -> list[Recipe]:
    """The 18 plans: three rankings times four budgets, four with raw sizes, the cost
    model of Equation 1 with compressed transfers, recomputation alone."""
    rankings = ("recompute_per_link", "bytes_per_link", "recompute_per_byte")
    return [
        *(Recipe(ranking, eta) for ranking in rankings for eta in ETAS),
        *plain_recipes()[:-1],
        Recipe(evict=CHEAPER),
        Recipe(),
    ]


def finish(
    a: Arrays,
    d: Draft,
    memo: Memory,
    work: Scratch,
    target_bytes: int,
    name: str,
    copy_ns: Ints,
) -> Plan:
    """Plan of a draft with all decisions made: prefetches scheduled, replays listed."""
    measure(a, d, memo)
    peak = int(memo.peak.max(initial=0))
    order = schedule_prefetches(a, d, memo, target_bytes)
    chains: list[list[int]] = [[] for _ in d.state]
    for t in np.flatnonzero(d.state == DROP):
        chain(a, t, d.state, work)
        chains[t] = work.ops[: work.out[0]].tolist()
    return Plan(
        name=name,
        state=d.state,
        arrives=d.arrives,
        order=order,
        last_need=memo.last_need.copy(),
        chain_bounds=np.concatenate(([0], np.cumsum([len(c) for c in chains]))).astype(np.int64),
        chain_ops=np.array([op for c in chains for op in c], np.int64),
        copy_ns=copy_ns,
        peak_bytes=peak,
        arrays=a,
    )


def keeping_recipes(compressed: bool) -> list[Recipe]:
    """Beyond the paper: replays that keep what they rebuild, alone and after each
    ranking's swaps."""
    rankings = ("recompute_per_link", "bytes_per_link") if compressed else ("recompute_per_byte",)
    return [Recipe(r, 100, compressed, KEEPING) for r in rankings] + [Recipe(evict=KEEPING)]


@dataclass(frozen=True)
class Choice:
    """The plan that was chosen, and what it is predicted to take.

    ``members`` has the predicted iteration time of every recipe that fits.
    """

    plan: Plan
    predicted: Outcome
    members: tuple[tuple[str, int], ...]


class Planner:
    """Makes plans for one graph with predicted wire bytes.

    Parameters
    ----------
    graph : Graph
    wire_bytes : array of int64, per tensor
        Predicted bytes on the link; at or above the tensor's own means uncompressed.
    pins : dict of int to Decision, optional
        Tensors that must be kept (KEEP), swapped or dropped.
    charge_again, skip : bool
        Readings of stage two, for sensitivity runs (:mod:`planezip.sim.evict`).
    """

    def __init__(
        self,
        graph: Graph,
        wire_bytes: Ints,
        pins: dict[int, int] | None = None,
        *,
        charge_again: bool = True,
        skip: bool = True,
    ) -> None:
        self.graph = graph
        self.simulator = Simulator(graph, wire_bytes)
        self._raw_copy_ns = Simulator(graph, graph.tensor_bytes).copy_ns
        self.pins = dict(pins or {})
        self._readings = (int(charge_again), int(skip))
        a = graph.arrays
        self._allowed = np.ones(graph.tensors, np.int64)
        for t, decision in self.pins.items():
            possible = {KEEP: 1, SWAP: a.tensors[t, CAN_SWAP], DROP: a.tensors[t, CAN_DROP]}[
                decision
            ]
            if not possible:
                raise ValueError(
                    f"tensor {graph.signatures[t]} cannot be "
                    f"{'swapped' if decision == SWAP else 'dropped'}: it is an input, or the "
                    "backward pass changes it; pin it to keep"
                )
            self._allowed[t] = 0
        self._by_final = np.argsort(a.tensors[:, FINAL], kind="stable").astype(np.int64)
        self._scratch = scratch(graph)
        self._memory = memory(graph)
        first = draft(graph)
        cost_all(a, first, self._scratch)
        self._kept = first
        self._recompute_ns = np.where(first.cost >= 0, first.cost, np.int64(1) << 50)

    def candidate(self, recipe: Recipe, target_bytes: int) -> Plan | tuple[int, int]:
        """Algorithm 1 once; the operator and the missing bytes where it cannot reach
        the target."""
        a, memo = self.graph.arrays, self._memory
        copy_ns = self.simulator.copy_ns if recipe.compressed else self._raw_copy_ns
        setup = self.graph.platform.setup_ns
        d = type(self._kept)(*(x.copy() for x in self._kept))
        for t, decision in self.pins.items():
            d.state[t] = decision
        if DROP in self.pins.values():
            cost_all(a, d, self._scratch)
        if recipe.ranking:
            link_ns = recipe.eta_percent * min(self.graph.forward_ns, self.graph.backward_ns) // 100
            ranked = self._rank(recipe.ranking, copy_ns)
            fill_link(
                a,
                d,
                memo,
                ranked,
                copy_ns,
                setup,
                self._by_final,
                link_ns,
                target_bytes,
                self._allowed,
            )
        stuck = cover_deficit(
            a,
            d,
            memo,
            self._scratch,
            recipe.evict,
            copy_ns,
            target_bytes,
            self._allowed,
            *self._readings,
        )
        if stuck >= 0:
            return int(stuck), int(memo.peak[stuck]) - target_bytes
        if recipe.evict == KEEPING:
            a = keep_replays(a, d, memo, self._scratch, target_bytes)
            undo_needless(a, d, memo, self._scratch, target_bytes, self._allowed)
        return finish(a, d, memo, self._scratch, target_bytes, recipe.name, copy_ns)

    def fitting(self, recipe: Recipe, budget_bytes: int) -> tuple[Plan, Outcome] | tuple[int, int]:
        """Candidate that runs within the budget under the predictions.

        One that overflows is planned again with a tighter target.
        """
        target = budget_bytes
        least = (0, np.iinfo(np.int64).max)
        for _ in range(_TRIES):
            plan = self.candidate(recipe, target)
            if not isinstance(plan, Plan):
                return min(least, (plan[0], plan[1] - (budget_bytes - target)), key=_missing)
            outcome = self.simulator(plan, budget_bytes)
            if outcome.ok:
                return plan, outcome
            least = min(least, (outcome.failed_op, outcome.missing_bytes), key=_missing)
            target -= max(outcome.missing_bytes, budget_bytes // 256)
        return least

    def choose(self, recipes: list[Recipe], budget_bytes: int) -> Choice:
        """Fastest of the recipes' plans under the predictions.

        Raises
        ------
        InfeasibleError
            If none fits.
        """
        best: tuple[Plan, Outcome] | None = None
        least = (0, np.iinfo(np.int64).max)
        members = []
        for recipe in recipes:
            found = self.fitting(recipe, budget_bytes)
            if isinstance(found[0], Plan) and isinstance(found[1], Outcome):
                members.append((recipe.name, found[1].iteration_ns))
                if best is None or found[1].iteration_ns < best[1].iteration_ns:
                    best = (found[0], found[1])
            else:
                least = min(least, found, key=_missing)
        if best is None:
            raise InfeasibleError(self.graph, least[0], least[1], budget_bytes)
        return Choice(best[0], best[1], tuple(members))

    def _rank(self, ranking: str, copy_ns: Ints) -> Ints:
        """Tensors by decreasing rank, then production order."""
        cost = self._recompute_ns.astype(np.float64)
        size = self.graph.tensor_bytes.astype(np.float64)
        value = {
            "recompute_per_link": cost / copy_ns,
            "bytes_per_link": size / copy_ns,
            "recompute_per_byte": cost / size,
        }[ranking]
        a = self.graph.arrays
        birth = a.storages[a.tensors[:, STORAGE], BIRTH]
        return np.lexsort((np.arange(len(value)), birth, -value)).astype(np.int64)


def _missing(found: tuple[int, int]) -> int:
    return found[1]
