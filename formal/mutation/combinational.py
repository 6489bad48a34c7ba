"""The combinational part of a lane, whose state and memories are inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["combinational", "initial"]

_CELL = re.compile(r"^  cell \$(dff|memrd_v2|memwr_v2|meminit_v2|scopeinfo) (\S+)\n", re.MULTILINE)
# Ports of a cell that become inputs and outputs, with the parameter that has their width.
_CUT = {
    "dff": {"Q": ("input", "WIDTH"), "D": ("output", "WIDTH"), "CLK": ("output", "")},
    "memrd_v2": {
        "DATA": ("input", "WIDTH"),
        "ADDR": ("output", "ABITS"),
        **dict.fromkeys(("EN", "CLK", "ARST", "SRST"), ("output", "")),
    },
    "memwr_v2": {
        "DATA": ("output", "WIDTH"),
        "ADDR": ("output", "ABITS"),
        "EN": ("output", "WIDTH"),
        "CLK": ("output", ""),
    },
    "meminit_v2": {},
    "scopeinfo": {},
}


_INIT = re.compile(r"^ *attribute \\init (?:\d+'([01x]+)|(\d+))$")
_WIRE = re.compile(r"^  wire (?:width (\d+) )?(?:\w+ )*(\S+)$")
_PART = re.compile(r"([\\$]\S+)(?: \[(\d+)(?::(\d+))?\])?")  # of what a port is connected to


def initial(netlist: str) -> dict[str, int]:
    """What registers hold at the start, by the name that :func:`combinational` gives them; those
    that hold 0 are left out."""
    held: dict[str, tuple[int, int]] = {}  # width and value of wires
    value = 0
    for line in netlist.splitlines():
        if found := _INIT.match(line):
            value = int(found[1].replace("x", "0"), 2) if found[1] else int(found[2])
        elif found := _WIRE.match(line):
            held[found[2]] = int(found[1] or 1), value
            value = 0
    registers = {}
    for cell in _CELL.finditer(netlist):
        text = netlist[cell.end() : netlist.index("\n  end\n", cell.end())]
        signal = re.search(r"^    connect \\Q (.*)$", text, re.MULTILINE)
        bits = 0
        for name, high, low in _PART.findall(signal[1]) if signal else ():  # the highest first
            width, value = held[name]
            first = int(low or high or 0)
            count = int(high) - first + 1 if high else width
            bits = bits << count | value >> first & ((1 << count) - 1)
        if bits:
            registers["cut_" + re.sub(r"\W", "_", cell[2])] = bits
    return registers


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
