"""`make sim`: unit benches, then the lanes on real and generated data; a table and a report.

The lanes are built for Verilator, then run, while the unit benches run.
SIM=icarus or SIM=verilator restricts everything to one simulator.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from tb.benches import OUTCOMES, run_benches
from tb.engine_runs import engine_runs
from tb.harness.bulk import Stalls, build_lane, run_lane
from tb.harness.lanes import LANES
from tb.harness.path import build_path
from tb.jobs import Job, jobs
from tb.places import BUILD, ROOT
from tb.report import Report, Run, table
from tb.run import (
    DEFAULT_SEED,
    BenchFailure,
    SimulatorMissing,
    Sources,
    default_simulator,
    icarus_missing,
    simulator_version,
)

__all__ = ["main"]

_PATTERNS = ("none", "half", "bursts", "most", "cyclic")
_PROBLEMS_SHOWN = 5
_NONE = Stalls()
_ENGINES, _FULL_ENGINES = (2,), (1, 2, 4)  # lanes each way


def main(argv: Sequence[str] | None = None) -> int:
    """Run everything; 0 if all is well, 1 if something is wrong, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m tb.sim", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all data, no time limit")
    parser.add_argument("--no-benches", action="store_true", help="only the lanes")
    arguments = parser.parse_args(argv)
    try:
        only = os.environ.get("SIM") and default_simulator()
    except SimulatorMissing as error:
        print(f"planezip: {error}", file=sys.stderr)
        return 2
    simulators = [only] if only else ["verilator"] + (["icarus"] if not icarus_missing() else [])
    seed = int(os.environ.get("COCOTB_RANDOM_SEED") or DEFAULT_SEED)
    versions = ", ".join(f"{name} {simulator_version(name)}" for name in simulators)
    print(f"planezip {metadata.version('planezip')}: {versions}, seed {seed}", flush=True)
    if not only and icarus_missing():
        print(f"WITHOUT ICARUS, and without its checks for X: {icarus_missing()}", flush=True)
    with (
        ThreadPoolExecutor(1) as tester,
        ThreadPoolExecutor(1) as builder,
        ThreadPoolExecutor(2) as runner,
    ):
        builds = {
            (lane.name, name): builder.submit(build_lane, lane, name)
            for lane in LANES
            for name in simulators
            if name in lane.simulators
        }
        engines = {
            lanes: builder.submit(build_path, lanes)
            for lanes in (_FULL_ENGINES if arguments.full else _ENGINES)
            if "verilator" in simulators
        }
        tested = None if arguments.no_benches else tester.submit(run_benches, full=arguments.full)
        pending = [
            (job, runner.submit(_run, job, builds[job.lane.name, job.simulator]))
            for lane in LANES
            for job in jobs(lane, simulators, seed, arguments.full)
        ]
        runs = [_told(job, future) for job, future in pending]
        runs += [_tell(run) for run in engine_runs(engines, seed, arguments.full)]
        benches = tested.result() if tested else dict.fromkeys(OUTCOMES, 0)
    report = BUILD / "report.json"
    Report(metadata.version("planezip"), arguments.full, benches, runs).write(report)
    print(f"\n{table(runs)}\n")
    good = bool(runs) and all(run.passed for run in runs) and not benches["failed"]
    if not arguments.no_benches:
        print("unit benches:", ", ".join(f"{count} {what}" for what, count in benches.items()))
    print(f"{'PASSED' if good else 'FAILED'}: {report.relative_to(ROOT)}")
    return 0 if good else 1


def _run(job: Job, built: Future[tuple[Path, Sources]]) -> Run:
    """Do a run, once its lane is built."""
    folder = built.result()
    start = time.monotonic()
    name = f"{job.data}-{job.symbol_bits or 'both'}-{job.stalls.input}{job.stalls.output}"
    result = run_lane(
        job.lane,
        folder,
        job.simulator,
        job.tensors,
        name,
        stalls=job.stalls,
        reset_at=job.reset_at,
    )
    return Run(
        component=job.lane.name,
        symbol_bits=job.symbol_bits,
        data=job.data,
        stalls=_stalls(job.stalls),
        blocks=result.blocks,
        tensors=len(job.tensors),
        cycles=result.cycles,
        cycles_per_block_mean=result.cycles_per_block_mean,
        cycles_per_block_max=result.cycles_per_block_max,
        latency_cycles=result.latency_cycles,
        mismatches=result.mismatches,
        simulator=result.simulator,
        simulator_version=result.simulator_version,
        seed=result.seed,
        seconds=round(time.monotonic() - start, 1),
        problems=result.problems,
        errors_injected=result.errors_injected if job.data == "faults" else None,
        errors_agreed=result.errors_agreed if job.data == "faults" else None,
    )


def _stalls(stalls: Stalls) -> str:
    names = (_PATTERNS[stalls.input], _PATTERNS[stalls.output])
    return "none" if stalls == _NONE else "/".join(names)


def _told(job: Job, future: Future[Run]) -> Run:
    """The run of a job; a bench that could not run is a run that failed."""
    try:
        run = future.result()
    except BenchFailure as error:
        run = _failed(job, str(error))
    return _tell(run)


def _tell(run: Run) -> Run:
    """The run, with a line about it."""
    errors = f", {run.errors_agreed:,} faults as the codec says" if run.errors_agreed else ""
    bits = f"{run.symbol_bits} bits" if run.symbol_bits else "both widths"
    print(
        f"{'ok  ' if run.passed else 'FAIL'} {run.component}, {bits}, {run.data}, {run.simulator}:"
        f" {run.blocks:,} blocks{errors} in {run.seconds:.1f} s",
        flush=True,
    )
    for problem in run.problems[:_PROBLEMS_SHOWN]:
        print(f"     {problem}")
    return run


def _failed(job: Job, problem: str) -> Run:
    return Run(
        component=job.lane.name,
        symbol_bits=job.symbol_bits,
        data=job.data,
        stalls=_stalls(job.stalls),
        blocks=0,
        tensors=len(job.tensors),
        cycles=0,
        cycles_per_block_mean=0.0,
        cycles_per_block_max=0.0,
        latency_cycles=0,
        mismatches=1,
        simulator=job.simulator,
        simulator_version=simulator_version(job.simulator),
        seed=int(os.environ.get("COCOTB_RANDOM_SEED") or DEFAULT_SEED),
        seconds=0.0,
        problems=(problem,),
    )


if __name__ == "__main__":
    sys.exit(main())
