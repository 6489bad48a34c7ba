"""Rows, report, cache and SRAM macros of the synthesis flow, on small circuits."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from planezip.synth import __main__ as command
from planezip.synth import activity, make_library, measure, report, timing
from planezip.synth.flow import Constraint, rtlil_text
from planezip.synth.library import Library, read_libraries
from planezip.synth.nodes import node_of

pytest.importorskip("pyosys", reason="pyosys is not installed: nothing can be synthesised")
needs_opensta = pytest.mark.skipif(
    timing.opensta() is None, reason="OpenSTA is not installed (apt install opensta)"
)


class _Memory(wiring.Component):
    """A memory of ``depth`` x 32 bits with registered addresses and data."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        super().__init__({"address": In(7), "data": In(32), "write": In(1), "out": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory = m.submodules.memory = Memory(shape=32, depth=self._depth, init=[])
        write, read = memory.write_port(), memory.read_port()
        address = Signal(7, reset_less=True)
        m.d.sync += [address.eq(self.address), self.out.eq(read.data)]
        m.d.comb += [
            write.addr.eq(address),
            write.data.eq(self.data),
            write.en.eq(self.write),
            read.addr.eq(address),
            read.en.eq(1),
        ]
        return m


def _shipped(folder: Path) -> Library:
    (library,) = read_libraries([make_library.FILE], folder / "work")
    return library


def _row(depth: int, folder: Path, period_ps: float = 1500.0) -> tuple[measure.Row, bool]:
    library = _shipped(folder)
    constraint = Constraint(period_ps, sram_out_ps=560.0, sram_set_up_ps=110.0)
    text = rtlil_text(_Memory(depth), "memory")
    return measure.measure("memory", text, library, node_of(library), constraint, folder)


@needs_opensta
def test_large_memory_is_a_macro(tmp_path: Path) -> None:
    row, _ = _row(128, tmp_path)
    assert row.sram_bits == 128 * 32
    assert row.sram_um2 == pytest.approx(4096 * node_of(_shipped(tmp_path)).sram_um2_per_bit)
    assert row.total_um2 == pytest.approx(row.area_um2 + row.sram_um2, abs=0.1)
    assert row.flip_flops == 7 + 32
    # The memory to its output register: clock to out and the set-up of 7 tau, with the AND
    # gate or NOR gates of the reset in between.
    assert row.path_end.startswith("out")
    assert 560 + 7 * 3.6 <= row.path_ps <= 560 + 7 * 3.6 + 100
    assert row.path_with_wires_ps is not None
    assert row.path_with_wires_ps > row.path_ps


def test_small_memory_is_flip_flops(tmp_path: Path) -> None:
    row, _ = _row(16, tmp_path)
    assert row.sram_bits == 0
    # The memory, its read port (data or address) and the other registers; gated per word.
    assert row.flip_flops >= 16 * 32 + 7 + 32
    assert row.clock_gates >= 16


def test_a_row_is_kept_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, cached = _row(16, tmp_path)
    assert not cached
    assert _row(16, tmp_path) == (row, True)
    assert not _row(8, tmp_path)[1]  # other RTL
    assert not _row(16, tmp_path, 1400.0)[1]
    other = tmp_path / "other.lib"
    other.write_text(make_library.FILE.read_text().replace("area : 0.798", "area : 0.799"))
    monkeypatch.setattr(make_library, "FILE", other)
    assert not _row(16, tmp_path)[1]
    monkeypatch.undo()
    assert _row(16, tmp_path) == (row, True)
    monkeypatch.setattr(measure, "opensta_version", lambda: "another")
    assert not _row(16, tmp_path)[1]


def test_mapped_for_speed_where_area_misses_the_clock(tmp_path: Path) -> None:
    for period_ps, tried in ((1500.0, ["area"]), (150.0, ["area", "speed"])):
        folder = tmp_path / f"{period_ps:g}"
        row, _ = _row(16, folder, period_ps)
        assert row.met is (len(tried) == 1)
        assert row.mapping in tried
        assert sorted(path.name for path in folder.glob("work/memory-*/*")) == tried


def test_lanes_of_four(tmp_path: Path) -> None:
    row, _ = _row(16, tmp_path)
    lanes = [
        measure.Row(**{**vars(row), "name": name, "area_um2": a, "total_um2": a + 1000.0})
        for name, a in (("compressor", 70_000.0), ("decompressor", 60_000.0))
    ]
    (total,) = report.lane_totals([row, *lanes])
    assert total["logic_mm2"] == pytest.approx(0.26)
    assert total["total_mm2"] == pytest.approx(0.264)
    assert total["share_of_die"] == pytest.approx(0.264 / 826)
    assert total["gb_per_s_per_direction"] == pytest.approx(2 * 32 * row.clock_ghz, abs=0.01)
    assert report.lane_totals([row]) == []


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "report.json"
    call = ["--liberty", str(make_library.FILE), "--module", "comparator", "--output", str(output)]
    assert command.main(call) == 0
    shown = capsys.readouterr()
    assert "[1/1] done comparator in planezip45" in shown.err
    assert "comparator" in shown.out
    assert "144,000 um2 per lane" in shown.out
    document = json.loads(output.read_text())
    jsonschema.validate(document, json.loads(report.SCHEMA.read_text()))
    (row,) = document["modules"]
    assert (row["name"], row["library"], row["corner"]) == (
        "comparator",
        "planezip45",
        "typical 1.1 V 25 C",
    )
    assert command.main(call) == 0
    assert "kept comparator" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["--module", "nothing"], "no module 'nothing'; there are: compressor"),
        (["--liberty", "none.lib", "--module", "comparator"], "cannot read none.lib"),
        (["--period-ps", "60"], "--period-ps must be from 100 to 1e6, not 60"),
        (["--period-ps", "inf"], "--period-ps must be from 100 to 1e6, not inf"),
        (["--period-ps", "nan"], "--period-ps must be from 100 to 1e6, not nan"),
        (["--jobs", "0"], "--jobs must be 1 or more, not 0"),
    ],
)
def test_bad_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], call: list[str], message: str
) -> None:
    assert command.main([*call, "--output", str(tmp_path / "r.json")]) == 2
    assert message in capsys.readouterr().err


def test_without_opensta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "opensta", lambda: None)
    monkeypatch.setattr(measure, "opensta_version", lambda: "")
    row, _ = _row(16, tmp_path)
    assert row.timing_method.startswith("ABC stime: logic only")
    assert row.path_ps == row.abc_ps > 0
    assert row.met
    assert row.clock_ghz == pytest.approx(1000 / 1500, abs=1e-4)
    late, _ = _row(16, tmp_path, 110.0)
    assert not late.met
    assert late.clock_ghz == pytest.approx(0.8 * 1000 / late.path_ps, rel=0.01)
    assert (row.path_with_wires_ps, row.clock_with_wires_ghz, row.power_mw) == (None, None, None)
    assert row.path_start


def test_transitions() -> None:
    """Bit 0 flips every period, bit 1 once; one bit unknown; one with a name in brackets."""
    dump = """$timescale 1s $end
$var reg 2 ! \\a.b [1:0] $end
$var reg 1 " c $end
$var reg 1 # d $end
$enddefinitions $end
#100
bx !
0"
x#
#110
b00 !
#120
b01 !
1"
#130
b10 !
"""
    found = activity.count_transitions(iter(dump.splitlines()), 40, 10)
    assert found["a.b_0"] == (2 / 4, 10 / 40)
    assert found["a.b_1"] == (1 / 4, 10 / 40)
    assert found["c"] == (1 / 4, 20 / 40)
    assert "d" not in found


def test_default_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEZIP_SHARED", str(tmp_path))
    assert command.default_libraries() == [make_library.FILE]
    assert command.default_libraries(one=True) == [make_library.FILE]
    (tmp_path / "cells").mkdir()
    found = [tmp_path / "cells" / name for name in ("asap7_SEQ.lib.gz", "nangate45_typ.lib.gz")]
    for path in found:
        path.touch()
    assert command.default_libraries() == [make_library.FILE, *found]
    assert command.default_libraries(one=True) == [found[1]]
