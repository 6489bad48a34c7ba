"""Synthesis flow: Liberty files, a mapped netlist, its area and its longest paths.

Yosys (the PyPI package pyosys) maps with ABC; OpenSTA times where ``sta`` is installed
(Debian: opensta), ABC's own timer otherwise. No wires, no clock tree, an ideal clock.
"""

from __future__ import annotations

import gzip
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

__all__ = ["Constraint", "EndPoint", "Library", "Netlist", "SynthError", "read_libraries"]
__all__ += ["end_points", "opensta", "synthesise"]

_NAND2 = ("NAND2_X1", "NAND2x1_ASAP7_75t_R", "sky130_fd_sc_hd__nand2_1")
_BUFFERS = ("BUF_X2", "BUFx2_ASAP7_75t_R", "sky130_fd_sc_hd__buf_2")  # drive the inputs
_DONT_USE = ("HB*", "*DC*")  # hold buffers, decoupling
_TIME_UNIT_PS = {"1ps": 1.0, "10ps": 10.0, "100ps": 100.0, "1ns": 1000.0}
_HEADER = 100_000  # characters of a Liberty file in which its units stand
_YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass("tee -q " + command, design)
"""  # in a process of its own: an error of Yosys ends it
_ABC = (
    "strash;ifraig;scorr;dc2;dch -f;map -B 0.9 -D {d};topo;buffer -c;topo;stime -p;"
    "upsize -D {d};dnsize -D {d};upsize -D {d};dnsize -D {d};stime -p"
)


class SynthError(RuntimeError):
    """A tool or a library is missing or of no use; the message names the remedy."""


@dataclass(frozen=True)
class Library:
    """A standard-cell library: Liberty files of one family and corner.

    Attributes
    ----------
    name, corner : str
        ``corner`` is process, voltage and temperature, as the files say.
    files : tuple of Path
        Uncompressed.
    flip_flops : Path
        The file with the flip-flops.
    nand2_um2 : float
        Area of the two-input NAND gate that counts as one gate.
    unit_ps : float
        Unit of time of the files, in ps.
    buffer : str or None
        Cell that drives the inputs.
    """

    name: str
    corner: str
    files: tuple[Path, ...]
    flip_flops: Path
    nand2_um2: float
    unit_ps: float
    buffer: str | None


@dataclass(frozen=True)
class Constraint:
    """Clock and ports, in ps; a port without a delay of its own has ``port_share`` periods.

    ABC is told ``logic_share`` of the period: the rest is the flip-flop and the uncertainty.
    """

    period_ps: float
    uncertainty_ps: float = 50.0
    port_share: float = 0.3
    logic_share: float = 0.8
    input_ps: Mapping[str, float] = field(default_factory=dict)
    output_ps: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Netlist:
    """A mapped module: Verilog, cell area in um2, number of flip-flops, ABC's delay in ps."""

    module: str
    verilog: Path
    area_um2: float
    flip_flops: int
    abc_ps: float


@dataclass(frozen=True)
class EndPoint:
    """Longest path to a register bit or port: its name and the path with set-up, in ps."""

    name: str
    path_ps: float


def read_libraries(paths: Iterable[Path], folder: Path) -> list[Library]:
    """Libraries of Liberty files (``.lib`` or ``.lib.gz``), uncompressed into ``folder``.

    Files whose library names start with the same word and that agree in voltage,
    temperature and unit are one library (ASAP7 comes as five files).

    Raises
    ------
    SynthError
        For a file that is missing, is no Liberty file, or has an unknown unit of time,
        and for a library without flip-flops or NAND gate.
    """
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[str, str, float], list[tuple[Path, str]]] = {}
    for path in paths:
        text = _read(path)
        head = text[:_HEADER]
        name = _find(r"\blibrary\s*\(\s*\"?([\w.-]+)", head)
        if name is None:
            raise SynthError(f"{path} is not a Liberty file: give a .lib or .lib.gz file")
        unit = (_find(r"\btime_unit\s*:\s*\"?\s*(\w+)", head) or "").lower()
        if unit not in _TIME_UNIT_PS:
            raise SynthError(f"time_unit of {path} must be 1ps to 1ns, not {unit!r}")
        volt = float(_find(r"\bnom_voltage\s*:\s*([\d.]+)", head) or 0)
        degrees = float(_find(r"\bnom_temperature\s*:\s*(-?[\d.]+)", head) or 0)
        process = _find(r"(?i)(?:_|\b)(tt|ss|ff|typical)(?:_|\b)", head) or "process not named"
        target = folder / path.name.removesuffix(".gz")
        target.write_text(text)
        key = (name.split("_")[0], f"{process} {volt:g} V {degrees:g} C", _TIME_UNIT_PS[unit])
        groups.setdefault(key, []).append((target, text))
    return [_library(*key, files) for key, files in groups.items()]


def _library(name: str, corner: str, unit_ps: float, files: list[tuple[Path, str]]) -> Library:
    flip_flops = [path for path, text in files if re.search(r"\bff\s*\(", text)]
    if not flip_flops:
        raise SynthError(f"{name} has no flip-flops: give all Liberty files of the library")
    areas: dict[str, float] = {}
    for _, text in files:
        for cell in re.finditer(r"\bcell\s*\(\s*\"?(\w+)\"?\s*\)\s*\{", text):
            area = _find(r"\barea\s*:\s*([\d.eE+-]+)", text[cell.end() : cell.end() + _HEADER])
            areas[cell.group(1)] = float(area or 0)
    nands = sorted((areas[cell], cell) for cell in areas if "nand2" in cell.lower())
    nand = next((areas[cell] for cell in _NAND2 if cell in areas), nands[0][0] if nands else 0.0)
    if nand <= 0:
        raise SynthError(f"{name} has no two-input NAND with an area: kGE needs one (NAND2...)")
    buffer = next((cell for cell in _BUFFERS if cell in areas), None)
    paths = tuple(path for path, _ in files)
    return Library(name, corner, paths, flip_flops[0], nand, unit_ps, buffer)


def _read(path: Path) -> str:
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", errors="replace") as file:
                return file.read()
        return path.read_text(errors="replace")
    except (OSError, EOFError) as error:
        raise SynthError(f"cannot read {path}: {error}") from None


def _find(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found.group(1) if found else None


def synthesise(
    component: Any, module: str, library: Library, constraint: Constraint, folder: Path
) -> Netlist:
    """Map an Amaranth component to ``library``; files go to ``folder``, one per module.

    Raises
    ------
    SynthError
        If pyosys is missing or Yosys or ABC fails.
    """
    if importlib.util.find_spec("pyosys") is None:
        raise SynthError("pyosys is not installed: pip install pyosys")
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"{module}-{library.name}"
    source, script, ports, log = (base.with_suffix(s) for s in (".il", ".abc", ".constr", ".log"))
    source.write_text(rtlil.convert(component, name=module, emit_src=False))
    script.write_text(_ABC.format(d=round(constraint.logic_share * constraint.period_ps)) + "\n")
    driver = f"set_driving_cell {library.buffer}\n" if library.buffer else ""
    ports.write_text(f"{driver}set_load 1.0 [all_outputs]\n")
    liberty = " ".join(f"-liberty {path}" for path in library.files)
    dont_use = " ".join(f"-dont_use {cell}" for cell in _DONT_USE)
    passes = [
        f"read_rtlil {source}",
        f"hierarchy -top {module}",
        "proc",
        "flatten",
        "opt -full",
        "alumacc",
        "share",
        "opt",
        "techmap",
        "opt -fast",
        "opt_clean",
        f"dfflibmap -liberty {library.flip_flops}",
        "opt",
        f"tee -q -o {log} abc {dont_use} {liberty} -constr {ports} -script {script}",
        "opt_clean",
        "setundef -zero",
        "splitnets -ports -format _",
        "opt_clean -purge",
        f"tee -q -o {base}.stat stat {liberty}",
        f"write_verilog -noattr -noexpr {base}.v",
    ]
    done = subprocess.run(
        [sys.executable, "-c", _YOSYS, *passes], check=False, capture_output=True, text=True
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() + done.stdout.splitlines() if line]
        raise SynthError(f"yosys failed for {module}: {errors[-1] if errors else 'no message'}")
    stat, delays = Path(f"{base}.stat").read_text(), log.read_text()
    area = _find(r"Chip area for .*?:\s*([\d.eE+]+)", stat)
    found = re.findall(r"Delay\s*=\s*([\d.]+)\s*ps", delays)
    if area is None:
        raise SynthError(f"yosys found no area of {module}: see {base}.stat")
    flops = re.findall(r"^\s+(\d+)\s+[\d.eE+]+\s+\S*(?:dff|DFF|dfx|dfr)\S*", stat, re.M)
    delay_ps = float(found[-1]) if found else 0.0
    return Netlist(module, Path(f"{base}.v"), float(area), sum(map(int, flops)), delay_ps)


def opensta() -> str | None:
    """The OpenSTA command, or None where it is not installed."""
    return shutil.which("sta")


def end_points(netlist: Netlist, library: Library, constraint: Constraint) -> list[EndPoint]:
    """End points with their longest paths, worst first, by OpenSTA.

    Raises
    ------
    SynthError
        If OpenSTA is missing or fails.
    """
    command = opensta()
    if command is None:
        raise SynthError("OpenSTA is not installed: apt install opensta")
    unit = library.unit_ps
    lines = [f"read_liberty {path}" for path in library.files]
    lines += [
        f"read_verilog {netlist.verilog}",
        f"link_design {netlist.module}",
        f"create_clock -name clk -period {constraint.period_ps / unit} [get_ports clk]",
        f"set_clock_uncertainty {constraint.uncertainty_ps / unit} [get_clocks clk]",
    ]
    share = constraint.port_share * constraint.period_ps / unit
    for direction in ("input", "output"):
        lines.append(f"set_{direction}_delay {share} -clock clk [all_{direction}s]")
    for direction, ports in (("input", constraint.input_ps), ("output", constraint.output_ps)):
        for port, delay_ps in ports.items():
            pins = f"[get_ports {{{port}*}}]"
            lines.append(f"set_{direction}_delay {delay_ps / unit} -clock clk {pins}")
    lines.append(
        "report_checks -path_delay max -group_count 100000 -unique_paths_to_endpoint"
        " -format end -digits 5"
    )
    script = netlist.verilog.with_suffix(".tcl")
    script.write_text("\n".join([*lines, "exit", ""]))
    done = subprocess.run(
        [command, "-no_splash", "-exit", str(script)], check=False, capture_output=True, text=True
    )
    netlist.verilog.with_suffix(".rpt").write_text(done.stdout + done.stderr)
    limit = constraint.period_ps - constraint.uncertainty_ps
    driven = dict(
        re.findall(r"\b(_\d+_) \([^;]*?\.QN?\(\\?([^;]*?) ?\)", netlist.verilog.read_text())
    )
    points = [
        EndPoint(driven.get(name.split("/")[0], name), limit - float(slack) * unit)
        for name, slack in re.findall(
            r"^(\S+)(?: \([^)]*\))? +-?[\d.]+ +-?[\d.]+ +(-?[\d.]+) \(", done.stdout, re.M
        )
    ]
    if done.returncode or not points or "Error" in done.stdout + done.stderr:
        raise SynthError(f"OpenSTA gave no paths: see {netlist.verilog.with_suffix('.rpt')}")
    return sorted(points, key=lambda point: -point.path_ps)
