"""A lane with all its mutants in one netlist: the input ``mutsel`` says which one it is.

yosys' ``mutate`` picks them evenly over source lines, wires and cells of the flattened,
word-level netlist, so that one Verilator build of a minute serves them all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from amaranth.back import rtlil

from formal.smt import run_yosys
from tb.places import ROOT

__all__ = ["SELECT", "SELECT_BITS", "Mutant", "flattened", "mutants", "mutated"]

SELECT, SELECT_BITS = "mutsel", 16
_SPARE = 1.2  # mutants of what memories begin with are left out
_FLATTEN = ("proc", "flatten", "opt_clean", "opt -full", "pmuxtree", "opt_clean")


@dataclass(frozen=True)
class Mutant:
    """A change of one bit of a cell's port.

    Attributes
    ----------
    number : int
        Value of ``mutsel`` that makes it, from 1 on.
    mode : str
        inv, const0, const1; cnot0, cnot1: inverted where another bit of the port is 0, 1.
    kind : str
        Of the cell, as yosys calls it.
    cell, port, bit : of the cell
    source : str
        File and line of the hardware that the cell comes from.
    command : str
        That makes it in the flattened netlist.
    """

    number: int
    mode: str
    kind: str
    cell: str
    port: str
    bit: int
    source: str
    command: str


def flattened(component: Any, name: str) -> str:
    """RTLIL of a component as the one module ``name``, words and memories kept."""
    text = rtlil.convert(component, name=name, emit_src=True).replace(f"{ROOT}/", "")
    return run_yosys(text, [*_FLATTEN, "write_rtlil {out}"], "out.il")


def mutants(netlist: str, count: int, seed: int) -> list[Mutant]:
    """``count`` mutants of a flattened netlist, but none of what its memories begin with."""
    kinds = dict(reversed(found) for found in re.findall(r"^  cell (\S+) (\S+)$", netlist, re.M))
    command = f"mutate -list {round(count * _SPARE)} -seed {seed} -o {{out}}"
    lines = run_yosys(netlist, [command], "list.ys").splitlines()
    made: list[Mutant] = []
    for line in lines:
        words = line.split()
        given = {key: value for key, value in pairwise(words) if key[0] == "-"}
        sources = [value for key, value in pairwise(words) if key == "-src"]
        cell = given["-cell"]
        if kinds[cell].startswith("$meminit") or len(made) == count:
            continue
        number = len(made) + 1
        own = [source for source in sources if source.startswith("hdl/")]
        made.append(
            Mutant(
                number,
                given["-mode"],
                kinds[cell],
                cell,
                given["-port"],
                int(given["-portbit"]),
                (own or sources or [""])[-1],
                line.replace("mutate ", f"mutate -ctrl {SELECT} {SELECT_BITS} {number} ", 1),
            )
        )
    return made


def mutated(netlist: str, made: Sequence[Mutant]) -> str:
    """Verilog of the netlist with all of ``made``; with ``mutsel`` 0 it is the netlist."""
    commands = ["memory_collect", "opt_clean -purge", "write_verilog -norename -noattr {out}"]
    text = run_yosys(netlist, [*(mutant.command for mutant in made), *commands], "out.v")
    return text.partition("\n")[2].lstrip()
