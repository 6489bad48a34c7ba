"""Strict comparison of what a port gives with what was expected."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from tb.layouts import fields_at
from tb.streams import StreamPort

__all__ = ["Scoreboard", "difference"]


def difference(expected: int, actual: int, width: int, layout: Any = None) -> str:
    """Both bit strings (bit 0 first) of ``width`` bits and where they part."""
    first = ((expected ^ actual) & -(expected ^ actual)).bit_length() - 1
    return "\n".join(
        (
            f"first difference at bit {first} ({fields_at(layout, first)}); bit 0 first:",
            f"  expected {_bits(expected, width)}",
            f"  actual   {_bits(actual, width)}",
            f"           {' ' * first}^",
        )
    )


def _bits(value: int, width: int) -> str:
    return f"{value:0{width}b}"[::-1]


class Scoreboard:
    """Values expected at a port, in order; every transfer is compared at once.

    Content, order and count are checked: a wrong, missing or additional value fails.
    (``last`` and the byte count of a beat are fields of its payload.)

    Parameters
    ----------
    port : StreamPort
    seed : int
        Printed with a failure.
    """

    def __init__(self, port: StreamPort, seed: int) -> None:
        self.port = port
        self.seed = seed
        self.checked = 0
        self._expected: deque[tuple[int, str]] = deque()

    def expect(self, *values: Any, label: str = "") -> None:
        """Queue values; ``label`` names the tensor or block that they belong to."""
        self._expected.extend((self.port.pack(value), label) for value in values)

    def extend(self, values: Iterable[Any], label: str = "") -> None:
        self.expect(*values, label=label)

    @property
    def left(self) -> int:
        """Values still expected."""
        return len(self._expected)

    def clear(self) -> None:
        """Drop what is expected, for a reset."""
        self._expected.clear()

    def check(self, actual: int) -> None:
        """Compare one transfer.

        Raises
        ------
        AssertionError
            With seed, block, both bit strings and where they part.
        """
        if not self._expected:
            raise AssertionError(
                f"{self._where('')}: value {actual:#x} is one too many, after {self.checked}"
            )
        expected, label = self._expected.popleft()
        if actual != expected:
            raise AssertionError(
                f"{self._where(label)}: value {self.checked} is wrong,"
                f" {difference(expected, actual, self.port.width, self.port.layout)}"
            )
        self.checked += 1

    def finish(self) -> None:
        """Fail if a value is missing, or if nothing was compared."""
        if self._expected:
            value, label = self._expected[0]
            raise AssertionError(
                f"{self._where(label)}: {self.left} values missing after {self.checked},"
                f" the next one is {value:#x}"
            )
        if not self.checked:
            raise AssertionError(f"{self._where('')}: nothing was compared")

    def _where(self, label: str) -> str:
        return f"{self.port.name}{', ' + label if label else ''} (seed {self.seed})"
