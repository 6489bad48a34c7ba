"""Sampling of large tensors on whole chunks (paper Section IV, Tensor capture)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planezip.model.format import CHUNK_BYTES

__all__ = ["SAMPLE_ABOVE_BYTES", "SAMPLE_EVERY", "sample_chunks", "scale_bytes"]

SAMPLE_ABOVE_BYTES = 32 << 20
"""Tensors above this size, in the type that is compressed, are sampled."""

SAMPLE_EVERY = 4
"""One chunk of so many is taken, from the first on."""


def sample_chunks(
    data: NDArray[np.uint8], above_bytes: int = SAMPLE_ABOVE_BYTES
) -> tuple[NDArray[np.uint8], int]:
    """Every fourth chunk of 4 KB of ``data`` if it is large, and 4; else all of it, and 1.

    Parameters
    ----------
    data : uint8 [bytes]
    above_bytes : int
        Larger data are sampled.
    """
    if data.size <= above_bytes:
        return data, 1
    whole = data.size // CHUNK_BYTES
    chunks = data[: whole * CHUNK_BYTES].reshape(whole, CHUNK_BYTES)[::SAMPLE_EVERY]
    if whole % SAMPLE_EVERY == 0:  # the chunk that is not full would be the next one
        return np.concatenate([chunks.reshape(-1), data[whole * CHUNK_BYTES :]]), SAMPLE_EVERY
    return np.ascontiguousarray(chunks).reshape(-1), SAMPLE_EVERY


def scale_bytes(wire_bytes: int, sampled_bytes: int, raw_bytes: int) -> int:
    """Wire bytes of the whole tensor from those of its sample, to the nearest byte."""
    if sampled_bytes == raw_bytes:
        return wire_bytes
    return (2 * wire_bytes * raw_bytes + sampled_bytes) // (2 * sampled_bytes)
