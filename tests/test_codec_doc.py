"""docs/codec.md: its snippets run, its example and its numbers are the real ones."""

import doctest
import json
from pathlib import Path

import pytest

from planezip.cli import main

ROOT = Path(__file__).parents[1]
DOC = ROOT / "docs" / "codec.md"


def test_snippets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(DOC), module_relative=False)
    assert (failed, tried > 10) == (0, True)


def test_example_is_the_file() -> None:
    code = (ROOT / "docs" / "examples" / "my_encoding.py").read_text()
    assert code[code.index("import numpy") :] in DOC.read_text()


def test_totals(capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(ROOT / "tb" / "data" / "activations.npz")
    command = ["ratio", sample, "--bits-as", "bfloat16", "--codec", "all"]
    assert main([*command, "--json"]) == 0
    ratios = json.loads(capsys.readouterr().out)["total"]["ratio"]
    text = DOC.read_text()
    assert "| " + " | ".join(ratios) + " |" in text
    assert "| " + " | ".join(f"{ratio:.3f}" for ratio in ratios.values()) + " |" in text
