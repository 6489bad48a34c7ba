"""``planezip trace``, ``capture`` and ``characterise`` on the command line."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import planezip.sim.extra
from planezip.cli import main
from planezip.sim.ratios import load_ratios
from planezip.sim.trace import load_trace

TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="NOT TESTED: needs planezip[capture]")

MODEL = """
import torch
from torch import nn

def linear(batch):
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    return model, (torch.randn(batch, 64),), lambda m, x: m(x).sum()
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(MODEL)
    return f"{path}:linear"


@needs_torch
def test_trace(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "t.json.gz"
    assert main(["trace", "--model", model, "--batch", "16", "-o", str(out)]) == 0
    shown = capsys.readouterr().out
    # input, ReLU output, loss: 16 x 64 + 16 x 256 floats and one
    assert "3 saved tensors, 0.00 GB" in shown
    assert "only in the trace" in shown
    assert sum(load_trace(out).storages[n].bytes for n in load_trace(out).saved) == 4 * (
        16 * 64 + 16 * 256 + 1
    )


@needs_torch
def test_capture(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["capture", "--model", model, "--batch", "16", "--type", "both"]
    out, ratios = tmp_path / "out", tmp_path / "ratios"
    trace = tmp_path / "t.json.gz"
    assert main(["trace", "--model", model, "--batch", "32", "-o", str(trace)]) == 0
    more = ["--iterations", "2", "--train-steps", "2", "--against", str(trace)]
    assert main([*arguments, *more, "-o", str(out), "--ratios", str(ratios)]) == 0
    shown = capsys.readouterr().out
    assert "PlaneZip" in shown
    assert "without a counterpart here: 0.0%" in shown
    index = json.loads((out / "index.json").read_text())
    assert [f["file"] for f in index["files"]] == [
        f"iteration-{k}.{dtype}.safetensors" for k in (0, 1) for dtype in ("bfloat16", "float32")
    ]
    assert all(row["trace_storage"] >= 0 for row in index["tensors"])
    half = load_ratios(ratios / "bfloat16.ratios.json.gz")
    full = load_ratios(ratios / "float32.ratios.json.gz")
    assert half.weights == "random, 2 steps"
    assert 2 * sum(t.raw_bytes for t in half.tensors) == sum(t.raw_bytes for t in full.tensors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trace", "--model", "nothing"], "model must be timm:NAME"),
        (["capture", "--model", "timm:resnet50"], "name a folder with --output or with --ratios"),
        (["characterise", "--measure", "all"], "--measure needs --ratios FOLDER"),
    ],
)
@needs_torch
def test_bad_input(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("planezip: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["trace", "--model", "timm:resnet50"], ["capture", "--model", "hf:gpt2", "-o", "x"]],
)
def test_without_torch(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(planezip.sim.extra, "find_spec", lambda name: None)
    assert main(arguments) == 2
    assert "run `pip install planezip[capture]`" in capsys.readouterr().err


def test_characterise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="NOT TESTED: plots need matplotlib")
    outs = [tmp_path / "a", tmp_path / "b"]
    for out in outs:
        assert main(["characterise", "-o", str(out)]) == 0
    assert " NO" not in capsys.readouterr().out
    for path in outs[0].iterdir():
        assert path.read_bytes() == (outs[1] / path.name).read_bytes(), path.name
    rows = json.loads((outs[0] / "table1.json").read_text())["rows"]
    assert [row["saved_tensors"] for row in rows][:3] == [216, 494, 314]
    assert {"model", "saved_tensors", "saved_bytes", "operators"} <= set(rows[0])
    assert (outs[0] / "fig3.svg").read_text().startswith("<?xml")


def test_characterise_without_ratios(tmp_path: Path) -> None:
    # Table I and Fig. 1 need traces only
    out = tmp_path / "out"
    assert main(["characterise", "-o", str(out), "--ratios", str(tmp_path), "--no-plots"]) == 0
    assert json.loads((out / "fig3.json").read_text())["weights"] == {}
    assert len(json.loads((out / "fig1.json").read_text())["a"]) == 2
