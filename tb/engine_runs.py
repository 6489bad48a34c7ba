"""The engine in `make sim`: whole path with stalls, full rate on real data and worst cases.

Each run gives a row for the raw port of either direction; build/sim/engine.json has the cycles
of both ports by activity; ``python -m tb.engine_runs`` prints those of the runs at full rate.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from planezip.model import encode_bytes
from planezip.model.format import BLOCK_BYTES, CHUNK_BYTES
from tb.activations import samples
from tb.harness.path import PathResult, PathStalls, Port, run_path
from tb.harness.sets import Sets
from tb.harness.tensors import Tensor
from tb.places import BUILD
from tb.report import Run
from tb.run import BenchFailure, Sources, simulator_version

__all__ = [
    "LENGTHS",
    "MODES",
    "EngineJob",
    "engine_jobs",
    "engine_runs",
    "path_tensors",
    "slow",
    "table",
    "worst_cases",
]

REPORT = BUILD / "engine.json"
FIVE = ("bfloat16", "float16", "float32", "int64", "uint8")
PATH_TENSORS = 240
REAL_CHUNKS = 3  # of each activation; all of them in make sim-full
LENGTHS = (0, 1, 31, 64, 128, 129, 4095, 4096, 4097, 5000, 8192, 12_300)
_POOL_BLOCKS = 600
MODES = ("stream",) * 6 + ("bypass", "measure")
_NONE = PathStalls()
_STALLS = (_NONE, PathStalls(1, 2, 3))
_FULL_STALLS = (PathStalls(2, 4, 1), PathStalls(3, 1, 2), PathStalls(4, 3, 4))


@dataclass(frozen=True)
class EngineJob:
    """A run: ``back`` is what the decompressor gets, by default what the compressor writes."""

    data: str
    label: str
    tensors: Sequence[Tensor]
    back: Sequence[Tensor] | None = None
    stalls: PathStalls = _NONE


def path_tensors(count: int, seed: int) -> list[Tensor]:
    """``count`` tensors of mixed lengths and modes, of five element types in turn."""
    rng = random.Random(seed)
    sets = Sets(seed)
    pools = {w: sets.generated(w, _POOL_BLOCKS) for w in (16, 32)}
    made = []
    for k in range(count):
        dtype = FIVE[k % len(FIVE)]
        pool = rng.choice(pools[16 if dtype in FIVE[:2] else 32]).data
        size = rng.choice((*LENGTHS, rng.randrange(20_000)))
        at = rng.randrange(max(1, len(pool) - size))
        data = (pool[at:] + pool)[:size].ljust(size, b"\1")
        made.append(Tensor(dtype, data, rng.choice(MODES)))
    return made


def worst_cases(seed: int) -> dict[str, list[bytes]]:
    """Tensors that are hard on the engine: incompressible, all zeros, ends of all lengths."""
    rng = random.Random(seed)
    chunk, block = CHUNK_BYTES, BLOCK_BYTES
    return {
        "noise": [rng.randbytes(40 * chunk), rng.randbytes(33 * chunk + 1)],
        "zeros": [bytes(40 * chunk)] * 2,
        "chunk+byte": [rng.randbytes(chunk + 1) for _ in range(40)],
        "chunk-byte": [rng.randbytes(size) for _ in range(40) for size in (chunk, 1)],
        "block-block-chunk": [
            rng.randbytes(size) for _ in range(40) for size in (block, block, chunk)
        ],
        "byte": [rng.randbytes(1) for _ in range(200)],
    }


def sent_back(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors as the decompressor gets them without waiting for the compressor."""
    return [Tensor(t.dtype, t.data, t.mode, encode_bytes(t.data, t.symbol_bits)) for t in tensors]


def engine_jobs(seed: int, full: bool) -> Iterator[EngineJob]:
    """The runs of an engine."""
    for stalls in (*_STALLS, *(_FULL_STALLS if full else ())):
        label = f"{PATH_TENSORS} tensors of five types, all modes, over the link"
        tensors = path_tensors(PATH_TENSORS, seed)
        yield EngineJob("path", label, tensors, stalls=stalls)
    most = None if full else REAL_CHUNKS * CHUNK_BYTES
    real = [Tensor(sample.dtype, sample.data[:most]) for sample in samples()]
    yield EngineJob("real", "real activations", real, sent_back(real))
    for name, parts in worst_cases(seed).items():
        tensors = [Tensor("float32", data) for data in parts]
        yield EngineJob("worst", name, tensors, sent_back(tensors))


def engine_runs(
    builds: Mapping[int, Future[tuple[Path, Sources]]], seed: int, full: bool
) -> Iterator[Run]:
    """Do the runs of the engines with so many lanes, write engine.json."""
    found: list[dict[str, object]] = []
    for lanes, built in builds.items():
        for number, job in enumerate(engine_jobs(seed, full)):
            start = time.monotonic()
            name = f"{job.data}-{number}"
            try:
                result = run_path(
                    lanes,
                    built.result(),
                    "verilator",
                    job.tensors,
                    name,
                    stalls=job.stalls,
                    back=job.back,
                )
            except BenchFailure as error:
                result = _failed(lanes, job, seed, str(error))
            seconds = round(time.monotonic() - start, 1)
            found.append(
                {"data": job.data, "label": job.label, "stalls": _stalls(job), **asdict(result)}
            )
            yield from rows(job, result, seconds)
    document = {
        "schema": "planezip.engine/1",
        "planezip": metadata.version("planezip"),
        "runs": found,
    }
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(document, indent=2) + "\n")


def _failed(lanes: int, job: EngineJob, seed: int, problem: str) -> PathResult:
    """A bench that could not run is a run that failed."""
    port = Port(0, 0, {}, 0, 0.0)
    version = simulator_version("verilator")
    return PathResult(
        lanes, len(job.tensors), port, port, 0, 0, (problem,), seed, "verilator", version
    )


def _stalls(job: EngineJob) -> str:
    names = ("none", "half", "bursts", "most", "cyclic")
    pattern = [names[k] for k in (job.stalls.input, job.stalls.output, job.stalls.link)]
    return "none" if job.stalls == _NONE else "/".join(pattern)


def table(document: dict[str, Any]) -> str:
    """The runs without stalls of engine.json, as the table of docs/hardware.md."""
    lines = [
        "| tensors, lanes | blocks | compressor: cycles | a block | bubbles"
        " | decompressor: cycles | a block | bubbles |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in document["runs"]:
        if run["stalls"] != "none" or run["data"] == "path":
            continue
        cells = [
            f"{run['label']} ({run['tensors']}), {run['lanes']}",
            f"{run['input']['blocks']:,}",
        ]
        for side in ("input", "output"):
            port = run[side]
            why = [
                f"{count} {kind.upper()}"
                for kind, count in port["activity"].items()
                if count and kind != "move"
            ]
            cells += [
                f"{port['cycles']:,}",
                f"{port['cycles'] / port['blocks']:.3f}",
                ", ".join(why) or "none",
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def slow(result: PathResult) -> list[str]:
    """Ports that fell more than a chunk behind the bound of their tensors."""
    ports = {"compress": result.input, "decompress": result.output}
    return [
        f"{side}: {port.late} cycles behind the bound of the tensors"
        for side, port in ports.items()
        if port.late > CHUNK_BYTES // 32
    ]


def rows(job: EngineJob, result: PathResult, seconds: float) -> Iterator[Run]:
    """A row for the raw port of the compressor, one for that of the decompressor."""
    full_rate = job.back is not None and job.stalls == _NONE
    problems = (*result.problems, *(slow(result) if full_rate else ()))
    for side, port in (("compress", result.input), ("decompress", result.output)):
        yield Run(
            component=f"engine x{result.lanes} {side}",
            symbol_bits=None,
            data=job.data,
            stalls=_stalls(job),
            blocks=port.blocks,
            tensors=result.tensors,
            cycles=port.cycles,
            cycles_per_block_mean=round(port.cycles / max(1, port.blocks), 4),
            cycles_per_block_max=port.worst,
            latency_cycles=(
                result.first_wire_cycles if side == "compress" else result.first_raw_cycles
            ),
            mismatches=len(problems),
            simulator=result.simulator,
            simulator_version=result.simulator_version,
            seed=result.seed,
            seconds=seconds,
            problems=problems,
        )


if __name__ == "__main__":
    print(table(json.loads(REPORT.read_text())))
