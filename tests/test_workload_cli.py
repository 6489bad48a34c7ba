"""``planezip trace``, ``capture`` and ``characterise`` on the command line."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from planezip.cli import main
from planezip.sim.ratios import load_ratios
from planezip.sim.trace_file import load_trace

TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="NOT TESTED: needs planezip[capture]")

MODEL = """
import torch
from torch import nn

def peeks(batch):
    return nn.Linear(4, 4), (torch.randn(batch, 4),), lambda m, x: m(x).sum() * m(x).sum().item()

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


@needs_torch
def test_capture_of_a_small_batch_serves_a_plan_of_a_large_one(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.json.gz"
    assert main(["trace", "--model", model, "--batch", "64", "-o", str(trace)]) == 0
    assert main(["capture", "--model", model, "--batch", "8", "--ratios", str(tmp_path)]) == 0
    capsys.readouterr()
    ratios = tmp_path / "bfloat16.ratios.json.gz"
    command = ["plan", "--trace", str(trace), "--platform", "B", "--budget", "1MB"]
    # one ReLU output of 64 x 256, which half of are zeros: wire bytes below raw
    assert main([*command, "--ratios", str(ratios), "--swap", "2", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    row = next(row for row in plan["tensors"] if row["decision"] == "swap")
    assert row["bytes"] == 2 * 64 * 256
    assert row["wire_bytes"] < 0.9 * row["bytes"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trace", "--model", "nothing"], "model must be timm:NAME"),
        (["trace", "--model", "mine.py:peeks"], "trace it with data instead of shapes"),
        (["capture", "--model", "MINE", "-o", "OUT", "--text", "x"], "is no language model"),
        (["capture", "--model", "MINE", "-o", "OUT", "--images", "x"], "takes no images"),
        (["capture", "--model", "MINE", "-o", "OUT", "--threads", "0"], "threads must be"),
        (["capture", "--model", "MINE", "-o", "OUT", "--learning-rate", "nan"], "must be positive"),
        (["characterise", "--measure", "nothing", "--ratios", "OUT"], "--measure must be all"),
        (["characterise", "--ratios", "absent", "-o", "OUT"], "there is no folder absent"),
        (["capture", "--model", "timm:resnet50"], "name a folder with --output or with --ratios"),
        (["characterise", "--measure", "all"], "--measure needs --ratios FOLDER"),
    ],
)
@needs_torch
def test_bad_input(
    arguments: list[str],
    message: str,
    model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"MINE": model, "OUT": "out"}
    assert main([names.get(a, a) for a in arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("planezip: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["trace", "--model", "timm:resnet50"],
        ["trace", "--all", "x"],
        ["capture", "--model", "hf:gpt2", "-o", "x"],
        ["characterise", "--measure", "all", "--ratios", "x"],
    ],
)
def test_without_torch(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from planezip.cli import main; sys.exit(main())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert found.stderr.startswith("planezip: this needs torch")
    assert found.stderr.endswith(": run `pip install planezip[capture]`\n")
    assert list(tmp_path.iterdir()) == []


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
