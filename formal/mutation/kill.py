"""Run mutants through stimuli until one tells them from the lane."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from formal.mutation.netlist import SELECT, SELECT_BITS, Mutant
from formal.mutation.stimuli import Stimulus
from tb.harness.bulk import HARNESS, judged, lane_files, lane_plusargs
from tb.harness.driven import Found, harness_files
from tb.harness.expected import Records
from tb.harness.lanes import Lane
from tb.harness.native import NativeFailure, Runner, build_native

__all__ = ["Kill", "build_mutants", "kill"]

_IDLE_CYCLES = 2_000  # after which a mutant hangs; pauses are shorter
_SECONDS = 60


@dataclass(frozen=True)
class Kill:
    """What told a mutant from the lane: the stimulus, and how it showed."""

    stimulus: str
    how: str


def build_mutants(lane: Lane, verilog: str, folder: Path) -> Path:
    """Program that runs the lane, whose Verilog has the input that selects a mutant."""
    component = lane.make(lane.parameters)
    files = lane_files(lane, verilog, component, {SELECT: SELECT_BITS})
    return build_native(harness_files(HARNESS, files), folder)


def kill(
    lane: Lane,
    program: Path,
    made: Sequence[Mutant],
    stimuli: Iterable[Stimulus],
    folder: Path,
    tell: Callable[[str], None],
) -> dict[int, Kill]:
    """By the mutant's number, what killed it; survivors are missing.

    Raises
    ------
    NativeFailure
        If a stimulus finds fault with the lane itself.
    """
    killed: dict[int, Kill] = {}
    with closing(Runner(program, _SECONDS)) as runner:
        for stimulus in stimuli:
            left = [mutant for mutant in made if mutant.number not in killed]
            if not left:
                break
            start = time.monotonic()
            records = stimulus.records or lane.records(stimulus.tensors)
            work = folder / "run"
            work.mkdir(parents=True, exist_ok=True)
            for name, data in records.files().items():
                (work / name).write_bytes(data)
            if how := _run(lane, runner, work, stimulus, records, 0):
                raise NativeFailure(f"{lane.name} fails {stimulus.name!r} without a mutant: {how}")
            before = len(killed)
            for mutant in left:
                if how := _run(lane, runner, work, stimulus, records, mutant.number):
                    killed[mutant.number] = Kill(stimulus.name, how)
            seconds = time.monotonic() - start
            new, count = len(killed) - before, f"{len(killed)} of {len(made)} killed"
            tell(f"{lane.name}, {stimulus.name}: {new}, {count}, {seconds:.0f} s")
    return killed


def _run(
    lane: Lane, runner: Runner, work: Path, stimulus: Stimulus, records: Records, number: int
) -> str:
    """How the run showed that something is wrong; empty if nothing did."""
    plusargs = {
        **lane_plusargs(stimulus.stalls, stimulus.reset_at),
        "timeout": _IDLE_CYCLES,
        "most_wrong": 0,
        SELECT: number,
    }
    found = runner.run(work, plusargs)
    if found is None:
        return "does not settle, or goes on for ever"
    if found.wrong:
        return f"{found.wrong[0][0]}: {found.wrong[0][1]}"
    return _slow(lane, found, stimulus, records)


def _slow(lane: Lane, found: Found, stimulus: Stimulus, records: Records) -> str:
    """The same of a run without a wrong beat."""
    if not found.values["finished"]:
        return "hang"
    result = judged(
        lane, found, stimulus.tensors, records, "verilator", stimulus.stalls, stimulus.reset_at
    )
    return "rate" if result.problems else ""
