"""Progress of a capture on a terminal, with an estimate of the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from planezip.sim.session import Reporter

__all__ = ["CaptureProgress"]

_BETWEEN_SECONDS = 1.0


class CaptureProgress(Reporter):
    """One line on stderr that is written over, if that is a terminal.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    name : str
        What is captured, in front of the line.
    """

    def __init__(self, quiet: bool = False, name: str = "") -> None:
        self.shown = not quiet and sys.stderr.isatty()
        self.name = f"{name}: " if name else ""
        self.last = 0.0

    def training(self, done: int, steps: int, loss: float, seconds_left: float) -> None:
        """One more step is done."""
        self._line(f"training: {done} of {steps}, loss {loss:.3f}, {_duration(seconds_left)} left")

    def capturing(self, total_bytes: int) -> Callable[[int], None]:
        """The capture starts."""
        done = 0
        start = time.monotonic()

        def add(count: int) -> None:
            nonlocal done
            done += count
            share = min(done / total_bytes, 1.0) if total_bytes else 1.0
            left = (time.monotonic() - start) * (1 - share) / share if share else 0.0
            self._line(f"capturing: {100 * share:.0f}%, {_duration(left)} left")

        return add

    def clear(self) -> None:
        """Leave the line empty."""
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _line(self, text: str) -> None:
        now = time.monotonic()
        if self.shown and now - self.last >= _BETWEEN_SECONDS:
            self.last = now
            print(f"\r{self.name}{text}\x1b[K", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
