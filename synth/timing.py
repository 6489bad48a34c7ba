"""Static timing by OpenSTA (Debian: opensta): paths, with and without wires, and power."""

from __future__ import annotations

import functools
import math
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from planezip.synth.flow import Constraint, Netlist
from planezip.synth.library import Library, SynthError

__all__ = ["EndPoint", "Timing", "Wire", "end_points", "opensta", "opensta_version"]
__all__ += ["power_script", "time_netlist"]

_END = re.compile(r"^(\S+)(?: \([^)]*\))? +-?[\d.]+ +-?[\d.]+ +(-?[\d.]+) \(", re.M)


@dataclass(frozen=True)
class EndPoint:
    """Longest path to a register bit or port: its name and the path with set-up, in ps."""

    name: str
    path_ps: float


@dataclass(frozen=True)
class Wire:
    """Wires by fan-out: a net with f loads is (3 f - 1) * pitch long.

    That is what the wire-load table "5K_hvratio_1_1" of Nangate45 says, within 15%, if
    the pitch is the square root of a NAND gate's area. Placement is not done.
    """

    ff_per_um: float
    ohm_per_um: float

    def liberty(self, library: Library) -> str:
        """A Liberty library with the wire-load table ``fan_out`` in the units of ``library``."""
        pitch = math.sqrt(library.nand2_um2)
        points = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
        lengths = " ".join(f"fanout_length ({f}, {(3 * f - 1) * pitch:.4f});" for f in points)
        return (
            "library (planezip_wires) {\ndelay_model : table_lookup;\n"
            f"{library.conditions}\n"
            f"wire_load (fan_out) {{\ncapacitance : {self.ff_per_um / library.unit_ff:g};\n"
            f"resistance : {self.ohm_per_um / 1000:g};\nslope : {3 * pitch:.4f};\n"
            f"{lengths}\n}}\n}}\n"
        )


@dataclass(frozen=True)
class Timing:
    """Longest path: ps with set-up and port delays, start, end; and with wires.

    ``watts``, without wires at the clock that the path allows, and ``annotated``, flip-flops whose
    activity was known, are None unless activities were given.
    """

    path_ps: float
    start: str
    end: str
    wired_ps: float
    watts: float | None
    annotated: int | None


def opensta() -> str | None:
    """The OpenSTA command, or None where it is not installed."""
    return shutil.which("sta")


@functools.cache
def opensta_version() -> str:
    """Version of OpenSTA; empty where it is not installed."""
    command = opensta()
    if command is None:
        return ""
    done = subprocess.run([command, "-version"], check=False, capture_output=True, text=True)
    return done.stdout.strip()


def _setup(netlist: Netlist, library: Library, constraint: Constraint) -> list[str]:
    unit = library.unit_ps
    lines = [f"read_liberty {path}" for path in netlist.liberty]
    top = netlist.verilog.read_text().partition(f"module {netlist.module}(")[2]
    clock = re.search(r"^  input (a?clk) ?;", top.partition("endmodule")[0], re.M)
    port = f" [get_ports {clock[1]}]" if clock else ""
    lines += [
        f"read_verilog {netlist.verilog}",
        f"link_design {netlist.module}",
        f"create_clock -name clk -period {constraint.period_ps / unit}{port}",
        f"set_clock_uncertainty {constraint.uncertainty_ps / unit} [get_clocks clk]",
    ]
    share = constraint.port_share * constraint.period_ps / unit
    for direction in ("input", "output"):
        lines.append(f"set_{direction}_delay {share} -clock clk [all_{direction}s]")
    for direction, ports in (("input", constraint.input_ps), ("output", constraint.output_ps)):
        for port, delay_ps in ports.items():
            pins = f"[get_ports {{{port}*}}]"
            lines.append(f"set_{direction}_delay {delay_ps / unit} -clock clk {pins}")
    return lines


def _run(netlist: Netlist, lines: list[str]) -> str:
    command = opensta()
    if command is None:
        raise SynthError("OpenSTA is not installed: apt install opensta")
    script = netlist.verilog.with_suffix(".tcl")
    script.write_text("\n".join([*lines, "exit", ""]))
    done = subprocess.run(
        [command, "-no_splash", "-exit", str(script)], check=False, capture_output=True, text=True
    )
    report = netlist.verilog.with_suffix(".rpt")
    report.write_text(done.stdout + done.stderr)
    if done.returncode or re.search(r"^Error", done.stdout + done.stderr, re.M):
        raise SynthError(f"OpenSTA failed: see {report}")
    return done.stdout


def end_points(netlist: Netlist, library: Library, constraint: Constraint) -> list[EndPoint]:
    """End points with their longest paths without wires, worst first, by OpenSTA.

    Raises
    ------
    SynthError
        If OpenSTA is missing or fails.
    """
    checks = (
        "report_checks -path_delay max -group_count 100000 -unique_paths_to_endpoint"
        " -format end -digits 5"
    )
    out = _run(netlist, [*_setup(netlist, library, constraint), checks])
    points = [
        EndPoint(_register(name), constraint.limit_ps - float(slack) * library.unit_ps)
        for name, slack in _END.findall(out)
    ]
    if not points:
        raise SynthError(f"OpenSTA gave no paths: see {netlist.verilog.with_suffix('.rpt')}")
    return sorted(points, key=lambda point: -point.path_ps)


def time_netlist(
    netlist: Netlist,
    library: Library,
    constraint: Constraint,
    wire: Wire,
    activities: Mapping[str, tuple[float, float]] | None = None,
) -> Timing:
    """The longest path, the longest with wires, and the power without.

    Parameters
    ----------
    activities : mapping or None
        Transitions per cycle and share of ones by register bit or port. None: no power.
    """
    check = "report_checks -path_delay max -format full -digits 5"
    known = [] if activities is None else power_script(netlist.verilog.read_text(), activities)
    lines = [*_setup(netlist, library, constraint), check, "puts {@@ power}"]
    lines += [*known, "report_power -digits 8"] if activities is not None else []
    wires = netlist.verilog.with_suffix(".wires.lib")
    wires.write_text(wire.liberty(library))
    lines += ["puts {@@ wires}", f"read_liberty {wires}", "set_wire_load_mode top"]
    lines += ["set_wire_load_model -name fan_out -library planezip_wires", check]
    out = _run(netlist, lines)
    plain, _, rest = out.partition("@@ power")
    power, _, wired = rest.partition("@@ wires")
    paths, names = [], []
    for text in (plain, wired):
        slack = re.search(r"(-?[\d.]+)\s+slack \(", text)
        if slack is None:
            raise SynthError(f"OpenSTA gave no path: see {netlist.verilog.with_suffix('.rpt')}")
        paths.append(constraint.limit_ps - float(slack[1]) * library.unit_ps)
        names.append([re.search(rf"^{k}: (\S+)", text, re.M) for k in ("Startpoint", "Endpoint")])
    start, end = (_register(name[1]) if name else "" for name in names[0])
    if activities is None:
        return Timing(paths[0], start, end, paths[1], None, None)
    total = re.search(r"^Total +(\S+) +(\S+) +(\S+) +\S+", power, re.M)
    if total is None:
        raise SynthError(f"OpenSTA gave no power: see {netlist.verilog.with_suffix('.rpt')}")
    internal, switching, leakage = map(float, total.groups())
    slower = constraint.period_ps / constraint.possible_ps(paths[0])
    annotated = sum("set_power_pin_activity" in line for line in known)
    watts = (internal + switching) * slower + leakage
    return Timing(paths[0], start, end, paths[1], watts, annotated)


def power_script(netlist: str, activities: Mapping[str, tuple[float, float]]) -> list[str]:
    """Commands that annotate activities of the flip-flops and input ports of a netlist.

    A flip-flop with an inverted output only (ASAP7) has the same transitions at QN.
    """
    lines = []
    for name, pins in re.findall(r"^  \w+ \\?(\S+)_reg +\((.*?)\);", netlist, re.M | re.S):
        if name in activities:
            rate, ones = activities[name]
            pin, share = ("Q", ones) if ".Q(" in pins else ("QN", 1 - ones)
            lines.append(_activity("pin", f"[get_pins {{{name}_reg/{pin}}}]", rate, share))
    for name in re.findall(r"^  input (\S+) ?;", netlist, re.M):
        if name in activities:
            lines.append(_activity("input_port", f"[get_ports {{{name}}}]", *activities[name]))
    return lines


def _activity(kind: str, objects: str, rate: float, ones: float) -> str:
    """What ``set_power_activity`` comes down to; that of 2.0.17 fails for pins."""
    share = min(max(ones, 0.0), 1.0)
    return f"sta::set_power_{kind}_activity {objects} {rate:.5f} {share:.4f}"


def _register(name: str) -> str:
    """Name of a register bit without the pin and the ending that the mapping gave it."""
    plain = re.sub(r"/[A-Z]+[A-Z0-9]*(\[\d+\])?$", "", name.replace("\\", ""))
    return plain.replace("/core/", "/").removesuffix("_reg")
