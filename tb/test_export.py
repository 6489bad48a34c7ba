"""Exported files: ports, headers, lists, the same text every time, and the smoke test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planezip.hdl.axi import AxiEngine
from planezip.hdl.export import MODULES, ports, template, write
from planezip.hdl.verilog import verilog
from tb.cached import cached_verilog
from tb.harness.lanes import LANES, Lane
from tb.marks import slow
from tb.places import ROOT
from tb.ports import port_list
from tb.run import icarus_missing

VERILOG = ROOT / "tb" / "verilog"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make verilog` writes."""
    folder = tmp_path_factory.mktemp("verilog")
    write(folder)
    return folder


@slow
def test_ports(exported: Path) -> None:
    """Names, directions and widths of all ports are what tb/verilog/ports.txt says."""
    found, kept = port_list(exported), (VERILOG / "ports.txt").read_text()
    assert found == kept, "ports changed: python -m tb.ports > tb/verilog/ports.txt"


@slow
def test_files(exported: Path) -> None:
    """A header with version and parameters; lists name each file, lowest module first."""
    for name in MODULES:
        head = (exported / f"{name}.v").read_text().splitlines()[:3]
        assert head[0].startswith(f"// {name}: PlaneZip ")
        assert "symbol_bits 16 32, blocks_per_chunk 32" in head[1]
        assert ("lanes 2" in head[1]) == (name in ("planezip_engine", "planezip_axi"))
    names = [f"{name}.v" for name in MODULES]
    assert (exported / "planezip.f").read_text().split() == names
    core = (exported / "planezip.core").read_text()
    assert core.startswith("CAPI=2:\n")
    assert [line.strip("- ") for line in core.splitlines() if line.endswith(".v")] == names


def test_template() -> None:
    text = (
        "module inner(x);\n  input x;\n  wire x;\nendmodule\n"
        "module top(b, a);\n  output [7:0] b;\n  wire [7:0] b;\n  input a;\n  wire a;\nendmodule\n"
    )
    assert ports(text, "top") == ["input a", "output [7:0] b"]
    assert template(text, "top") == (
        "wire a;\nwire [7:0] b;\n\ntop top (\n    .a(a),\n    .b(b)\n);\n"
    )


@slow
def test_same_text_every_time(exported: Path) -> None:
    """In another process, with another hash seed."""
    code = (
        "from planezip.hdl.verilog import verilog; from planezip.hdl.axi import AxiEngine;"
        "print(verilog(AxiEngine(instances=True), 'planezip_axi'), end='')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    here = verilog(AxiEngine(instances=True), "planezip_axi")
    assert result.stdout == here
    assert (exported / "planezip_axi.v").read_text().endswith(here)


@slow
@pytest.mark.parametrize("lane", LANES[:2], ids=[lane.name for lane in LANES[:2]])
def test_coverage_is_of_the_export(exported: Path, lane: Lane) -> None:
    """What formal/coverage/rtl.py counts is this Verilog, but for the prefix of its modules."""
    name = f"planezip_{lane.name}"
    text = cached_verilog(lane.make(lane.parameters), lane.name, flatten=False)
    written = (exported / f"{name}.v").read_text()
    assert written.endswith("\n\n" + re.sub(rf"\b{lane.name}", name, text))


@pytest.mark.skipif(bool(icarus_missing()), reason=f"SKIPPED ON ICARUS: {icarus_missing()}")
@slow
def test_smoke(exported: Path, tmp_path: Path) -> None:
    """The hand-written test of the AXI wrapper, as its head says."""
    out = tmp_path / "smoke.vvp"
    command = ["iverilog", "-g2005", "-o", str(out), "-c", "planezip.f"]
    subprocess.run([*command, str(VERILOG / "smoke.v")], cwd=exported, check=True)
    result = subprocess.run(["vvp", "-n", str(out)], check=True, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "PASS", result.stdout[-2000:]
