"""The runs of `make sim`: which tensors go through which lane, on which simulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tb.harness.bulk import Stalls
from tb.harness.directed import directed_faults, directed_tensors
from tb.harness.faults import broken_tensors, legal_tensors
from tb.harness.lanes import Lane
from tb.harness.sets import Sets
from tb.harness.tensors import Tensor
from tb.legal import STYLES
from tb.shared import absent

__all__ = ["Job", "jobs"]

BLOCKS = 100_000  # per width and lane, shipped and generated ones together
FULL_BLOCKS = 500_000  # generated ones of make sim-full
PAIR_BLOCKS = 2_000
LEGAL_BLOCKS = 4_000
FAULTS = 10_000  # per width
ICARUS_BLOCKS = 2_000
ICARUS_FAULTS = 500
WIDTHS = (16, 32)
_STALLED = (Stalls(1, 1), Stalls(2, 3), Stalls(4, 2), Stalls(3, 4))
_NONE = Stalls()


@dataclass(frozen=True)
class Job:
    """A run to be done."""

    lane: Lane
    simulator: str
    symbol_bits: int | None
    data: str
    tensors: Sequence[Tensor]
    stalls: Stalls = _NONE
    reset_at: int = 0


def jobs(lane: Lane, simulators: Sequence[str], seed: int, full: bool) -> Iterator[Job]:
    """The runs of a lane; no block of a width is in two of them."""
    sets = Sets(seed)
    if lane.name == "pair":
        yield from _pair(lane, simulators, sets, full)
        return
    thorough = full or "verilator" not in simulators
    for w in WIDTHS:
        if "icarus" in simulators:
            yield Job(lane, "icarus", w, "corner", sets.corner(w, short=not thorough), Stalls(1, 2))
            if thorough:
                yield Job(lane, "icarus", w, "generated", sets.generated(w, ICARUS_BLOCKS))
        if "verilator" in simulators:
            yield Job(lane, "verilator", w, "corner", sets.corner(w, passes=4))
            real = sets.real(w)
            yield Job(lane, "verilator", w, "real", real)
            if full and not absent("activations"):
                yield Job(lane, "verilator", w, "shared", sets.shared(w))
            blocks = FULL_BLOCKS if full else BLOCKS - sum(tensor.blocks for tensor in real)
            yield Job(lane, "verilator", w, "generated", sets.generated(w, blocks))
            directed = directed_tensors(seed, w)
            if lane.name == "decompressor":
                directed += directed_faults(seed, w)
            yield Job(lane, "verilator", w, "directed", directed)
    bulk = "verilator" if "verilator" in simulators else "icarus"
    for stalls in _STALLED if full or bulk == "verilator" else _STALLED[:2]:
        yield Job(
            lane, bulk, None, "mixed", _both(sets, 500 if bulk == "verilator" else 50), stalls
        )
    yield Job(lane, bulk, None, "reset", _both(sets, 100), Stalls(2, 2), reset_at=1001)
    if lane.name == "decompressor":
        yield from _streams(lane, simulators, seed, thorough)


def _streams(lane: Lane, simulators: Sequence[str], seed: int, thorough: bool) -> Iterator[Job]:
    """Streams that the encoder does not write: legal ones at full rate, broken ones."""
    for w in WIDTHS:
        if "verilator" in simulators:
            slowest = legal_tensors(seed, w, LEGAL_BLOCKS, ("slowest",))
            yield Job(lane, "verilator", w, "slowest", slowest)
            yield Job(lane, "verilator", w, "legal", legal_tensors(seed, w, LEGAL_BLOCKS, STYLES))
            yield Job(lane, "verilator", w, "faults", broken_tensors(seed, w, FAULTS))
        if "icarus" in simulators and thorough:
            faults = broken_tensors(seed + 1, w, ICARUS_FAULTS, short=True)
            yield Job(lane, "icarus", w, "faults", faults)


def _pair(lane: Lane, simulators: Sequence[str], sets: Sets, full: bool) -> Iterator[Job]:
    """Lane to lane, with stalls between and at both ends; what is only measured has no stream."""
    if "verilator" not in simulators:
        return
    for w, stalls in zip(WIDTHS, (Stalls(0, 2), Stalls(2, 1)), strict=True):
        tensors = sets.generated(w, PAIR_BLOCKS * (10 if full else 1)) + sets.corner(w)
        sent = [t if t.mode != "measure" else replace(t, mode="stream") for t in tensors]
        yield Job(lane, "verilator", w, "generated", sent, stalls)


def _both(sets: Sets, blocks: int) -> list[Tensor]:
    """Tensors of both widths in turn."""
    narrow, wide = (sets.generated(w, blocks) for w in WIDTHS)
    longer = narrow if len(narrow) > len(wide) else wide
    pairs = [tensor for pair in zip(narrow, wide, strict=False) for tensor in pair]
    return pairs + longer[len(pairs) // 2 :]
