"""Calls of the command in tests."""

import io
import json
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from planezip.cli import main

EXAMPLE = str(Path(__file__).parents[1] / "docs" / "examples" / "my_encoding.py")
RAMP = np.linspace(-3, 3, 3000, dtype=np.float32)
Capture = pytest.CaptureFixture[str]


def failure(capsys: Capture, *argv: str) -> str:
    """The one line on stderr of a call that fails."""
    capsys.readouterr()
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("planezip: ")
    assert err.count("\n") == 1
    return err.removeprefix("planezip: ").rstrip()


def report(capsys: Capture, schema: str, *argv: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*argv, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    text = resources.files("planezip.cli").joinpath("schemas", f"{schema}.json").read_text()
    jsonschema.Draft202012Validator(json.loads(text)).validate(data)
    return data


def zipped(*names_and_data: str | bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in zip(names_and_data[::2], names_and_data[1::2], strict=True):
            archive.writestr(str(name), data)
    return buffer.getvalue()


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()
