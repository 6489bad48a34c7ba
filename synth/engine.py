# amaranth: UnusedElaboratable=no
"""Engine and AXI wrapper: their own logic is mapped with what is inside as black boxes, and timed
with the netlists of these linked in: one netlist, whose area is the sum of its modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amaranth.hdl import Value
from amaranth.lib.wiring import In

from planezip.hdl.axi import AxiEngine
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.engine import Engine
from planezip.model.format import Parameters
from planezip.synth.flow import Netlist

__all__ = ["ENGINES", "Level", "counts", "linked", "shells"]


@dataclass(frozen=True)
class Level:
    """A module of the whole: its row, the Verilog module of its instances, and its maker."""

    row: str
    instance: str
    make: Callable[[Parameters], Any]


_LANES = (
    Level("compressor", "planezip_compressor", CompressorLane),
    Level("decompressor", "planezip_decompressor", DecompressorLane),
)


def _engine(lanes: int) -> Level:
    return Level(f"engine_x{lanes}", "planezip_engine", lambda p: Engine(p, lanes, instances=True))


def _axi(lanes: int) -> Level:
    return Level(f"axi_x{lanes}", "planezip_axi", lambda p: AxiEngine(p, lanes, instances=True))


ENGINES: Mapping[str, tuple[int, tuple[Level, ...]]] = {
    **{f"engine_x{n}": (n, (*_LANES, _engine(n))) for n in (1, 2, 4)},
    "axi_x2": (2, (*_LANES, _engine(2), _axi(2))),
}
"""Lanes of each direction, and modules, lowest first; the last one is the row's own."""


def _pins(component: Any) -> dict[str, tuple[str, int]]:
    """Ports in Verilog: input or output, and bits."""
    found = {
        "__".join(map(str, path)): (
            "input" if member.flow == In else "output",
            len(Value.cast(value)),
        )
        for path, member, value in component.signature.flatten(component)
    }
    return found if "aclk" in found else {"clk": ("input", 1), "rst": ("input", 1), **found}


def _module(component: Any, name: str, inside: str = "") -> str:
    lines = [f"module {name}({', '.join(_pins(component))});"]
    for pin, (way, size) in _pins(component).items():
        lines.append(f"  {way} {f'[{size - 1}:0] ' if size > 1 else ''}{pin};")
    return "\n".join([*lines, inside, "endmodule", ""])


def shells(levels: Sequence[Level], parameters: Parameters) -> str:
    """Verilog of the modules without contents: black boxes for Yosys."""
    return "".join(_module(level.make(parameters), level.instance) for level in levels)


def _wrapper(level: Level, parameters: Parameters) -> str:
    """The module of the instances around the netlist, whose ports are single bits."""
    component = level.make(parameters)
    bits = [
        (f"{pin}_{k}", f"{pin}[{k}]") if size > 1 else (pin, pin)
        for pin, (_, size) in _pins(component).items()
        for k in range(size)
    ]
    joined = ", ".join(f".{inner}({outer})" for inner, outer in bits)
    return _module(component, level.instance, f"  {level.row} core ({joined});")


def counts(levels: Sequence[Level], texts: Sequence[str]) -> dict[str, int]:
    """How often the whole has each row's module, from the instances in the RTLIL ``texts``."""
    found = {levels[-1].instance: 1}
    for level, text in reversed(list(zip(levels, texts, strict=True))):
        for other in levels:
            here = len(re.findall(rf"^ *cell \\{other.instance} ", text, re.M))
            found[other.instance] = found.get(other.instance, 0) + here * found[level.instance]
    return {level.row: found[level.instance] for level in levels}


def linked(
    netlists: Sequence[Netlist],
    levels: Sequence[Level],
    number: Mapping[str, int],
    parameters: Parameters,
    folder: Path,
) -> Netlist:
    """The netlists of ``levels`` as one: the sums of their figures, and one Verilog file."""
    top = netlists[-1]
    text = "".join(netlist.verilog.read_text() for netlist in netlists)
    wrappers = "".join(_wrapper(level, parameters) for level in levels[:-1])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{top.module}-linked.v"
    path.write_text(text + wrappers)
    slowest = max(netlists, key=lambda netlist: netlist.abc_ps)

    def total(what: str) -> Any:
        return sum(
            number[level.row] * getattr(netlist, what)
            for level, netlist in zip(levels, netlists, strict=True)
        )

    return replace(
        top,
        verilog=path,
        area_um2=total("area_um2"),
        flip_flops=total("flip_flops"),
        clock_gates=total("clock_gates"),
        cells=total("cells"),
        sram_bits=total("sram_bits"),
        liberty=tuple(dict.fromkeys(file for each in netlists for file in each.liberty)),
        abc_ps=slowest.abc_ps,
        abc_start=slowest.abc_start,
        abc_end=slowest.abc_end,
    )
