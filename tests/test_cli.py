"""The command itself: help, usage errors, interrupts, progress."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from planezip.cli import COMMANDS, main
from planezip.cli.progress import Progress
from tests.cli_calls import RAMP, Capture, saved, zipped

pytestmark = pytest.mark.usefixtures("in_tmp")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
from planezip.cli import main
try:
    main({argv!r})
except SystemExit as stop:
    assert stop.code == 0
heavy = {{"numpy", "numba", "torch", "amaranth", "safetensors"}} & set(sys.modules)
sys.exit(f"imported {{heavy}}" if heavy else 0)
"""
    for argv in (
        ["--help"],
        ["ratio", "--help"],
        ["encode", "-h"],
        ["decode", "-h"],
        ["inspect", "-h"],
    ):
        done = run(code.format(argv=argv))
        assert done.returncode == 0, done.stderr
    assert all(name in run(code.format(argv=["--help"])).stdout for name in COMMANDS)


def test_usage_errors(capsys: Capture) -> None:
    for argv in ([], ["nix"], ["ratio"], ["--nix"]):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 2
    assert "ratio, encode" in capsys.readouterr().err.replace("'", "")
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("planezip ")


def test_every_command_has_a_module() -> None:
    import argparse
    import importlib

    for name in COMMANDS:
        subparsers = argparse.ArgumentParser().add_subparsers()
        importlib.import_module(f"planezip.cli.{name}").add_parser(subparsers)
        assert list(subparsers.choices) == [name]


def test_reader_that_goes_away() -> None:
    one = saved(np.zeros(1))
    members = [part for k in range(2000) for part in (f"tensor{k}.npy", one)]
    Path("a.npz").write_bytes(zipped(*members))
    command = f"{sys.executable} -m planezip.cli ratio a.npz | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[1] == "141"


def test_interrupt_and_want_of_memory(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from planezip.cli import ratio

    np.save("a.npy", RAMP)
    for error, code, words in (
        (KeyboardInterrupt, 130, ""),
        (MemoryError, 2, "planezip: out of memory\n"),
        (ImportError("No module named 'torch'"), 2, "planezip: No module named 'torch'\n"),
    ):

        def fail(*_: object, error: object = error) -> None:
            raise error  # type: ignore[misc]

        monkeypatch.setattr(ratio, "measure", fail)
        assert main(["ratio", "a.npy"]) == code
        assert capsys.readouterr().err == words


def test_progress(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    for total, terminal, quiet, shown in (
        *((1 << 30, True, False, True), (1 << 30, False, False, False)),
        *((1 << 30, True, True, False), (1 << 20, True, False, False)),
    ):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with Progress(total, quiet) as progress:
            progress.last -= 10
            progress.add(total // 2)
        assert ("50%  512 of 1024 MiB" in capsys.readouterr().err) == shown
