"""Progress of long runs, on a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType

__all__ = ["Progress"]

SHOWN_FROM_BYTES = 64 << 20
_SECONDS_BETWEEN = 0.2


class Progress:
    """Bytes done of ``total_bytes`` on stderr, if that is a terminal and the job is large."""

    def __init__(self, total_bytes: int, quiet: bool = False) -> None:
        self.total = total_bytes
        self.done = 0
        self.shown = total_bytes >= SHOWN_FROM_BYTES and not quiet and sys.stderr.isatty()
        self.start = self.last = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def add(self, count: int) -> None:
        """``count`` more bytes are done."""
        self.done += count
        now = time.monotonic()
        if self.shown and now - self.last >= _SECONDS_BETWEEN:
            self.last = now
            rate = self.done / (now - self.start)
            text = (
                f"{100 * self.done // self.total:3d}%  {self.done >> 20} of {self.total >> 20} MiB"
            )
            print(f"\r{text}  {rate / 1e6:.0f} MB/s\x1b[K", end="", file=sys.stderr, flush=True)
