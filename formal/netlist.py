"""Combinational paths in a netlist: from the ready of a stream to the valid of one."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from formal.smt import READ, run_yosys

__all__ = ["ready_to_valid"]

_BITWISE = {"$and", "$or", "$xor", "$xnor", "$not", "$pos", "$mux"}
_REGISTERS = ("$dff", "$sdff", "$adff", "$aldff", "$ff", "$memwr", "$meminit", "$any", "$check")


def ready_to_valid(rtlil: str, mutation: str | None = None) -> tuple[int, list[str]]:
    """Pairs of a port ``x_ready`` and an output ``y_offer`` looked at, and those with a path.

    Paths are followed bit by bit through bitwise cells and multiplexers; any other cell
    counts as a path from each of its input bits to each output bit.
    """
    commands = [
        *READ,
        *([mutation] if mutation else []),
        "flatten",
        "opt_clean",
        "write_json {out}",
    ]
    module = json.loads(run_yosys(rtlil, commands, "out.json"))["modules"]["top"]
    after: dict[int, set[int]] = defaultdict(set)
    for cell in module["cells"].values():
        for source, target in _arcs(cell):
            after[source].add(target)
    ports = module["ports"].items()
    sources = {name: set(port["bits"]) for name, port in ports if name.endswith("_ready")}
    targets = {name: set(port["bits"]) for name, port in ports if name.endswith("_offer")}
    found = []
    for ready, bits in sources.items():
        seen, border = set(bits), list(bits)
        while border:
            for bit in after.get(border.pop(), ()):
                if bit not in seen:
                    seen.add(bit)
                    border.append(bit)
        found += [f"{ready} -> {offer}" for offer, there in targets.items() if there & seen]
    return len(sources) * len(targets), found


def _arcs(cell: dict[str, Any]) -> list[tuple[int, int]]:
    """Pairs of an input bit and an output bit that depends on it in the same cycle."""
    kind, bits, way = cell["type"], cell["connections"], cell["port_directions"]
    if kind.startswith(_REGISTERS):
        return []
    if kind.startswith("$memrd") and int(cell["parameters"]["CLK_ENABLE"], 2):
        return []
    outputs = [bit for port in bits if way[port] == "output" for bit in bits[port]]
    arcs = []
    for port in bits:
        if way[port] != "input":
            continue
        if kind in _BITWISE and port != "S":
            arcs += list(zip(bits[port], outputs, strict=False))
        else:
            arcs += [(a, b) for a in set(bits[port]) for b in outputs]
    return [(a, b) for a, b in arcs if isinstance(a, int) and isinstance(b, int)]
