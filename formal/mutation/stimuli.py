"""What mutants are run with: sets of the benches, small ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formal.mutation.huge import LENGTH_BITS, beginning
from planezip.model.format import CHUNK_BYTES
from tb.harness.bulk import Stalls
from tb.harness.directed import directed_faults, directed_tensors, short_tensors
from tb.harness.expected import Records
from tb.harness.faults import broken_tensors, legal_tensors
from tb.harness.lanes import Lane
from tb.harness.sets import Sets
from tb.harness.tensors import Tensor
from tb.legal import STYLES

__all__ = ["Stimulus", "stimuli"]

_WIDTHS = (16, 32)
_NONE = Stalls()
_REAL_TENSORS = 60


@dataclass(frozen=True)
class Stimulus:
    """Tensors, pauses, and the cycle of a reset after which they come again (0: none).

    ``records``: the files, by default those of the tensors.
    """

    name: str
    tensors: Sequence[Tensor]
    stalls: Stalls = _NONE
    reset_at: int = 0
    records: Records | None = None


def stimuli(lane: Lane, seed: int) -> Iterator[Stimulus]:
    """The runs that a mutant of ``lane`` goes through until one kills it."""
    sets = Sets(seed)
    reads = lane.name == "decompressor"

    def generated(blocks: int) -> list[Tensor]:
        return [tensor for w in _WIDTHS for tensor in sets.generated(w, blocks)]

    def corner(passes: int, short: bool = False) -> list[Tensor]:
        return [tensor for w in _WIDTHS for tensor in sets.corner(w, passes, short)]

    yield Stimulus("short corner, pauses", corner(1, short=True) + generated(100), Stalls(1, 2))
    yield Stimulus("corner, full rate", corner(1) + generated(400))
    yield Stimulus("many short, slow output", short_tensors(seed), Stalls(0, 3))
    if reads:
        yield Stimulus("few broken", _broken(seed + 3, 60))
        yield Stimulus("broken", _broken(seed, 200))
        yield Stimulus("legal", [t for w in _WIDTHS for t in legal_tensors(seed, w, 300, STYLES)])
        yield Stimulus("broken, pauses", _broken(seed + 1, 300), Stalls(0, 3))
    yield Stimulus("reset", generated(100), Stalls(2, 2), reset_at=501)
    yield Stimulus("slow output", corner(1) + generated(600), Stalls(0, 3))
    yield Stimulus("slow input", corner(1) + generated(300), Stalls(3, 0))
    coded = lane.name in ("compressor", "decompressor")  # whose reports are those of chunks
    for mode in ("stream", "bypass") if coded else ():
        for bit in range(CHUNK_BYTES.bit_length(), LENGTH_BITS):
            tensor, records = beginning(lane, seed, bit, mode)
            yield Stimulus(f"2**{bit} bytes, {mode}", [tensor], Stalls(1, 1), records=records)
    directed = [tensor for w in _WIDTHS for tensor in directed_tensors(seed, w)]
    if reads:
        directed += [tensor for w in _WIDTHS for tensor in directed_faults(seed, w)]
    yield Stimulus("directed", directed)
    chunk = generated(60)
    for at in range(505, 505 + 256, 5):  # some chunks take so long: also while a report waits
        yield Stimulus(f"reset in cycle {at}", chunk, Stalls(0, 3), reset_at=at)
    yield Stimulus("generated", generated(3000))
    yield Stimulus("generated, pauses", generated(1500), Stalls(2, 4))
    if reads:
        yield Stimulus("many broken", _broken(seed + 2, 1500))
        yield Stimulus("many broken, pauses", _broken(15, 4000), Stalls(2, 0))
        legal = [t for w in _WIDTHS for t in legal_tensors(seed + 1, w, 3000, STYLES)]
        yield Stimulus("much legal", legal)
    yield Stimulus("real", [t for w in _WIDTHS for t in sets.real(w)[:_REAL_TENSORS]])


def _broken(seed: int, faults: int) -> list[Tensor]:
    return [tensor for w in _WIDTHS for tensor in broken_tensors(seed, w, faults)]
