"""Solvers: SMT-LIB text in, "sat", "unsat" or "unknown" out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import bitwuzla
import z3

__all__ = ["DEFAULT_SOLVER", "SOLVERS", "version"]


def _bitwuzla(text: str, limit_s: int) -> str:
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, 1000 * limit_s)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(text, True, False)
    return str(parser.bitwuzla().check_sat()).rpartition(".")[2].lower()


def _z3(text: str, limit_s: int) -> str:
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", 1000 * limit_s)
    solver.from_string(text)
    return str(solver.check())


SOLVERS: Mapping[str, Callable[[str, int], str]] = {"bitwuzla": _bitwuzla, "z3": _z3}
DEFAULT_SOLVER = "bitwuzla"


def version(solver: str) -> str:
    """Version of a solver."""
    return str(bitwuzla.version() if solver == "bitwuzla" else z3.get_version_string())
