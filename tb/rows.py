"""Chunks of bytes as rows of the engine's queues."""

from __future__ import annotations

import random

__all__ = ["rows_of"]


def rows_of(
    rng: random.Random, data: bytes, size: int, noise: bool = False
) -> list[dict[str, int]]:
    """A chunk as rows; one without bytes is one row. Noise behind the end if ``noise``."""
    made = []
    for at in range(0, max(len(data), 1), size):
        part = data[at : at + size]
        behind = rng.randbytes(size - len(part)) if noise else b""
        made.append(
            {
                "data": int.from_bytes(part + behind, "little"),
                "bytes": len(part),
                "last": int(at + size >= len(data)),
            }
        )
    return made
