"""Build a harness of Verilog files, and drive a run of it: files in, what it found out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tb.places import locked
from tb.run import DEFAULT_SEED, Sources, build, run_tests

__all__ = ["Built", "Found", "build_harness", "driven", "found_in", "harness_files", "seed_of"]

FOLDER = Path(__file__).resolve().parent
Built = tuple[Path, Sources]


@dataclass(frozen=True)
class Found:
    """Folder of a run, the values that the harness wrote, and the fields of what is wrong."""

    work: Path
    values: Mapping[str, int]
    wrong: list[list[str]]


def seed_of() -> int:
    """COCOTB_RANDOM_SEED, or the default."""
    return int(os.environ.get("COCOTB_RANDOM_SEED") or DEFAULT_SEED)


def build_harness(top: str, files: Mapping[str, str], simulator: str) -> Built:
    """Folder and sources of the harness ``top`` (a file beside this one) around ``files``."""
    if simulator == "verilator":
        files = {"harness.vlt": (FOLDER / "harness.vlt").read_text(), **files}
    arguments = ("-O3", "--x-assign", "fast", "--x-initial", "fast")
    everything = harness_files(top, files)
    sources = Sources("harness", everything, verilator_args=arguments, public=False)
    return build(sources, simulator), sources


def harness_files(top: str, files: Mapping[str, str]) -> dict[str, str]:
    """``files`` and those of the harness ``top``, in the order in which they are compiled."""
    return {**files, **{name: (FOLDER / name).read_text() for name in ("files.v", top)}}


@contextmanager
def driven(
    built: Built,
    simulator: str,
    name: str,
    files: Mapping[str, bytes],
    plusargs: Mapping[str, int],
) -> Iterator[Found]:
    """Do the run ``name``; its folder is locked until what it left there has been read."""
    folder, sources = built
    work = folder / "runs" / name
    with locked(folder / "locks" / name):
        work.mkdir(parents=True, exist_ok=True)
        for file, data in files.items():
            (work / file).write_bytes(data)
        (work / "results.txt").unlink(missing_ok=True)
        run_tests(
            folder,
            sources,
            simulator,
            "tb.harness.drive",
            plusargs=[f"+{key}={value}" for key, value in plusargs.items()],
            run_folder=work,
        )
        yield found_in(work)


def found_in(work: Path) -> Found:
    """What a run left in its folder."""
    lines = [line.split() for line in (work / "results.txt").read_text().splitlines()]
    values = {line[0]: int(line[1]) for line in lines if line[0] != "wrong"}
    return Found(work, values, [line[1:] for line in lines if line[0] == "wrong"])
