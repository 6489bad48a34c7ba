"""`make soak MINUTES=n`: random tensors, pauses, resets and broken streams through the engine.

A round is a run of the path harness (tb/harness/path.v) on data that follow from the seed and
the number of the round: over the link, or with streams of its own for the decompressor. What is
wrong ends the soak; SEED and ROUND repeat it. build/soak/seed-N.json has where a seed has
got to: the next soak with it goes on from there, with the round that was wrong if there is one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from formal.coverage.bins import STALLS, Bin, bins
from formal.coverage.walk import hits
from planezip.model.format import BLOCK_BYTES, CHUNK_BYTES
from planezip.model.generate import mixed
from tb.activations import samples
from tb.engine_runs import LENGTHS, MODES
from tb.harness.driven import harness_files
from tb.harness.faults import broken_tensors, legal_tensors
from tb.harness.native import Runner, build_native
from tb.harness.path import (
    PATH_HARNESS,
    PathStalls,
    engine_files,
    path_plusargs,
    path_result,
    returned_by,
)
from tb.harness.path_records import path_files
from tb.harness.tensors import DTYPES, Tensor
from tb.legal import STYLES
from tb.places import ROOT
from tb.run import DEFAULT_SEED, simulator_version

__all__ = ["Round", "State", "main", "round_of", "soak"]

LANES = 2
BINS = sum(1 for _ in bins())
_FOLDER = ROOT / "build" / "soak"
_TENSORS = 40
_FAULTS = 25
_LEGAL_BLOCKS = 150
_SECONDS = 120  # processor time of a run


@dataclass(frozen=True)
class Round:
    """``back`` is what the decompressor gets, by default what the compressor writes."""

    tensors: Sequence[Tensor]
    back: Sequence[Tensor] | None
    stalls: PathStalls
    reset_at: int
    seed: int


@dataclass
class State:
    """What a soak has done so far; ``problems`` of the round ``rounds``, which does not count."""

    seed: int
    hardware: str
    rounds: int = 0
    seconds: float = 0.0
    blocks: int = 0
    tensors: int = 0
    faults: int = 0
    resets: int = 0
    hit: list[Bin] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def round_of(seed: int, number: int) -> Round:
    """The round ``number`` of a seed."""
    rng = random.Random(f"{seed} {number}")
    tensors = _tensors(rng)
    back: list[Tensor] | None = None
    if rng.randrange(2):
        w, data_seed = rng.choice((16, 32)), rng.randrange(1 << 30)
        back = broken_tensors(data_seed, w, _FAULTS)
        back += legal_tensors(data_seed, 48 - w, _LEGAL_BLOCKS, STYLES)
        rng.shuffle(back)
    stalls = PathStalls(*(rng.randrange(len(STALLS)) for _ in range(3)))
    reset_at = 0 if rng.randrange(3) else rng.randint(50, 4000)
    return Round(tensors, back, stalls, reset_at, rng.randrange(1 << 30))


def _tensors(rng: random.Random) -> list[Tensor]:
    """Tensors of all types, lengths and modes, of generated data and shipped activations."""
    pools = {w: mixed(400, w, rng.randrange(1 << 30)).tobytes() for w in DTYPES}
    real = rng.choice(list(samples())).data
    made = []
    for _ in range(_TENSORS):
        dtype = rng.choice([name for names in DTYPES.values() for name in names])
        pool = real if not rng.randrange(4) else pools[16 if dtype in DTYPES[16] else 32]
        size = rng.choice((rng.choice(LENGTHS), rng.randrange(600), rng.randrange(5 * CHUNK_BYTES)))
        if not rng.randrange(8):
            pool = rng.randbytes(size)  # no encoding is shorter
        at = rng.randrange(max(1, len(pool) - size))
        at -= at % rng.choice((1, BLOCK_BYTES))
        made.append(Tensor(dtype, pool[at : at + size], rng.choice(MODES)))
    return made


def soak(
    state: State,
    runner: Runner,
    work: Path,
    minutes: float,
    tell: Callable[[State], None],
    rounds: int | None = None,
) -> None:
    """Run rounds until the time is over, ``rounds`` are done, or something is wrong."""
    state.problems = []
    wanted = set(bins())
    hit = {tuple(bin_) for bin_ in state.hit}
    began, before = time.monotonic(), state.seconds
    work.mkdir(parents=True, exist_ok=True)
    while time.monotonic() - began < 60 * minutes and rounds != 0:
        item = round_of(state.seed, state.rounds)
        returned = returned_by(item.tensors) if item.back is None else item.back
        for name, data in path_files(LANES, item.tensors, returned).items():
            (work / name).write_bytes(data)
        plusargs = path_plusargs(item.stalls, item.back is None, item.reset_at)
        found = runner.run(work, {**plusargs, "seed": item.seed})
        if found is None:
            state.problems = ["the simulation ended early"]
        else:
            result = path_result(LANES, found, item.tensors, returned, "verilator")
            state.problems = list(result.problems)
        if state.problems:
            tell(state)
            return
        for side, tensors, stalls in (
            ("written", item.tensors, (item.stalls.input, item.stalls.link)),
            ("read", returned, (item.stalls.link, item.stalls.output)),
        ):
            for tensor in tensors:
                for stall in stalls:
                    hit |= set(hits(tensor, side, STALLS[stall]))
        state.blocks += sum(tensor.blocks for tensor in (*item.tensors, *returned))
        state.tensors += len(item.tensors) + len(returned)
        state.faults += _FAULTS if item.back is not None else 0
        state.resets += item.reset_at > 0
        state.rounds += 1
        state.seconds = before + time.monotonic() - began
        state.hit = sorted(hit & wanted, key=str)
        rounds = rounds - 1 if rounds is not None else None
        tell(state)


def _tell(state: State) -> None:
    rate = state.blocks / max(state.seconds, 1e-9)
    print(
        f"round {state.rounds}: {state.blocks:,} blocks, {rate:,.0f} blocks per second,"
        f" {len(state.hit)} of {BINS} bins hit, {state.faults:,} broken streams,"
        f" {state.resets} resets, {state.seconds / 60:.1f} min",
        flush=True,
    )


def _write(path: Path, state: State) -> None:
    document: dict[str, Any] = {
        "format": "planezip-soak",
        "version": 1,
        "planezip": metadata.version("planezip"),
        "verilator": simulator_version("verilator"),
        "lanes": LANES,
        "bins": BINS,
        "bins_hit": len(state.hit),
        **vars(state),
    }
    written = path.with_suffix(".tmp")  # a soak that is cut off leaves the state before
    written.write_text(json.dumps(document) + "\n")
    written.replace(path)


def _read(path: Path, seed: int, hardware: str) -> State:
    """What a soak of this seed and hardware has left, or a new one.

    Raises
    ------
    ValueError
        For a file that no soak has written.
    """
    new = State(seed, hardware)
    if not path.exists():
        return new
    try:
        document = json.loads(path.read_text())
        state = State(**{name: document[name] for name in vars(new)})
        state.hit = [tuple(bin_) for bin_ in state.hit]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not the state of a soak; remove it to begin anew") from error
    return state if state.hardware == hardware else new


def main(argv: Sequence[str] | None = None) -> int:
    """0 if nothing was wrong, 1 if something was, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m formal.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--round", type=int, help="only this round of the seed")
    arguments = parser.parse_args(argv)
    if not arguments.minutes > 0:
        parser.error(f"minutes must be above 0, not {arguments.minutes}")
    path = _FOLDER / f"seed-{arguments.seed}.json"
    files = harness_files(PATH_HARNESS, engine_files(LANES))
    hardware = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    try:
        state = _read(path, arguments.seed, hardware)
    except ValueError as error:
        print(f"planezip: {error}", file=sys.stderr)
        return 2
    if arguments.round is not None:
        state = State(arguments.seed, hardware, rounds=arguments.round)
    elif state.rounds:
        print(f"seed {state.seed}: going on after {state.rounds} rounds", flush=True)
    program = build_native(files, _FOLDER)
    only = arguments.round is not None

    def tell(state: State) -> None:
        _tell(state)
        if not only:
            _write(path, state)

    with closing(Runner(program, _SECONDS)) as runner:
        work = _FOLDER / f"run-{arguments.seed}"
        soak(state, runner, work, arguments.minutes, tell, 1 if only else None)
    for problem in state.problems:
        print(problem, file=sys.stderr)
    if state.problems:
        print(f"again: make soak SEED={state.seed} ROUND={state.rounds}", file=sys.stderr)
    return 1 if state.problems else 0


if __name__ == "__main__":
    sys.exit(main())
