"""Mutants that cannot be told from the lane: proven with a solver, for every input.

Let G be a cycle of the lane and M one of the mutant. Say that M and then k - 1 times M give the
outputs and the last state of G and then k - 1 times M, from every state that the lane has j or
more cycles after the start, for all inputs, and from those that it has before. Then the first M
of a run of the mutant can be made a G without a change of what is seen, then the second, and so on:
a difference that always heals within k cycles, unseen, is none. What j cycles lead to from any
state is more than what the lane reaches, so a yes is certain, a no is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from formal.mutation.combinational import combinational, initial
from formal.mutation.netlist import Mutant
from formal.smt import definitions, run_yosys
from formal.solve import DEFAULT_SOLVER, SOLVERS

__all__ = ["Logic", "Terms", "equivalent"]

_SECONDS = 60  # of a question
_STAGES = ((0, 1), (1, 1), (4, 1), (2, 4))  # j and k, tried in turn
_FIRST_CYCLES = 12  # k, for the states of the first cycles
_FUNCTION = re.compile(r"\(define-fun (\|[^|]+\|) \(\(state \|top_s\|\)\) (Bool|\(.*?\)) (.*)\)$")
_USE = re.compile(r"\((\|[^|]+\|) state\)")
_SOURCE = re.compile(  # inputs, or parts of them
    r"^\(define-fun (\|[^|]+\|) .*\(\(_ extract \d+ \d+\) state\)(?: #b1\))?\) ; (.+)$",
    re.MULTILINE,
)
_PART = re.compile(r"\\(\S+)(?: \[(\d+)(?::(\d+))?\])?")
_PORT = re.compile(r"^; yosys-smt2-(input|output) (\S+) (\d+)$", re.MULTILINE)


class Terms:
    """SMT-LIB terms with names; the same term is there once."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def of(self, sort: str, term: str) -> str:
        """Name of a term, or of what is free if the term is ``free`` and something."""
        return self._names.setdefault((sort, term), f"n{len(self._names)}")

    def bits(self, width: int, term: str) -> str:
        """A constant or something free of so many bits."""
        return self.of(f"(_ BitVec {width})", term)

    def defined(self, wanted: str) -> list[str]:
        """Commands that define what a term needs, which comes last."""
        need = set(re.findall(r"\bn\d+\b", wanted))
        lines = []
        for (sort, term), name in reversed(self._names.items()):
            if name not in need:
                continue
            if term.startswith("free "):
                lines.append(f"(declare-const {name} {sort})")
                continue
            need.update(re.findall(r"\bn\d+\b", term))
            lines.append(f"(define-fun {name} () {sort} {term})")
        return [*reversed(lines), f"(assert {wanted})"]


class Logic:
    """A combinational module ``top`` as yosys exports it."""

    def __init__(self, rtlil: str) -> None:
        text = run_yosys(rtlil, ["opt_clean", "write_smt2 -stbv {out}"], "out.smt2")
        functions = [f for line in definitions(text) if (f := _FUNCTION.match(line))]
        self._functions = [(f[1], f[2], f[3]) for f in functions]
        ports = [(way, name, int(width)) for way, name, width in _PORT.findall(text)]
        self.inputs = {name: width for way, name, width in ports if way == "input"}
        self.outputs = {name: width for way, name, width in ports if way == "output"}
        self._sources = {f[1]: _PART.findall(f[2]) for f in _SOURCE.finditer(text)}

    def given(self, terms: Terms, inputs: Mapping[str, str]) -> dict[str, str]:
        """Terms of the outputs, as bits, from those of the inputs."""
        values: dict[str, str] = {}
        for name, sort, body in self._functions:
            if parts := self._sources.get(name):
                term = " ".join(
                    f"((_ extract {high} {low or high}) {inputs[port]})" if high else inputs[port]
                    for port, high, low in parts
                )
                term = f"(concat {term})" if len(parts) > 1 else term
                values[name] = terms.of(sort, f"(= {term} #b1)" if sort == "Bool" else term)
            else:
                values[name] = terms.of(sort, _USE.sub(lambda use: values[use[1]], body))
        made = {}
        for name, width in self.outputs.items():
            term = values[f"|top_n {name}|"]
            made[name] = terms.bits(1, f"(ite {term} #b1 #b0)") if width == 1 else term
        return made


def equivalent(netlist: str, name: str, mutant: Mutant) -> bool:
    """Whether it is proven that the mutant of module ``name`` does what the netlist does.

    What a memory is asked and told must be the same in every cycle; what it answers is then.
    """
    plain = re.sub(r"-ctrl \S+ \d+ \d+ ", "", mutant.command)
    lower = ["dffunmap", "write_rtlil {out}"]
    lowered = [run_yosys(netlist, [*more, *lower], "out.il") for more in ([], [plain])]
    lane, changed = (
        Logic(combinational(text).replace(f"module \\{name}\n", "module \\top\n"))
        for text in lowered
    )
    start = initial(lowered[0])
    for before, cycles in _STAGES:
        if _heals(lane, changed, None, before, cycles) and all(
            _heals(lane, changed, start, k, _FIRST_CYCLES) for k in range(before)
        ):
            return True
    return False


def _heals(
    lane: Logic, changed: Logic, start: Mapping[str, int] | None, before: int, cycles: int
) -> bool:
    """Whether the mutant's first cycle makes no difference, ``before`` cycles of the lane after
    the state ``start`` (of registers that are not 0) or any state."""
    terms = Terms()
    registers = [name[:-2] for name in lane.outputs if _is_register(name)]
    state = {
        k: terms.bits(
            lane.inputs[f"{k}_Q"],
            f"free {k}" if start is None else f"(_ bv{start.get(k, 0)} {lane.inputs[f'{k}_Q']})",
        )
        for k in registers
    }

    def step(logic: Logic, cycle: int, state: dict[str, str]) -> tuple[dict[str, str], list[str]]:
        inputs = {
            name: state[name[:-2]]
            if name[:-2] in state
            else terms.bits(width, f"free {name} {cycle}")
            for name, width in lane.inputs.items()
        }
        made = logic.given(terms, inputs)
        seen = [made[name] for name in lane.outputs if not _is_register(name)]
        return {k: made[f"{k}_D"] for k in registers}, seen

    for cycle in range(before):
        state, _ = step(lane, cycle, state)
    differ: list[tuple[str, str]] = []
    good, wrong = state, state
    for k in range(cycles):
        good, seen = step(changed if k else lane, before + k, good)
        wrong, other = step(changed, before + k, wrong)
        differ += zip(seen, other, strict=True)
    differ += zip(good.values(), wrong.values(), strict=True)
    pairs = [f"(distinct {a} {b})" for a, b in differ if a != b]
    if not pairs:
        return True
    question = ["(set-logic QF_BV)", *terms.defined(f"(or false {' '.join(pairs)})")]
    return SOLVERS[DEFAULT_SOLVER]("\n".join(question), _SECONDS) == "unsat"


def _is_register(output: str) -> bool:
    return output.startswith("cut_") and output.endswith("_D")
