"""From RTLIL to SMT-LIB: export by yosys, mutants, unrolling over time."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from formal.check import DUT, TOP

__all__ = ["READ", "ExportError", "Model", "definitions", "export", "mutations", "run_yosys"]

_RUNNER = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass("tee -q " + command, design)
"""
READ = ("hierarchy -top top", "proc -noopt")
_LOWER = (
    "flatten",
    "opt_clean",
    "chformal -lower",
    "memory_map",
    "opt -nodffe -nosdff",
    "dffunmap",
    "opt -nodffe -nosdff",
)
_FUNCTION = re.compile(
    r"^\(define-fun (\|[^|]+\|) \(\(state \|top_s\|\)\) (Bool|\(_ BitVec \d+\)) (.*)\)$"
)
_USE = re.compile(r"\((\|[^|]+\|) state\)")
_FOLLOWING = re.compile(r"^  \(= (.*) \((\|[^|]+\|) next_state\)\) ;", re.MULTILINE)
_INITIAL = re.compile(
    r"^  \(= (\(= \(\(_ extract 0 0\) )?\((\|[^|]+\|) state\)(?(1)\) #b1\)) (\S+)\) ;",
    re.MULTILINE,
)
_BITS = {"false": "#b0", "true": "#b1"}


class ExportError(RuntimeError):
    """yosys could not export a design."""


def run_yosys(text: str, commands: Sequence[str], out: str) -> str:
    """Text of the file ``out`` that yosys writes; ``{out}`` in a command is its path."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.il", Path(folder) / out
        source.write_text(text)
        result = subprocess.run(
            [
                sys.executable,
                "-c",
                _RUNNER,
                f"read_rtlil {source}",
                *(command.format(out=target) for command in commands),
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if result.returncode or not target.exists():
            raise ExportError(f"yosys failed: {(result.stderr or result.stdout)[-2000:]}")
        return target.read_text()


def mutations(rtlil: str, count: int, seed: int = 1) -> list[str]:
    """``count`` yosys commands, each of which changes one cell of the design under test."""
    text = run_yosys(
        rtlil,
        [
            *READ,
            "opt_clean",
            f"select {TOP}.{DUT} {TOP}.{DUT}.*",
            f"mutate -list {count} -seed {seed} -o {{out}}",
        ],
        "mutations",
    )
    return [line for line in text.splitlines() if line.startswith("mutate ")]


@dataclass(frozen=True)
class Model:
    """A design as SMT-LIB functions of its state, one line each.

    Attributes
    ----------
    state_bits : int
        Registers and inputs.
    functions : tuple of (name, sort, term)
    following : mapping
        Register to the term that it takes in the next cycle.
    initial : mapping
        Register to its first value.
    begins : tuple of term
        What else holds in the first cycle (registers of which only some bits have a value).
    obligations, covers, assumptions
        Counted in the exported text; an assertion that has become a constant is none.
    """

    state_bits: int
    functions: tuple[tuple[str, str, str], ...]
    following: Mapping[str, str]
    initial: Mapping[str, str]
    begins: tuple[str, ...]
    obligations: int
    covers: tuple[str, ...]
    assumptions: int

    def unrolled(self, cycles: int, initial: bool) -> list[str]:
        """Definitions for the cycles 0, 1, ...: registers from the cycle before.

        In cycle 0 registers have their first values, or (not ``initial``) any.
        """
        lines = []
        for step in range(cycles):
            lines.append(f"(declare-const s@{step} (_ BitVec {self.state_bits}))")
            for name, sort, term in self.functions:
                value = _placed(term, step)
                if step and name in self.following:
                    value = _placed(self.following[name], step - 1)
                elif not step and initial:
                    value = self.initial.get(name, value)
                lines.append(f"(define-fun {self.term(name, step)} () {sort} {value})")
        if initial:
            lines += [f"(assert {_placed(term, 0)})" for term in self.begins]
        return lines

    def term(self, name: str, step: int) -> str:
        """What a function (``|top_all|``: the assertions) is in ``step``."""
        return f"{name[:-1]}@{step}|"


def _placed(term: str, step: int) -> str:
    """A term of a state as a term of the state of ``step``."""
    term = _USE.sub(lambda match: f"{match[1][:-1]}@{step}|", term)
    return re.sub(r"(?<= )state(?=\))", f"s@{step}", term)


def export(rtlil: str, mutation: str | None = None, lemmas: Sequence[str] = ()) -> Model:
    """The design as a :class:`Model`, perhaps with a mutation.

    ``lemmas`` are further assertions, as SMT-LIB terms of the form ``(= {dut.level} #b00)``
    with the names of the design's wires and registers in braces.

    Raises
    ------
    ExportError
        With yosys' message.
    """
    commands = [*READ, *([mutation] if mutation else []), *_LOWER, "write_smt2 -stbv {out}"]
    text = run_yosys(rtlil, commands, "out.smt2")
    bits = re.search(r"\(define-sort \|top_s\| \(\) \(_ BitVec (\d+)\)\)", text)
    if bits is None or "yosys-smt2-memory" in text:
        raise ExportError("the design has no state as a bit vector")
    functions = [
        (found[1], found[2], found[3])
        for line in definitions(text)
        if (found := _FUNCTION.match(line))
    ]
    terms = [re.sub(r"\{([^}]+)\}", r"(|top_n \1| state)", lemma) for lemma in lemmas]
    functions.append(("|top_all|", "Bool", f"(and true (|top_a| state) {' '.join(terms)})"))
    _, _, last = text.partition("(define-fun |top_i|")
    first, _, following = last.partition("(define-fun |top_t|")
    nexts = {match[2]: match[1] for match in _FOLLOWING.finditer(following)}
    values = {
        match[2]: _BITS[match[3]] if match[1] else match[3] for match in _INITIAL.finditer(first)
    }
    lines = [line for line in first.splitlines() if line.startswith("  (=")]
    others = [line[2:].partition(" ; ")[0] for line in lines if not _INITIAL.match(line)]
    if len(nexts) != following.count("\n  (="):
        raise ExportError("a register's transition is in an unknown form")
    return Model(
        int(bits[1]),
        tuple(functions),
        nexts,
        values,
        tuple(others),
        sum(name.startswith("|top_a ") and "(|" in term for name, _, term in functions)
        + len(terms),
        tuple(f"|top_c {n}|" for n in re.findall(r"^; yosys-smt2-cover (\d+) ", text, re.M)),
        len(re.findall(r"^; yosys-smt2-assume ", text, re.MULTILINE)),
    )


def definitions(text: str) -> list[str]:
    """Function definitions without comments, one line each, up to the transitions."""
    found: list[str] = []
    open_ = 0
    for line in text.partition("(define-fun |top_i|")[0].splitlines():
        line = re.sub(r" ; .*$", "", line)
        if line.startswith(";") or not line.strip():
            continue
        plain = re.sub(r"\|[^|]*\|", "", line)
        if open_ > 0:
            found[-1] += " " + line.strip()
        else:
            found.append(line)
        open_ += plain.count("(") - plain.count(")")
    return found
