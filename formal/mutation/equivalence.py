"""Mutants that cannot be told from the lane: proven with a solver, for every input.

Let G be a cycle of the lane and M one of the mutant. Say that M and then k - 1 times M give the
outputs and the last state of G and then k - 1 times M, from every state that the lane has j or
more cycles after the start, for all inputs, and from those that it has before. Then the first M
of a run of the mutant can be made a G without a change of what is seen, then the second, and so on:
a difference that always heals within k cycles, unseen, is none. What j cycles lead to from any
state in which constant bits have their value is more than what the lane reaches, so a yes is
certain, a no is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property

from formal.mutation.combinational import combinational, initial
from formal.mutation.constant import constant_bits
from formal.mutation.logic import Logic, Terms
from formal.mutation.netlist import Mutant
from formal.smt import run_yosys
from formal.solve import DEFAULT_SOLVER, SOLVERS

__all__ = ["Original"]

_SECONDS = 60  # of a question
_STAGES = ((0, 1), (1, 1), (4, 1), (2, 4))  # j and k, tried in turn
_FIRST_CYCLES = 12  # k, for the states of the first cycles


class Original:
    """The module ``name`` of a flattened netlist, for questions about its mutants."""

    def __init__(self, netlist: str, name: str) -> None:
        self._netlist, self._name = netlist, name

    def equals(self, mutant: Mutant) -> bool:
        """Whether it is proven that the mutant does what the module does.

        What a memory is asked and told must be the same in every cycle; what it answers is then.
        """
        plain = re.sub(r"-ctrl \S+ \d+ \d+ ", "", mutant.command)
        changed = self._logic(self._lowered(plain))
        return any(
            self._heals(changed, self._any_state, before, cycles)
            and all(
                self._heals(changed, self._first_state, k, _FIRST_CYCLES) for k in range(before)
            )
            for before, cycles in _STAGES
        )

    @cached_property
    def constants(self) -> dict[str, int]:
        """Masks of the registers' bits that are constant."""
        return constant_bits(self._module, self._start)

    @cached_property
    def _module(self) -> Logic:
        return self._logic(self._plain)

    @cached_property
    def _start(self) -> dict[str, int]:
        return initial(self._plain)

    @cached_property
    def _plain(self) -> str:
        return self._lowered()

    def _lowered(self, *commands: str) -> str:
        return run_yosys(self._netlist, [*commands, "dffunmap", "write_rtlil {out}"], "out.il")

    def _logic(self, lowered: str) -> Logic:
        cut = combinational(lowered)
        return Logic(cut.replace(f"module \\{self._name}\n", "module \\top\n"))

    def _any_state(self, terms: Terms, name: str) -> str:
        width = self._module.registers[name]
        value = terms.bits(width, f"free {name}")
        if mask := self.constants.get(name, 0):
            free = terms.bits(width, f"(bvand {value} (_ bv{~mask & ((1 << width) - 1)} {width}))")
            value = terms.bits(
                width, f"(bvor {free} (_ bv{self._start.get(name, 0) & mask} {width}))"
            )
        return value

    def _first_state(self, terms: Terms, name: str) -> str:
        width = self._module.registers[name]
        return terms.bits(width, f"(_ bv{self._start.get(name, 0)} {width})")

    def _heals(
        self, changed: Logic, begin: Callable[[Terms, str], str], before: int, cycles: int
    ) -> bool:
        """Whether the mutant's first cycle makes no difference, ``before`` cycles of the module
        after the state of the registers that ``begin`` gives."""
        terms = Terms()
        module = self._module
        state = {name: begin(terms, name) for name in module.registers}

        def step(
            logic: Logic, cycle: int, state: Mapping[str, str]
        ) -> tuple[dict[str, str], list[str]]:
            inputs = {
                name: state[name[:-2]]
                if name[:-2] in state
                else terms.bits(width, f"free {name} {cycle}")
                for name, width in module.inputs.items()
            }
            made = logic.given(terms, inputs)
            registers = {name: made.pop(f"{name}_D") for name in module.registers}
            return registers, [made[name] for name in module.outputs if name in made]

        for cycle in range(before):
            state, _ = step(module, cycle, state)
        differ: list[tuple[str, str]] = []
        good, wrong = state, state
        for k in range(cycles):
            good, seen = step(changed if k else module, before + k, good)
            wrong, other = step(changed, before + k, wrong)
            differ += zip(seen, other, strict=True)
        differ += zip(good.values(), wrong.values(), strict=True)
        pairs = [f"(distinct {a} {b})" for a, b in differ if a != b]
        if not pairs:
            return True
        question = ["(set-logic QF_BV)", *terms.defined(f"(or false {' '.join(pairs)})")]
        return SOLVERS[DEFAULT_SOLVER]("\n".join(question), _SECONDS) == "unsat"
