"""Test blocks with values as in training; see generate.py, which registers them.

Each maker takes a generator, the number of blocks and the symbol width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planezip.model.format import BLOCK_BYTES, DEFAULT

__all__ = ["constant", "indices", "mask", "normal", "ramps", "relu"]

Rng = np.random.Generator
Symbols = NDArray[np.uint64]


def _float_bits(values: NDArray[np.float64], w: int) -> Symbols:
    """Bits of float32, or of bfloat16 by cutting off the rest."""
    return (values.astype(np.float32).view(np.uint32) >> np.uint32(32 - w)).astype(np.uint64)


def normal(rng: Rng, count: int, w: int) -> Symbols:
    """Dense normal numbers of many scales and offsets."""
    noise = rng.standard_normal((count, DEFAULT.symbols(w)))
    scale = np.exp(rng.normal(-1, 2, (count, 1)))
    offset = rng.normal(size=(count, 1)) * rng.choice([0, 1, 20], (count, 1))
    return _float_bits((noise + offset) * scale, w)


def relu(rng: Rng, count: int, w: int) -> Symbols:
    """Normal numbers behind a ReLU or ReLU6, of all densities."""
    noise = rng.standard_normal((count, DEFAULT.symbols(w))) * np.exp(rng.normal(0, 1, (count, 1)))
    kept = np.maximum(noise + rng.normal(0, 1.5, (count, 1)), 0)
    return _float_bits(np.minimum(kept, rng.choice([6.0, 1e9], (count, 1))), w)


def mask(rng: Rng, count: int, w: int) -> Symbols:
    """Byte masks with 0 to 100% zeros (dropout: 10%)."""
    keep = rng.choice([0.02, 0.5, 0.9, 0.98], (count, 1))
    return (rng.random((count, BLOCK_BYTES)) < keep).astype(np.uint8).view(f"<u{w // 8}")


def indices(rng: Rng, count: int, w: int) -> Symbols:
    """64-bit indices: rising, repeating or random in a range."""
    shape = (count, BLOCK_BYTES // 8)
    base = rng.integers(1 << 40, size=(count, 1)) >> rng.integers(10, 40, (count, 1))
    step = rng.integers(0, 1 << rng.integers(1, 12, (count, 1)), shape)
    index = base + np.where(rng.random((count, 1)) < 0.7, np.cumsum(step, 1), step)
    return index.astype("<i8").view(f"<u{w // 8}")


def constant(rng: Rng, count: int, w: int) -> Symbols:
    """One value throughout, or a short period of values."""
    period = rng.choice([1, 2, 4, 8], (count, 1))
    values = rng.integers(1 << w, size=(count, 8), dtype=np.uint64)
    return np.take_along_axis(values, np.arange(DEFAULT.symbols(w)) % period, axis=1)


def ramps(rng: Rng, count: int, w: int) -> Symbols:
    """Rising numbers with noise in the low bits, zeros in front of them or behind."""
    symbols = DEFAULT.symbols(w)
    at = np.arange(symbols, dtype=np.uint64)
    limit = np.uint64(1) << rng.integers(0, w // 2, (count, 1), dtype=np.uint64)
    noise = rng.integers(1 << w, size=(count, symbols), dtype=np.uint64) % limit
    base = rng.integers(1 << w, size=(count, 1), dtype=np.uint64)
    ramp = base + at * rng.integers(0, 9, (count, 1), dtype=np.uint64) + noise
    kept = (at < rng.integers(1, symbols + 1, (count, 1))) ^ (rng.random((count, 1)) < 0.5)
    return kept * ramp & np.uint64((1 << w) - 1)
