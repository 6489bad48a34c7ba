"""Properties and their proofs: bounded model checking, induction, cover; a mutant each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from formal.check import Check
from formal.netlist import ready_to_valid
from formal.smt import Model, export, mutations
from formal.solve import DEFAULT_SOLVER, SOLVERS

__all__ = ["MODES", "Property", "Verdict", "broken", "prove"]

MODES = ("bmc", "induction", "cover", "netlist")


@dataclass(frozen=True)
class Property:
    """What is to be proven, and a change of the design with which it must not hold.

    Parameters
    ----------
    name : str
    build : callable
        Makes the check.
    mode : {"bmc", "induction", "cover", "netlist"}
        bmc: the assertions hold in the first ``depth`` cycles. induction: in every cycle;
        they hold if they held in the ``depth`` cycles before, from any state. cover: each
        cover is reached within ``depth`` cycles. netlist: no combinational path from a ready
        to a valid (:mod:`formal.netlist`), without a solver.
    depth : int
    mutant : callable, optional
        Makes the check of a changed design. Without it yosys changes single cells of the
        design under test (``mutate``), one after the other, until the property fails.
    within : int
        Of an induction: cycles after reset in which the mutant must break an assertion.
    seed, tries : int
        Of yosys' mutants: random seed, and how many may go undetected.
    change : str
        Says what ``mutant`` changes.
    lemmas : tuple of str
        Invariants of the design's registers that an induction needs, proven with it
        (:func:`formal.smt.export`).
    quick : bool
        Part of ``make test``.
    limit_s : int
        Of a query to the solver.
    """

    name: str
    build: Callable[[], Check]
    mode: str = "bmc"
    depth: int = 1
    mutant: Callable[[], Check] | None = None
    change: str = ""
    within: int = 8
    seed: int = 1
    tries: int = 12
    quick: bool = False
    lemmas: tuple[str, ...] = ()
    limit_s: int = 1500


@dataclass(frozen=True)
class Verdict:
    """``status`` is proven, covered, failed or unknown (the solver gave up)."""

    name: str
    status: str
    mode: str
    depth: int
    obligations: int
    assumptions: int
    state_bits: int
    mutant: str
    mutant_fails: bool
    mutants_tried: int
    seconds: float
    solver: str

    @property
    def passed(self) -> bool:
        good = self.status in ("proven", "covered")
        return good and self.mutant_fails and self.obligations > 0


def prove(item: Property, solver: str = DEFAULT_SOLVER) -> Verdict:
    """Prove a property and see that its mutant fails."""
    began = time.monotonic()
    if item.mode == "netlist":
        return _search(item, began)
    rtlil = item.build().rtlil()
    model = export(rtlil, None, item.lemmas)
    status = _status(model, item, solver)
    mutant, fails, tried = item.change, False, 0
    if item.mutant is not None:
        tried = 1
        fails = _refuted(export(item.mutant().rtlil()), item, solver)
    else:
        for command in mutations(rtlil, item.tries, item.seed):
            tried += 1
            mutant = command
            fails = _refuted(export(rtlil, command), item, solver)
            if fails:
                break
    obligations = len(model.covers) if item.mode == "cover" else model.obligations
    return Verdict(
        item.name,
        status,
        item.mode,
        item.depth,
        obligations,
        model.assumptions,
        model.state_bits,
        mutant,
        fails,
        tried,
        round(time.monotonic() - began, 1),
        solver,
    )


def broken(item: Property, error: BaseException, solver: str) -> Verdict:
    """Verdict on a property that could not be exported or read by the solver."""
    text = f"{type(error).__name__}: {error}"[-500:]
    return Verdict(item.name, "failed", item.mode, item.depth, 0, 0, 0, text, False, 0, 0.0, solver)


def _search(item: Property, began: float) -> Verdict:
    if item.mutant is None:
        raise ValueError(f"{item.name}: a netlist property must have a mutant of its own")
    pairs, paths = ready_to_valid(item.build().rtlil())
    fails = bool(ready_to_valid(item.mutant().rtlil())[1])
    status = "failed" if paths else "proven"
    seconds = round(time.monotonic() - began, 1)
    return Verdict(
        item.name, status, item.mode, 0, pairs, 0, 0, item.change, fails, 1, seconds, "yosys"
    )


def _ask(parts: list[str], item: Property, solver: str) -> str:
    return SOLVERS[solver]("\n".join(["(set-logic QF_BV)", *parts]), item.limit_s)


def _status(model: Model, item: Property, solver: str) -> str:
    answers: list[str]
    if item.mode == "cover":
        answers = [_ask(_cover(model, item.depth, name), item, solver) for name in model.covers]
        if "unsat" in answers:
            return "failed"
        return "covered" if set(answers) == {"sat"} else "unknown"
    answers = [_ask(_bounded(model, item.depth), item, solver)]
    if item.mode == "induction" and answers == ["unsat"]:
        answers.append(_ask(_step(model, item.depth), item, solver))
    if "sat" in answers:
        return "failed"
    if set(answers) != {"unsat"}:
        return "unknown"
    # Assumptions that contradict each other would prove anything.
    return "proven" if _ask(_assumed(model, item.depth), item, solver) == "sat" else "failed"


def _refuted(model: Model, item: Property, solver: str) -> bool:
    """Whether the property is false of a changed design, shown by a run from the reset state.

    An assertion is broken in a cycle until which the assumptions hold; of an induction
    within ``item.within`` cycles, as one that is only not inductive may be true. Or a cover
    is not reached by any run, though there are runs. Lemmas are not part of the property.
    """
    if item.mode == "cover":
        answers = [_ask(_cover(model, item.depth, name), item, solver) for name in model.covers]
        runs = _ask(_assumed(model, item.depth), item, solver) == "sat"
        return runs and "unsat" in answers
    depth = max(item.depth, item.within) if item.mode == "induction" else item.depth
    return _ask(_bounded(model, depth), item, solver) == "sat"


def _until(model: Model, count: int) -> list[str]:
    """``until_k``: the assumptions hold in cycle k and before."""
    parts, before = [], "true"
    for step in range(count):
        parts.append(
            f"(define-fun until_{step} () Bool (and {before} {model.term('|top_u|', step)}))"
        )
        before = f"until_{step}"
    return parts


def _bounded(model: Model, depth: int) -> list[str]:
    wrong = [f"(and until_{k} (not {model.term('|top_all|', k)}))" for k in range(depth)]
    return [
        *model.unrolled(depth, True),
        *_until(model, depth),
        f"(assert (or false {' '.join(wrong)}))",
    ]


def _step(model: Model, depth: int) -> list[str]:
    held = [f"(assert {model.term('|top_all|', k)})" for k in range(depth)]
    return [
        *model.unrolled(depth + 1, False),
        *_until(model, depth + 1),
        *held,
        f"(assert until_{depth})",
        f"(assert (not {model.term('|top_all|', depth)}))",
    ]


def _cover(model: Model, depth: int, name: str) -> list[str]:
    reached = [f"(and until_{k} {model.term(name, k)})" for k in range(depth)]
    return [
        *model.unrolled(depth, True),
        *_until(model, depth),
        f"(assert (or false {' '.join(reached)}))",
    ]


def _assumed(model: Model, depth: int) -> list[str]:
    return [*model.unrolled(depth, True), *_until(model, depth), f"(assert until_{depth - 1})"]
