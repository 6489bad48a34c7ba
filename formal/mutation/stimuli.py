"""What mutants are run with: sets of the benches, small ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tb.harness.bulk import Stalls
from tb.harness.faults import broken_tensors, legal_tensors
from tb.harness.sets import Sets
from tb.harness.tensors import Tensor
from tb.legal import STYLES

__all__ = ["Stimulus", "stimuli"]

_WIDTHS = (16, 32)
_NONE = Stalls()


@dataclass(frozen=True)
class Stimulus:
    """Tensors, pauses, and the cycle of a reset after which they come again (0: none)."""

    name: str
    tensors: Sequence[Tensor]
    stalls: Stalls = _NONE
    reset_at: int = 0


def stimuli(lane: str, seed: int) -> Iterator[Stimulus]:
    """The runs that a mutant of ``lane`` goes through until one kills it."""
    sets = Sets(seed)

    def generated(blocks: int) -> list[Tensor]:
        return [tensor for w in _WIDTHS for tensor in sets.generated(w, blocks)]

    def corner(passes: int, short: bool = False) -> list[Tensor]:
        return [tensor for w in _WIDTHS for tensor in sets.corner(w, passes, short)]

    yield Stimulus("short corner, pauses", corner(1, short=True) + generated(100), Stalls(1, 2))
    yield Stimulus("corner, full rate", corner(1) + generated(400))
    if lane == "decompressor":
        yield Stimulus("broken", _broken(seed, 200))
        legal = [t for w in _WIDTHS for t in legal_tensors(seed, w, 300, STYLES)]
        yield Stimulus("legal", legal)
        yield Stimulus("broken, pauses", _broken(seed + 1, 300), Stalls(0, 3))
    yield Stimulus("reset", generated(100), Stalls(2, 2), reset_at=501)
    yield Stimulus("slow output", corner(1) + generated(600), Stalls(0, 3))
    yield Stimulus("slow input", corner(1) + generated(300), Stalls(3, 0))
    yield Stimulus("generated", generated(3000))
    if lane == "decompressor":
        yield Stimulus("many broken", _broken(seed + 2, 1500))


def _broken(seed: int, faults: int) -> list[Tensor]:
    return [tensor for w in _WIDTHS for tensor in broken_tensors(seed, w, faults)]
