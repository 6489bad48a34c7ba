"""The default set of make sim, and the report that it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tb import sim
from tb.jobs import WIDTHS
from tb.places import BUILD, ROOT
from tb.report import Report, Run

BLOCKS = {"compressor": 100_000, "decompressor": 100_000, "pair": 2_000}  # per width
SCHEMA = json.loads((ROOT / "tb" / "report.schema.json").read_text())


def run(**changes: object) -> Run:
    fields = {
        "component": "compressor",
        "symbol_bits": 16,
        "data": "real",
        "stalls": "none",
        "blocks": 10,
        "tensors": 1,
        "cycles": 40,
        "cycles_per_block_mean": 4.0,
        "cycles_per_block_max": 4.0,
        "latency_cycles": 150,
        "mismatches": 0,
        "simulator": "verilator",
        "simulator_version": "5",
        "seed": 1,
        "seconds": 0.1,
    }
    return Run(**{**fields, **changes})  # type: ignore[arg-type]


def test_default_set_passes(capsys: pytest.CaptureFixture[str]) -> None:
    code = sim.main(["--no-benches"])
    out = capsys.readouterr().out
    assert code == 0, out
    report = json.loads((BUILD / "report.json").read_text())
    jsonschema.validate(report, SCHEMA)
    for lane in sim.LANES:
        for w in WIDTHS:
            runs = [
                r for r in report["runs"] if (r["component"], r["symbol_bits"]) == (lane.name, w)
            ]
            assert sum(r["blocks"] for r in runs) >= BLOCKS[lane.name]
            full_rate = [r["cycles_per_block_max"] for r in runs if r["stalls"] == "none"]
            assert all(cycles <= 4 for cycles in full_rate)
            assert full_rate or lane.name == "pair"  # which always has stalls between the lanes
    assert not any(r["mismatches"] for r in report["runs"])


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({}, True),
        ({"mismatches": 1}, False),
        ({"blocks": 0}, False),
        ({"problems": ("slow",)}, False),
        ({"errors_injected": 5, "errors_agreed": 5}, True),
        ({"errors_injected": 5, "errors_agreed": 4}, False),
    ],
)
def test_run_passes_only_if_all_is_well(changes: dict[str, object], passed: bool) -> None:
    assert run(**changes).passed == passed


def test_report_has_the_schema(tmp_path: Path) -> None:
    runs = [run(), run(symbol_bits=None, errors_injected=3, errors_agreed=3)]
    counts = {"passed": 1, "failed": 0, "skipped": 0}
    Report("0.1.0", False, counts, runs).write(tmp_path / "report.json")
    document = json.loads((tmp_path / "report.json").read_text())
    jsonschema.validate(document, SCHEMA)
    assert "errors_injected" not in document["runs"][0]


@pytest.mark.parametrize(
    ("simulator", "path", "message"),
    [("vcs", None, "SIM must be one of"), ("icarus", "/nowhere", "apt install iverilog")],
)
def test_simulator_that_is_not_there(simulator: str, path: str | None, message: str) -> None:
    environment = {**os.environ, "SIM": simulator}
    if path:
        environment["PATH"] = path
    command = [sys.executable, "-m", "tb.sim"]
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
