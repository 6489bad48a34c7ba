"""Combinational logic as SMT-LIB terms, which can be put one after the other."""

from __future__ import annotations

import re
from collections.abc import Mapping

from formal.smt import definitions, run_yosys

__all__ = ["Logic", "Terms"]

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
        # Widths of the registers, which were cut: ``cut_X_Q`` and ``cut_X_D`` are ports.
        self.registers = {
            name[:-2]: width
            for name, width in self.outputs.items()
            if name.startswith("cut_") and name.endswith("_D")
        }
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
