"""Standard-cell libraries: groups of Liberty files of one family and corner."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Library", "SynthError", "read_libraries"]

_NAND2 = ("NAND2_X1", "NAND2x1_ASAP7_75t_R", "sky130_fd_sc_hd__nand2_1")
# They drive the inputs, registers among them: as strong as a flip-flop.
_BUFFERS = ("BUF_X1", "BUFx2_ASAP7_75t_R", "sky130_fd_sc_hd__buf_1")
_TIME_UNIT_PS = {"1ps": 1.0, "10ps": 10.0, "100ps": 100.0, "1ns": 1000.0}
_CONDITIONS = re.compile(
    r"(?:^|(?<=;))\s*(?:(?:time|voltage|current|pulling_resistance|leakage_power)_unit|nom_voltage"
    r"|(?:input|output)_threshold_pct_\w+|slew_(?:lower|upper)_threshold_pct_\w+"
    r"|slew_derate_from_library)\s*:[^;]*;|(?:^|(?<=;))\s*capacitive_load_unit\b[^;]*;",
    re.M,
)
# What counts for nets that nobody has given a wire load: here they have none.
_WIRE_LOAD = re.compile(r"\bdefault_wire_load(?:_\w+)?\s*:[^;\n]*;?")
_PROCESS = r"(?i)(?:_|\b)(tt|ss|ff|typical)(?:_|\b)"
_HEADER = 100_000  # characters of a Liberty file in which its units stand


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
    flip_flop_cells : frozenset of str
    nand2_um2 : float
        Area of the two-input NAND gate that counts as one gate.
    unit_ps, unit_ff : float
        Units of time and capacitance of the files, in ps and fF.
    conditions : str
        Units, thresholds and voltage, as the first file has them: for Liberty files beside it.
    buffer : str or None
        Cell that drives the inputs.
    clock_gate_cells : frozenset of str
    power : bool
        The cells have internal power.
    digest : str
        SHA-256 of the files' text as it is used (without a default wire load).
    """

    name: str
    corner: str
    files: tuple[Path, ...]
    flip_flops: Path
    flip_flop_cells: frozenset[str]
    nand2_um2: float
    unit_ps: float
    unit_ff: float
    conditions: str
    buffer: str | None
    clock_gate_cells: frozenset[str]
    power: bool
    digest: str


def read_libraries(paths: Iterable[Path], folder: Path) -> list[Library]:
    """Libraries of Liberty files (``.lib`` or ``.lib.gz``), uncompressed into ``folder``.

    Their default wire load is left out, which some have: ABC and OpenSTA would heed it.

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
        text = _WIRE_LOAD.sub("", _read(path))
        head = text[:_HEADER]
        name = _find(r"\blibrary\s*\(\s*\"?([\w.-]+)", head)
        if name is None:
            raise SynthError(f"{path} is not a Liberty file: give a .lib or .lib.gz file")
        unit = (_find(r"\btime_unit\s*:\s*\"?\s*(\w+)", head) or "").lower()
        if unit not in _TIME_UNIT_PS:
            raise SynthError(f"time_unit of {path} must be 1ps to 1ns, not {unit!r}")
        volt = _number("nom_voltage", head, path)
        degrees = _number("nom_temperature", head, path)
        process = _find(_PROCESS, name) or _find(_PROCESS, head) or "process not named"
        target = folder / hashlib.sha256(text.encode()).hexdigest()[:12]
        target.mkdir(exist_ok=True)  # another library may have a file of this name
        target /= path.name.removesuffix(".gz")
        target.write_text(text)
        family = name if name.startswith("sky130") else name.split("_")[0]
        key = (
            family.split("__")[0],
            f"{process} {volt:g} V {degrees:g} C",
            _TIME_UNIT_PS[unit],
        )
        groups.setdefault(key, []).append((target, text))
    return [_library(*key, files) for key, files in groups.items()]


def _library(name: str, corner: str, unit_ps: float, files: list[tuple[Path, str]]) -> Library:
    flip_flops = [path for path, text in files if re.search(r"\bff\s*\(", text)]
    if not flip_flops:
        raise SynthError(f"{name} has no flip-flops: give all Liberty files of the library")
    areas: dict[str, float] = {}
    sequential: set[str] = set()
    gates: set[str] = set()
    for path, text in files:
        cells = list(re.finditer(r"\bcell\s*\(\s*\"?(\w+)\"?\s*\)\s*\{", text))
        ends = [cell.start() for cell in cells[1:]] + [len(text)]
        for cell, end in zip(cells, ends, strict=True):
            body = text[cell.end() : end]
            areas[cell.group(1)] = _number("area", body, path)
            if re.search(r"\bff\s*\(", body):
                sequential.add(cell.group(1))
            if "clock_gating_integrated_cell" in body:
                gates.add(cell.group(1))
    nands = sorted((areas[cell], cell) for cell in areas if "nand2" in cell.lower())
    nand = next((areas[cell] for cell in _NAND2 if cell in areas), nands[0][0] if nands else 0.0)
    if nand <= 0:
        raise SynthError(f"{name} has no two-input NAND with an area: kGE needs one (NAND2...)")
    head = files[0][1][:_HEADER]
    load = re.search(r"capacitive_load_unit\s*\(\s*\"?([\d.]+)\"?\s*,\s*\"?(\w+)", head)
    unit_ff = float(load[1]) * {"ff": 1.0, "pf": 1000.0}.get(load[2].lower(), 1.0) if load else 1.0
    return Library(
        name,
        corner,
        tuple(path for path, _ in files),
        flip_flops[0],
        frozenset(sequential),
        nand,
        unit_ps,
        unit_ff,
        "\n".join(match[0] for match in _CONDITIONS.finditer(head)),
        next((cell for cell in _BUFFERS if cell in areas), None),
        frozenset(gates),
        any("internal_power" in text for _, text in files),
        hashlib.sha256("".join(text for _, text in files).encode()).hexdigest(),
    )


def _read(path: Path) -> str:
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", errors="replace") as file:
                return file.read()
        return path.read_text(errors="replace")
    except (OSError, EOFError) as error:
        raise SynthError(f"cannot read {path}: {error}") from None


def _number(name: str, text: str, path: Path) -> float:
    """The first number called so; 0 if there is none."""
    found = _find(rf"\b{name}\s*:\s*\"?\s*([^\s;\"]+)", text) or "0"
    try:
        return float(found)
    except ValueError:
        raise SynthError(f"{name} of {path} must be a number, not {found!r}") from None


def _find(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found.group(1) if found else None
