"""Mutants that cannot be told from the lane: proven by yosys, for every state and input."""

from __future__ import annotations

import re
from collections.abc import Iterator

from formal.mutation.netlist import Mutant
from formal.smt import ExportError, run_yosys

__all__ = ["combinational", "equivalent"]

_SECONDS = 60  # of a proof
_CELL = re.compile(r"^  cell \$(dff|memrd_v2|memwr_v2|meminit_v2|scopeinfo) (\S+)\n", re.MULTILINE)
# Ports of a cell that become inputs and outputs, with the parameter that has their width.
_CUT = {
    "dff": {"Q": ("input", "WIDTH"), "D": ("output", "WIDTH")},
    "memrd_v2": {"DATA": ("input", "WIDTH"), "ADDR": ("output", "ABITS"), "EN": ("output", "")},
    "memwr_v2": {
        "DATA": ("output", "WIDTH"),
        "ADDR": ("output", "ABITS"),
        "EN": ("output", "WIDTH"),
    },
    "meminit_v2": {},
    "scopeinfo": {},
}


def combinational(netlist: str) -> str:
    """A netlist without its registers and memories: what they hold and read are inputs, what
    they take outputs, called after the cell."""
    text = re.sub(r"^ *attribute .*\n", "", netlist, flags=re.MULTILINE)
    text = re.sub(r"^  memory .*\n", "", text, flags=re.MULTILINE)
    kept: list[str] = []
    added: list[str] = []
    at = 0
    for found in _CELL.finditer(text):
        end = text.index("\n  end\n", found.end()) + len("\n  end\n")
        kept.append(text[at : found.start()])
        at = end
        added += _ports(found[1], found[2], text[found.end() : end], len(added))
    kept.append(text[at:])
    body, _, rest = "".join(kept).rpartition("\nend\n")
    return "\n".join([body, *added, "end", rest])


def _ports(kind: str, cell: str, text: str, number: int) -> Iterator[str]:
    parameters = dict(re.findall(r"^    parameter \\(\S+) (\d+)$", text, re.MULTILINE))
    signals = dict(re.findall(r"^    connect \\(\S+) (.*)$", text, re.MULTILINE))
    for k, (port, (way, width)) in enumerate(_CUT[kind].items()):
        name = "\\cut_" + re.sub(r"\W", "_", cell) + "_" + port
        bits = parameters[width] if width else "1"
        yield f"  wire width {bits} {way} {1000 + number + 2 * k} {name}"
        yield "  connect " + (
            f"{signals[port]} {name}" if way == "input" else f"{name} {signals[port]}"
        )


def equivalent(netlist: str, name: str, mutant: Mutant) -> bool:
    """Whether yosys proves that the mutant of module ``name`` does what the netlist does.

    In every state, reachable or not, and for every input the outputs and the next state must be
    the same: a yes is certain, a no is not.
    """
    plain = re.sub(r"-ctrl \S+ \d+ \d+ ", "", mutant.command)
    lower = ["dffunmap", "write_rtlil {out}"]
    gold = combinational(run_yosys(netlist, lower, "gold.il"))
    gate = combinational(run_yosys(netlist, [plain, *lower], "gate.il"))
    both = gold.replace(f"module \\{name}\n", "module \\gold\n") + gate.replace(
        f"module \\{name}\n", "module \\gate\n"
    )
    merge = ["opt_clean -purge", "opt_merge", "opt_expr", "opt_merge", "opt_expr -full"]
    commands = [
        "miter -equiv -flatten gold gate miter",
        "cd miter",
        *merge,
        "opt_clean -purge",
        f"tee -o {{out}} sat -prove trigger 0 -timeout {_SECONDS}",
    ]
    try:
        return "SUCCESS!" in run_yosys(both, commands, "proof.txt")
    except ExportError as error:
        if "timeout" in str(error).lower():
            return False
        raise
