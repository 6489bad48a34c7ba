"""The small library that is shipped: ``python -m planezip.synth.make_library`` writes it.

data/planezip45.lib is a 45 nm class library by rule, not by layout: areas are columns of gate
pitch, delays are logical efforts. Beside each constant stands its source, or that it is our own
estimate and how it was chosen; docs/synth.md says how far the result is from Nangate45. It has
neither leakage nor internal power.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FILE", "liberty", "main"]

FILE = Path(__file__).parent / "data" / "planezip45.lib"

GATE_PITCH_UM = 0.19
"""FreePDK45, rules POLY.1 (width of poly, 50 nm) and POLY.2 (spacing over active, 140 nm):
https://www.eda.ncsu.edu/wiki/FreePDK45:PolyRules."""
HEIGHT_UM = 1.4
"""Our choice: with this pitch, the height of which Nangate45's areas are multiples (0.266 um2)."""
WIDTH_SHARE = 0.75
"""Our estimate of the share of the height that is both transistors: rails, the gap between the
wells and the ends take a quarter."""
FF_PER_UM = 1.0
"""Our estimate of the gate capacitance: the round figure."""
FO4_PS = 18.0
"""Our estimate: 0.36 ps per nm of gate length (POLY.1), a rule of thumb."""
MAX_FAN_OUT = 16  # inverters of the same drive
_LOADS = (0.1, 4, MAX_FAN_OUT)
_SLEWS = "0.001, 0.05, 0.5"  # ns; ABC takes three points or more

_INVERTER_FF = HEIGHT_UM * WIDTH_SHARE * FF_PER_UM
_TAU_PS = FO4_PS / 5  # d = tau (g h + p) with g = p = 1 for an inverter, h = 4

# Logical effort of each input and parasitic delay, by the widths of the transistors (NMOS 1,
# PMOS 2 for an inverter), counted by the method of Sutherland, Sproull, Harris, Logical Effort.
_GATES: Mapping[str, tuple[str, Mapping[str, float], float]] = {
    "INV": ("!A", {"A": 1}, 1),
    "NAND2": ("!(A & B)", {"A": 4 / 3, "B": 4 / 3}, 2),
    "NAND3": ("!(A & B & C)", {"A": 5 / 3, "B": 5 / 3, "C": 5 / 3}, 3),
    "NAND4": ("!(A & B & C & D)", {"A": 2, "B": 2, "C": 2, "D": 2}, 4),
    "NOR2": ("!(A | B)", {"A": 5 / 3, "B": 5 / 3}, 2),
    "NOR3": ("!(A | B | C)", {"A": 7 / 3, "B": 7 / 3, "C": 7 / 3}, 3),
    "NOR4": ("!(A | B | C | D)", {"A": 3, "B": 3, "C": 3, "D": 3}, 4),
    "AOI21": ("!((A & B) | C)", {"A": 2, "B": 2, "C": 5 / 3}, 7 / 3),
    "OAI21": ("!((A | B) & C)", {"A": 2, "B": 2, "C": 4 / 3}, 8 / 3),
    "AOI22": ("!((A & B) | (C & D))", {"A": 2, "B": 2, "C": 2, "D": 2}, 4),
    "OAI22": ("!((A | B) & (C | D))", {"A": 2, "B": 2, "C": 2, "D": 2}, 4),
    "AOI211": ("!((A & B) | C | D)", {"A": 8 / 3, "B": 8 / 3, "C": 7 / 3, "D": 7 / 3}, 10 / 3),
    "OAI211": ("!((A | B) & C & D)", {"A": 7 / 3, "B": 7 / 3, "C": 5 / 3, "D": 5 / 3}, 11 / 3),
}


@dataclass(frozen=True)
class _Cell:
    """A cell: drive in inverters, columns, input loads in inverters, delays in tau.

    ``intrinsic`` is the delay of an input without load: all stages and their parasitics.
    """

    name: str
    note: str
    drive: float
    columns: int
    function: str
    loads: Mapping[str, float]
    intrinsic: Mapping[str, float]
    inverting: bool


def _cells() -> list[_Cell]:
    cells = []
    for name, (function, efforts, parasitic) in _GATES.items():
        for drive in (1, 2, 4, 8) if name == "INV" else (1, 2, 4) if len(efforts) < 3 else (1, 2):
            note = f"{len(efforts)} pairs; g {_list(efforts.values())}; p {parasitic:.3g}"
            loads = {pin: g * drive for pin, g in efforts.items()}
            delays = dict.fromkeys(efforts, float(parasitic))
            columns = len(efforts) * drive + 1
            cells.append(
                _Cell(f"{name}_X{drive}", note, drive, columns, function, loads, delays, True)
            )
    for name, first in (
        ("BUF", "INV"),
        ("AND2", "NAND2"),
        ("AND3", "NAND3"),
        ("OR2", "NOR2"),
        ("OR3", "NOR3"),
    ):
        function, efforts, parasitic = _GATES[first]
        for drive in (1, 2, 4, 8) if name == "BUF" else (1, 2, 4):
            cells.append(_two_stages(name, first, drive, function[1:], efforts, parasitic))
    # XOR: NOR2 of half the drive into an AOI21 (or their duals).
    for name, first, second, function in (
        ("XOR2", "NOR2", "AOI21", "(A & !B) | (!A & B)"),
        ("XNOR2", "NAND2", "OAI21", "(A & B) | (!A & !B)"),
    ):
        _, one, p_one = _GATES[first]
        _, two, p_two = _GATES[second]
        for drive in (1, 2):
            load = drive * (one["A"] / 2 + two["A"])
            delay = p_one + 2 * two["C"] + p_two
            note = f"{first} of half the drive and {second}: 5 pairs"
            pins = {"A": load, "B": load}
            cells.append(
                _Cell(
                    f"{name}_X{drive}",
                    note,
                    drive,
                    5 * drive + 1,
                    function,
                    pins,
                    dict.fromkeys(pins, delay),
                    True,
                )
            )
    # MUX2: two tristate inverters (g 2, p 4) of half the drive, inverters of S and of the output.
    for drive in (1, 2):
        data = 4 + 2 + 1.0
        cells.append(
            _Cell(
                f"MUX2_X{drive}",
                "two tristate inverters of half the drive, two inverters: 6 pairs",
                drive,
                6 + drive,
                "(A & !S) | (B & S)",
                {"A": drive * 1.0, "B": drive * 1.0, "S": drive * 1.5},
                {"A": data, "B": data, "S": data + 1 + 2},
                False,
            )
        )
    return cells


def _two_stages(
    name: str, first: str, drive: int, function: str, efforts: Mapping[str, float], parasitic: float
) -> _Cell:
    """A gate of half the drive into an inverter, which loads it with twice its drive."""
    half = max(1, drive // 2)
    return _Cell(
        f"{name}_X{drive}",
        f"{first} of half the drive and an inverter",
        drive,
        len(efforts) * half + drive + 1,
        function,
        {pin: g * drive / 2 for pin, g in efforts.items()},
        dict.fromkeys(efforts, parasitic + 2 + 1.0),
        False,
    )


# Master-slave flip-flop with transmission gates, 24 transistors: clock inverters 2 pairs, master
# 5, slave 4, output 1; strips of diffusion 5: our own schematic.
# Clock to Q: two clock inverters (h 3), transmission gate and slave (p 2, h 2), inverter (h 2),
# output inverter: 16 tau. Set-up: tristate inverter (p 2, h 2) and inverter (h 2): 7 tau. The sum
# is 4.6 FO4.
_DFF_COLUMNS, _CLOCK_TO_Q, _SET_UP = 12 + 5, 16.0, 7.0
# Clock gate: latch 5 pairs, clock inverter 1, NAND2 2 and inverter 1; 4 strips.
_GATE_COLUMNS, _GATE_DELAY = 9 + 4, 2 + 2 + 1.0


def _list(numbers: Iterable[float]) -> str:
    return ", ".join(f"{n:.3g}" for n in numbers)


def _area(columns: float) -> str:
    return f"area : {columns * GATE_PITCH_UM * HEIGHT_UM:.3f};"


def _linear(intrinsic: float, factor: float = 1.0) -> str:
    """Values at loads of up to ``MAX_FAN_OUT`` inverters, for any slew of the input."""
    values = [factor * _TAU_PS * (intrinsic + load) / 1000 for load in _LOADS]
    row = f'"{", ".join(f"{value:.5f}" for value in values)}"'
    return f"values ({row}, {row}, {row});"


def _arcs(pin: str, intrinsic: float, drive: float, kind: str, last: float) -> str:
    loads = ", ".join(f"{load * drive * _INVERTER_FF:.3f}" for load in _LOADS)
    index = f'index_1 ("{_SLEWS}"); index_2 ("{loads}");'
    lines = [f'timing () {{ related_pin : "{pin}"; {kind}']
    for edge in ("rise", "fall"):
        delay, slew = _linear(intrinsic), _linear(last, 2.0)
        lines.append(f"cell_{edge} (by_load) {{ {index} {delay} }}")
        lines.append(f"{edge}_transition (by_load) {{ {index} {slew} }}")
    return "\n".join([*lines, "}"])


def _input(pin: str, load: float, more: str = "") -> str:
    return f"pin ({pin}) {{ direction : input; capacitance : {load * _INVERTER_FF:.4f}; {more} }}"


def _output(pin: str, drive: float, function: str, arcs: Sequence[str]) -> str:
    most = f"max_capacitance : {MAX_FAN_OUT * drive * _INVERTER_FF:.3f};"
    return "\n".join([f"pin ({pin}) {{ direction : output; {function} {most}", *arcs, "}"])


def _cell(cell: _Cell) -> str:
    sense = "negative_unate" if cell.inverting else "positive_unate"
    if cell.name[0] in "XM":
        sense = "non_unate"
    last = 1.0 if not cell.inverting else min(cell.intrinsic.values())
    arcs = [
        _arcs(pin, delay, cell.drive, f"timing_sense : {sense};", last)
        for pin, delay in cell.intrinsic.items()
    ]
    pins = [_input(pin, load) for pin, load in cell.loads.items()]
    out = _output("Y", cell.drive, f'function : "{cell.function}";', arcs)
    body = "\n".join([_area(cell.columns), *pins, out])
    return f"/* {cell.note}; {cell.columns} columns */\ncell ({cell.name}) {{\n{body}\n}}\n"


def _set_up(clock: str) -> str:
    value = f'values ("{_SET_UP * _TAU_PS / 1000:.5f}");'
    hold = 'values ("0.0");'
    return "\n".join(
        f'timing () {{ related_pin : "{clock}"; timing_type : {kind}_rising;'
        f" rise_constraint (scalar) {{ {v} }} fall_constraint (scalar) {{ {v} }} }}"
        for kind, v in (("setup", value), ("hold", hold))
    )


def _flip_flop(drive: int) -> str:
    edge = "timing_type : rising_edge; timing_sense : non_unate;"
    columns = _DFF_COLUMNS + drive - 1
    pins = [
        _input("D", 1.0, "\n" + _set_up("CK")),
        _input("CK", 1.0, "clock : true;"),
        _output("Q", drive, 'function : "IQ";', [_arcs("CK", _CLOCK_TO_Q, drive, edge, 1.0)]),
    ]
    body = "\n".join(
        [_area(columns), 'ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; }', *pins]
    )
    return f"/* 12 pairs in 5 strips, output X{drive} */\ncell (DFF_X{drive}) {{\n{body}\n}}\n"


def _clock_gate(drive: int) -> str:
    kind = "timing_sense : positive_unate;"
    columns = _GATE_COLUMNS + drive - 1
    gate = "clock_gate_enable_pin : true;\n" + _set_up("CK")
    pins = [
        _input("CK", 4 / 3 / 2 * drive + 1, "clock : true; clock_gate_clock_pin : true;"),
        _input("E", 1.0, gate),
        _output(
            "GCK",
            drive,
            'clock_gate_out_pin : true; state_function : "CK & IQ";',
            [_arcs("CK", _GATE_DELAY, drive, kind, 1.0)],
        ),
    ]
    table = (
        'statetable ("CK E", "IQ") { table : "L L : - : L , L H : - : H , H - : - : N"; }\n'
        "pin (IQ) { direction : internal; internal_node : IQ; }"
    )
    body = "\n".join(
        [_area(columns), "clock_gating_integrated_cell : latch_posedge;", table, *pins]
    )
    return f"/* 9 pairs in 4 strips, output X{drive} */\ncell (CLKGATE_X{drive}) {{\n{body}\n}}\n"


def liberty() -> str:
    """The library as Liberty text."""
    assert __doc__ is not None
    thresholds = "\n".join(
        f"{name}_{edge} : {value};"
        for edge in ("rise", "fall")
        for name, value in (
            ("input_threshold_pct", 50),
            ("output_threshold_pct", 50),
            ("slew_lower_threshold_pct", 20),
            ("slew_upper_threshold_pct", 80),
        )
    )
    head = f"""/* Written by planezip.synth.make_library, which has the sources.
   Area: columns x {GATE_PITCH_UM} um x {HEIGHT_UM} um. An inverter X1 loads {_INVERTER_FF:.2f} fF.
   Delay: {_TAU_PS} ps x (intrinsic + load / (drive x {_INVERTER_FF:.2f} fF)), the same for any
   slew of the input. SPDX-License-Identifier: Apache-2.0 */
library (planezip45_typical) {{
delay_model : table_lookup;
time_unit : "1ns";
voltage_unit : "1V";
current_unit : "1mA";
pulling_resistance_unit : "1kohm";
leakage_power_unit : "1nW";
capacitive_load_unit (1, ff);
nom_process : 1.0;
nom_voltage : 1.1;
nom_temperature : 25;
{thresholds}
lu_table_template (by_load) {{
variable_1 : input_net_transition;
variable_2 : total_output_net_capacitance;
index_1 ("{_SLEWS}");
index_2 ("{", ".join(map(str, _LOADS))}");
}}
"""
    cells = [_cell(cell) for cell in _cells()]
    cells += [_flip_flop(drive) for drive in (1, 2)]
    cells += [_clock_gate(drive) for drive in (1, 2, 4)]
    return head + "\n" + "\n".join(cells) + "}\n"


def main() -> int:
    """Write the file."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(liberty())
    print(FILE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
