"""Harnesses built as programs of their own, without cocotb: a run a line."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tb import verilator
from tb.harness.driven import Found, found_in
from tb.places import locked
from tb.run import simulator_version

__all__ = ["NativeFailure", "Runner", "build_native"]

_DRIVER = Path(__file__).with_name("native.cpp")
_OPTIONS = (
    *("--cc", "--exe", "--top-module", "harness", "--timescale", "1ns/1ns", "-O3"),
    *("--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style"),
)


class NativeFailure(RuntimeError):
    """A build or a run failed."""


def build_native(files: Mapping[str, str], folder: Path, options: Sequence[str] = ()) -> Path:
    """Program that runs a harness; built unless it is there.

    Parameters
    ----------
    files : mapping
        Verilog by name, in the order of compilation; the top module is ``harness``.
    folder : Path
        Where builds are kept, by content.
    options : sequence of str
        Further ones of Verilator.
    """
    key = repr(
        (
            sorted(files.items()),
            options,
            simulator_version("verilator"),
            _OPTIONS,
            verilator.MAKE_OPTIONS,
        )
    )
    digest = hashlib.sha256((key + _DRIVER.read_text()).encode()).hexdigest()[:12]
    home = folder.resolve() / digest
    program = home / "simulate"
    with locked(home):
        if (home / "built").exists():
            return program
        for name, text in files.items():
            (home / name).write_text(text)
        made = ["--Mdir", ".", "-o", program.name, *files, str(_DRIVER)]
        verilate = [verilator.executable(), *_OPTIONS, *options, *made]
        make = ["make", "-f", "Vharness.mk", *verilator.MAKE_OPTIONS, program.name]
        verilator.stand_in_headers(home, "Vharness")
        with (home / "build.log").open("w") as log:
            for command in (verilate, make):
                done = subprocess.run(
                    command,
                    check=False,
                    cwd=home,
                    env=verilator.environment(),
                    stdout=log,
                    stderr=log,
                )
                if done.returncode:
                    tail = (home / "build.log").read_text()[-2000:]
                    raise NativeFailure(f"build in {home} failed:\n{tail}")
        (home / "built").touch()
    return program


class Runner:
    """A program of :func:`build_native`, waiting for runs until it is closed.

    Parameters
    ----------
    program : Path
    seconds : int
        Processor time of a run.
    """

    def __init__(self, program: Path, seconds: int = 60) -> None:
        self._process = subprocess.Popen(
            [str(program), str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, folder: Path, plusargs: Mapping[str, int]) -> Found | None:
        """What the harness found in ``folder``; None if the run died before its end."""
        (folder / "results.txt").unlink(missing_ok=True)
        assert self._process.stdin
        assert self._process.stdout
        words = [str(folder.resolve()), *(f"+{key}={value}" for key, value in plusargs.items())]
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        kind, _, code = self._process.stdout.readline().partition(" ")
        if not kind or (kind == "ended" and int(code)):
            raise NativeFailure(f"the run in {folder} could not begin")
        return found_in(folder) if kind == "ended" else None

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
