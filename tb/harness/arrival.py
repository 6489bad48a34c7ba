"""When a chunk is there: the least time in which the lane can take its wire beats.

A tensor must come out at the full rate *once its stream is there*. With a source that
never stalls that is not a measured time, which a slow input could stretch, but follows
from what the intake may take (:class:`planezip.hdl.intake.Intake`): a cycle per beat, one per
header and per body that does not end its tensor, one per empty tensor and lost chunk.
"""

from __future__ import annotations

from collections.abc import Iterator

from planezip.hdl.intake import entries
from planezip.hdl.types import Mode
from planezip.model.errors import ErrorCode
from planezip.model.format import HEADER_BYTES

__all__ = ["Arrivals"]

_BEAT_BYTES = 64


class Arrivals:
    """Counts the cycles, tensor by tensor, from the first wire beat of a run on."""

    def __init__(self) -> None:
        self._clock: int | None = None

    def of(self, stream: bytes, raw_bytes: int, mode: str) -> Iterator[int]:
        """Cycle in which each chunk of the tensor is there, or known never to come."""
        taken = at = 0
        total = max(1, -(-len(stream) // _BEAT_BYTES))
        found = entries(stream, raw_bytes, Mode[mode.upper()])
        lost = False
        if self._clock is None:
            if not found:
                return
            self._clock = -1 - (mode != "bypass")  # the first header is read before cycle 0
        for k, (body, error, _) in enumerate(found):
            if not lost:
                at += 0 if mode == "bypass" else HEADER_BYTES
                self._clock += mode != "bypass"
                at += len(body or b"")
                if body is None:
                    lost = True
                    needed = total if error == ErrorCode.STREAM_END else -(-at // _BEAT_BYTES)
                else:
                    needed = max(taken, -(-at // _BEAT_BYTES))
                self._clock += needed - taken
                taken = needed
            self._clock += lost
            yield self._clock
            self._clock += not lost and k + 1 < len(found)
        self._clock += total - taken if found else 1
