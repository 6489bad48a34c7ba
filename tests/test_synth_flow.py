"""Synthesis flow on a library of four cells, with a path computed by hand."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.synth import flow, parse_loop, timing
from planezip.synth.library import Library, SynthError, read_libraries

pytest.importorskip("pyosys", reason="pyosys is not installed: nothing can be synthesised")

# Delays in ns, whatever slew and load: what the hand-computed path adds up.
_DELAY = {"INV": 0.02, "BUF": 0.04, "NAND2_X1": 0.03, "DFF": 0.1}
_SET_UP = 0.05
_CELLS = Path(os.environ.get("PLANEZIP_SHARED") or Path("..") / "shared") / "cells"
NANGATE = sorted(_CELLS.glob("nangate45*.lib*"))


def _arc(related: str, delay: float, kind: str = "", tables: str = "cell") -> str:
    names = (
        ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
        if tables == "cell"
        else ("rise_constraint", "fall_constraint")
    )
    values = "".join(
        f'{name} (scalar) {{ values ("{0.01 if "transition" in name else delay}"); }}\n'
        for name in names
    )
    return f'timing () {{ related_pin : "{related}"; {kind}\n{values} }}\n'


def _gate(name: str, area: float, function: str, inputs: str) -> str:
    pins = "".join(f"pin ({i}) {{ direction : input; capacitance : 1.0; }}\n" for i in inputs)
    sense = f"timing_sense : {'positive' if name == 'BUF' else 'negative'}_unate;"
    arcs = "".join(_arc(i, _DELAY[name], sense) for i in inputs)
    out = (
        f'pin (Y) {{ direction : output; function : "{function}"; max_capacitance : 100;\n{arcs} }}'
    )
    return f"cell ({name}) {{ area : {area};\n{pins}{out} }}\n"


def _liberty(more: str = "", flip_flop: bool = True) -> str:
    edge = "timing_type : rising_edge;"
    dff = f"""cell (DFF) {{ area : 5.0;
ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; }}
pin (CK) {{ direction : input; clock : true; capacitance : 1.0; }}
pin (D) {{ direction : input; capacitance : 1.0;
{_arc("CK", _SET_UP, "timing_type : setup_rising;", "set-up")} }}
pin (Q) {{ direction : output; function : "IQ"; max_capacitance : 100;
{_arc("CK", _DELAY["DFF"], edge)} }} }}
"""
    return f"""library (tiny_typical) {{
delay_model : table_lookup; time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1mA";
pulling_resistance_unit : "1kohm"; capacitive_load_unit (1, ff);
input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
slew_lower_threshold_pct_rise : 20; slew_lower_threshold_pct_fall : 20;
slew_upper_threshold_pct_rise : 80; slew_upper_threshold_pct_fall : 80;
nom_process : 1; nom_voltage : 1.1; nom_temperature : 25;
{more}
{_gate("INV", 0.5, "!A", "A")}{_gate("BUF", 0.8, "A", "A")}
{_gate("NAND2_X1", 1.0, "!(A & B)", "AB")}
{dff if flip_flop else ""} }}
"""


class _Chain(wiring.Component):
    """NOT (NOT (a AND b) AND c) between registers, and an inverter behind them."""

    def __init__(self) -> None:
        super().__init__({"a": In(1), "b": In(1), "c": In(1), "y": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, c = (Signal(name=f"{k}_in", reset_less=True) for k in "abc")
        y = Signal(name="y_out", reset_less=True)
        m.d.sync += [a.eq(self.a), b.eq(self.b), c.eq(self.c), y.eq(~(~(a & b) & c))]
        m.d.comb += self.y.eq(~y)
        return m


def _library(folder: Path, text: str = "") -> Library:
    folder.mkdir(exist_ok=True)
    path = folder / "tiny.lib.gz"
    with gzip.open(path, "wt") as file:
        file.write(text or _liberty())
    (library,) = read_libraries([path], folder / "work")
    return library


def test_library(tmp_path: Path) -> None:
    library = _library(tmp_path)
    assert (library.name, library.corner) == ("tiny", "typical 1.1 V 25 C")
    assert (library.nand2_um2, library.unit_ps) == (1.0, 1000.0)
    assert library.flip_flops == library.files[0]
    assert library.files[0].name == "tiny.lib"


def test_libraries_with_files_of_one_name(tmp_path: Path) -> None:
    paths = [tmp_path / name / "x.lib" for name in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(_liberty().replace("(tiny_", f"(tiny{path.parent.name}_"))
    found = read_libraries(paths, tmp_path / "work")
    assert [library.files[0].read_text() for library in found] == [p.read_text() for p in paths]


def _chain(library: flow.Library, constraint: flow.Constraint, folder: Path) -> flow.Netlist:
    text = flow.rtlil_text(_Chain(), "chain")
    return flow.map_rtlil(text, "chain", library, constraint, folder)


def test_area_and_path_of_abc(tmp_path: Path) -> None:
    """Two NAND gates of 30 ps between flip-flops."""
    library = _library(tmp_path)
    netlist = _chain(library, flow.Constraint(1000.0), tmp_path / "work")
    assert netlist.flip_flops == 4
    assert netlist.area_um2 == pytest.approx(4 * 5.0 + 2 * 1.0 + 0.5)
    assert netlist.abc_ps == pytest.approx(60.0)
    assert netlist.abc_start in {"a_in", "b_in"}


needs_opensta = pytest.mark.skipif(
    timing.opensta() is None, reason="OpenSTA is not there (apt install opensta)"
)


@needs_opensta
def test_paths_of_opensta(tmp_path: Path) -> None:
    """Two NAND gates between flip-flops: 100 + 30 + 30 + 50 ps; ports with their share."""
    library = _library(tmp_path)
    constraint = flow.Constraint(1000.0)
    netlist = _chain(library, constraint, tmp_path / "work")
    points = {p.name: p.path_ps for p in timing.end_points(netlist, library, constraint)}
    assert points["y_out"] == pytest.approx(100 + 30 + 30 + 50, abs=0.1)
    assert points["a_in"] == pytest.approx(300 + 50, abs=0.1)  # a port has 30% of the period
    late = flow.Constraint(1000.0, input_ps={"b": 450.0}, output_ps={"y": 70.0})
    points = {p.name: p.path_ps for p in timing.end_points(netlist, library, late)}
    assert points["b_in"] == pytest.approx(450 + 50, abs=0.1)
    assert points["y"] == pytest.approx(100 + 20 + 70, abs=0.1)


_WIRES = """default_wire_load : "long";
wire_load (long) { capacitance : 100; resistance : 1; slope : 1; fanout_length (1, 10); }
"""


@needs_opensta
def test_a_library_s_own_wire_load_does_not_count(tmp_path: Path) -> None:
    constraint = flow.Constraint(1000.0)
    found = []
    for name, text in (("without", _liberty()), ("with", _liberty(_WIRES))):
        library = _library(tmp_path / name, text)
        netlist = _chain(library, constraint, tmp_path / name)
        found.append(timing.time_netlist(netlist, library, constraint, timing.Wire(10.0, 1000.0)))
    assert found[0] == found[1]
    assert found[0].path_ps == pytest.approx(100 + 20 + 300, abs=0.1)


@needs_opensta
@pytest.mark.skipif(not NANGATE, reason="../shared/cells has no Nangate45, which has power")
def test_power_is_at_the_clock_that_the_path_allows(tmp_path: Path) -> None:
    (library,) = read_libraries(NANGATE, tmp_path / "work")
    activities = dict.fromkeys(("a_in", "b_in", "c_in", "y_out", "a", "b", "c"), (0.5, 0.5))

    def power(period_ps: float, wire: timing.Wire) -> timing.Timing:
        constraint = flow.Constraint(period_ps, uncertainty_ps=10.0)
        netlist = _chain(library, constraint, tmp_path / "work")
        return timing.time_netlist(netlist, library, constraint, wire, activities)

    none = timing.Wire(0.0, 0.0)
    plain, wired = power(1000.0, none), power(1000.0, timing.Wire(100.0, 0.0))
    assert plain.watts == wired.watts
    assert plain.wired_ps < wired.wired_ps
    assert plain.annotated == 4
    assert plain.watts
    assert power(2000.0, none).watts == pytest.approx(plain.watts / 2, rel=0.02)
    fast = power(20.0, none)
    assert fast.watts == pytest.approx(plain.watts * 1000 / (fast.path_ps + 10), rel=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_liberty().replace("area : 0.5", "area : 0.5.32"), "must be a number, not"),
        ("module m; endmodule", "is not a Liberty file"),
        (_liberty(flip_flop=False), "has no flip-flops"),
        (_liberty().replace("1ns", "1s"), "time_unit"),
        (_liberty().replace("NAND2_X1", "GATE"), "no two-input NAND"),
    ],
)
def test_bad_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "bad.lib"
    path.write_text(text)
    with pytest.raises(SynthError, match=message):
        read_libraries([path], tmp_path / "work")
    assert parse_loop.main([str(path), "--output", str(tmp_path / "r" / "report.json")]) == 2
    assert message in capsys.readouterr().err


def test_missing_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.lib.gz"
    path.write_bytes(gzip.compress(b"library (x) {")[:12])
    for name in (path, tmp_path / "none.lib"):
        assert parse_loop.main([str(name), "--output", str(tmp_path / "report.json")]) == 2
        assert f"cannot read {name}" in capsys.readouterr().err
