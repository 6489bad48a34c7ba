"""Pause patterns: endless iterators of 0 (go) and 1 (pause), one value a cycle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle, repeat

__all__ = ["PATTERNS", "cyclic", "never", "pattern", "randomly"]

PATTERNS = ("never", "cyclic", "random")


def never() -> Iterator[int]:
    """No pause: full rate."""
    return repeat(0)


def cyclic(bits: str) -> Iterator[int]:
    """``bits`` over and over, such as "011": go, pause, pause.

    Raises
    ------
    ValueError
        If ``bits`` never lets a transfer go.
    """
    if "0" not in bits or set(bits) - {"0", "1"}:
        raise ValueError(f"bits must be a string of 0 and 1 with a 0 in it, not {bits!r}")
    return cycle(int(bit) for bit in bits)


def randomly(rng: random.Random, probability: float = 0.5, burst: int = 1) -> Iterator[int]:
    """Pauses that begin with ``probability`` and last 1 to ``burst`` cycles."""
    while True:
        if rng.random() < probability:
            yield from repeat(1, rng.randint(1, burst))
        else:
            yield 0


def pattern(name: str, rng: random.Random) -> Iterator[int]:
    """The pattern called ``name``, one of :data:`PATTERNS`, for sweeps."""
    if name == "never":
        return never()
    if name == "cyclic":
        return cyclic("".join(rng.choice("01") for _ in range(rng.randint(1, 7))) + "0")
    if name == "random":
        return randomly(rng, *rng.choice(((0.1, 1), (0.1, 20), (0.5, 1), (0.5, 4), (0.9, 1))))
    raise ValueError(f"name must be one of {PATTERNS}, not {name!r}")
