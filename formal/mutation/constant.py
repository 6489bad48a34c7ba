"""Bits of registers that keep their first value whatever comes in.

From all bits those are taken away that leave it in one cycle, from any state in which the
others have theirs, until a solver says that there is no such cycle: what is left is an
inductive invariant. Random states find most of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from bitwuzla import Bitwuzla, Kind, Option, Options, Parser, Result, Term, TermManager

from formal.mutation.logic import Logic, Terms

__all__ = ["constant_bits"]

_IDLE_ROUNDS = 30  # random ones without a find, before the solver is asked


def constant_bits(logic: Logic, start: Mapping[str, int]) -> dict[str, int]:
    """Masks of the bits that are constant, by register; ``start``: first values that are not 0.

    Raises
    ------
    RuntimeError
        If the solver gives up.
    """
    terms = Terms()
    inputs = {name: terms.bits(width, f"free {name}") for name, width in logic.inputs.items()}
    made = logic.given(terms, inputs)
    after = {name: made[f"{name}_D"] for name in logic.registers}
    lines = terms.defined(" ".join(["(and true", *(f"(= {d} {d})" for d in after.values()), ")"]))
    return _Search(logic.registers, start, inputs, after, lines[:-1]).found()


class _Search:
    """``before`` and ``after``: the registers' terms; ``masks``: bits that may be constant."""

    def __init__(
        self,
        widths: Mapping[str, int],
        start: Mapping[str, int],
        inputs: Mapping[str, str],
        after: Mapping[str, str],
        lines: list[str],
    ) -> None:
        options = Options()
        options.set(Option.PRODUCE_MODELS, True)
        self._terms = TermManager()
        parser = Parser(self._terms, options)
        parser.parse("\n".join(["(set-logic QF_BV)", *lines]), True, False)
        self._solver: Bitwuzla = parser.bitwuzla()
        used = {line.split()[1] for line in lines}
        before = {k: parser.parse_term(v) for k, v in inputs.items() if v in used}
        self._registers = {k: before.pop(f"{k}_Q") for k in widths if f"{k}_Q" in before}
        self._inputs = list(before.values())
        self._after = {k: parser.parse_term(v) for k, v in after.items() if v in used}
        self._start = {k: start.get(k, 0) for k in widths}
        self._masks = {k: (1 << width) - 1 for k, width in widths.items() if k in self._after}

    def found(self) -> dict[str, int]:
        rng = random.Random(0)
        idle = 0
        while idle < _IDLE_ROUNDS:
            given = [self._equal(term, self._any(term, rng)) for term in self._inputs]
            for name, term in self._registers.items():
                free = self._any(term, rng) & ~self._masks.get(name, 0)
                given.append(self._equal(term, self._start[name] ^ free))
            idle = 0 if self._left(given) else idle + 1
        while self._masks and self._left(self._question()):
            pass
        return dict(self._masks)

    def _question(self) -> list[Term]:
        """The bits have their first value, and one of them has not in the next cycle."""
        given, leaves = [], [self._terms.mk_false()]  # "or" takes two terms at least
        for name, mask in self._masks.items():
            if name in self._registers:
                given.append(self._first(self._registers[name], name, mask))
            leaves.append(
                self._terms.mk_term(Kind.NOT, [self._first(self._after[name], name, mask)])
            )
        return [*given, self._terms.mk_term(Kind.OR, leaves)]

    def _left(self, given: list[Term]) -> bool:
        """Whether there is such a cycle; takes away the bits that leave their value in it."""
        result = self._solver.check_sat(*given)
        if result == Result.UNKNOWN:
            raise RuntimeError("the solver gives up on the registers' constant bits")
        if result == Result.UNSAT:
            return False
        changed = False
        for name, mask in list(self._masks.items()):
            value = int(self._solver.get_value(self._after[name]).value(10))
            left = mask & ~(value ^ self._start[name])
            changed |= left != mask
            self._masks[name] = left
            if not left:
                del self._masks[name]
        return changed

    def _first(self, term: Term, name: str, mask: int) -> Term:
        width = term.sort().bv_size()
        some = self._terms.mk_term(Kind.BV_AND, [term, self._value(width, mask)])
        return self._equal(some, self._start[name] & mask)

    def _equal(self, term: Term, value: int) -> Term:
        return self._terms.mk_term(Kind.EQUAL, [term, self._value(term.sort().bv_size(), value)])

    def _value(self, width: int, value: int) -> Term:
        return self._terms.mk_bv_value(self._terms.mk_bv_sort(width), value)

    def _any(self, term: Term, rng: random.Random) -> int:
        """Random; half of the times with few ones."""
        width = term.sort().bv_size()
        return rng.getrandbits(width) & rng.choice((-1, rng.getrandbits(width)))
