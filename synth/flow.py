"""Mapping to a standard-cell library: Yosys (the PyPI package pyosys) with ABC.

No wires, no clock tree, no placement: an ideal clock.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from planezip.synth.library import Library, SynthError

__all__ = ["SCRIPTS", "Constraint", "Netlist", "map_rtlil", "rtlil_text"]

SRAM_BITS = 4096  # smaller memories are flip-flops
CLOCK_GATE_BITS = 4  # flip-flops behind one enable, at least, for a gated clock
_DONT_USE = ("HB*", "*DC*")  # hold buffers, decoupling
# ASAP7's only ones with Q are of four times the drive; those with QN and an inverter are smaller.
_LARGE_FLIP_FLOPS = ("DFFHQx4*", "DFFLQx4*")
_SMALLER = (
    "balance -l;resub -K 6 -l;rewrite -l;resub -K 6 -N 2 -l;refactor -l;resub -K 8 -l;balance -l;"
    "resub -K 8 -N 2 -l;rewrite -l;resub -K 10 -l;rewrite -z -l;resub -K 10 -N 2 -l;balance -l;"
    "resub -K 12 -l;refactor -z -l;resub -K 12 -N 2 -l;rewrite -z -l;balance -l;"
)
_SIZES = "buffer -c;topo;stime -p;upsize -D {d};dnsize -D {d};upsize -D {d};dnsize -D {d};stime -p"
SCRIPTS: Mapping[str, str] = {
    "area": f"strash;ifraig;scorr;dc2;{_SMALLER}{_SMALLER}&get -n;&dch -f;&nf;&put;{_SIZES}",
    "speed": f"strash;ifraig;scorr;dch -f;map -B 0.9 -D {{d}};topo;{_SIZES}",
}
"""ABC's scripts: the smaller one, and one that gives some percent of area for delay. That one has
no ``dc2``, which turns the carry networks of adders into ripples."""


@dataclass(frozen=True)
class Constraint:
    """Clock and ports, in ps; a port without a delay of its own has ``port_share`` periods.

    ABC is told ``logic_share`` of the period: the rest is the flip-flop and the uncertainty.
    """

    period_ps: float
    uncertainty_ps: float = 50.0
    port_share: float = 0.3
    logic_share: float = 0.8
    sram_out_ps: float = 250.0
    sram_set_up_ps: float = 50.0
    input_ps: Mapping[str, float] = field(default_factory=dict)
    output_ps: Mapping[str, float] = field(default_factory=dict)

    @property
    def limit_ps(self) -> float:
        """What a path may take."""
        return self.period_ps - self.uncertainty_ps

    def possible_ps(self, path_ps: float) -> float:
        """The period, or a longer one that the path needs."""
        return max(self.period_ps, path_ps + self.uncertainty_ps)


@dataclass(frozen=True)
class Netlist:
    """A mapped module.

    Attributes
    ----------
    module : str
    verilog : Path
    area_um2 : float
        Of the standard cells; SRAM macros have none.
    flip_flops, clock_gates, cells : int
    sram_bits : int
    liberty : tuple of Path
        The library's files and the one of the SRAM macros.
    abc_ps, abc_start, abc_end : float, str, str
        ABC's own path, without flip-flops and port delays.
    """

    module: str
    verilog: Path
    area_um2: float
    flip_flops: int
    clock_gates: int
    cells: int
    sram_bits: int
    liberty: tuple[Path, ...]
    abc_ps: float
    abc_start: str
    abc_end: str


def rtlil_text(component: Any, module: str) -> str:
    """RTLIL of an Amaranth component as the top module ``module``."""
    return str(rtlil.convert(component, name=module, emit_src=False))


def map_rtlil(
    text: str,
    module: str,
    library: Library,
    constraint: Constraint,
    folder: Path,
    mapping: str = "area",
    strong_flip_flops: bool = False,
    boxes: str = "",
) -> Netlist:
    """Map RTLIL ``text`` with the top module ``module`` to ``library``; files go to ``folder``.

    ``mapping`` is one of SCRIPTS. With ``strong_flip_flops`` those of four times the drive are
    used where they fit better. ``boxes`` is Verilog of modules without contents, whose instances
    stay as they are.

    Raises
    ------
    SynthError
        If pyosys is missing or Yosys or ABC fails.
    """
    if importlib.util.find_spec("pyosys") is None:
        raise SynthError("pyosys is not installed: pip install pyosys")
    folder.mkdir(parents=True, exist_ok=True)
    base = f"{module}-{library.name}"
    files = {
        key: folder / f"{base}{suffix}"
        for key, suffix in (
            ("source", ".il"),
            ("script", ".abc"),
            ("ports", ".constr"),
            ("log", ".log"),
            ("stat", ".stat.json"),
            ("verilog", ".v"),
            ("macros", ".sram.json"),
            ("sram_liberty", ".sram.lib"),
            ("boxes", ".boxes.v"),
        )
    }
    files["source"].write_text(text)
    files["boxes"].write_text(boxes)
    files["script"].write_text(
        SCRIPTS[mapping].format(d=round(constraint.logic_share * constraint.period_ps)) + "\n"
    )
    driver = f"set_driving_cell {library.buffer}\n" if library.buffer else ""
    files["ports"].write_text(f"{driver}set_load 1.0 [all_outputs]\n")
    job = {key: str(path) for key, path in files.items()} | {
        "module": module,
        "liberty": [str(path) for path in library.files],
        "flip_flops": str(library.flip_flops),
        "dont_use": _DONT_USE,
        "large_flip_flops": () if strong_flip_flops else _LARGE_FLIP_FLOPS,
        "clock_gate_bits": CLOCK_GATE_BITS if library.clock_gate_cells else 0,
        "conditions": library.conditions,
        "sram_bits": SRAM_BITS,
        "sram_out": constraint.sram_out_ps / library.unit_ps,
        "sram_set_up": constraint.sram_set_up_ps / library.unit_ps,
        "sram_slew": 20.0 / library.unit_ps,
        "sram_load": 2.0 / library.unit_ff,
    }
    path = folder / f"{base}.job.json"
    path.write_text(json.dumps(job, indent=1))
    command = [sys.executable, "-m", "planezip.synth.yosys", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() + done.stdout.splitlines() if line]
        raise SynthError(f"yosys failed for {module}: {errors[-1] if errors else 'no message'}")
    stat = json.loads(files["stat"].read_text()[files["stat"].read_text().index("{") :])["design"]
    macros = json.loads(files["macros"].read_text())
    count = {name: _number(kind) for name, kind in stat["num_cells_by_type"].items()}
    log = files["log"].read_text()
    delays = re.findall(r"Delay\s*=\s*([\d.]+)\s*ps", log)
    ends = re.findall(r"Start-point = \S+ \((\S+)\)\.\s+End-point = \S+ \((\S+)\)", log)
    start, end = ends[-1] if ends else ("", "")
    return Netlist(
        module,
        files["verilog"],
        float(stat["area"]),
        sum(n for cell, n in count.items() if cell in library.flip_flop_cells),
        sum(n for cell, n in count.items() if cell in library.clock_gate_cells),
        sum(n for cell, n in count.items() if not cell.startswith(("sram_", "planezip_"))),
        sum(macro["bits"] for macro in macros),
        (*library.files, files["sram_liberty"]) if macros else library.files,
        float(delays[-1]) if delays else 0.0,
        start.lstrip("\\"),
        end.lstrip("\\"),
    )


def _number(kind: Any) -> int:
    return int(kind["count"] if isinstance(kind, dict) else kind)
