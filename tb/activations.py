"""The shipped sample of real activations (tb/data/README.md); needs NumPy only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Sample", "samples", "symbol_bits"]

FILE = Path(__file__).resolve().parent / "data" / "activations.npz"


class Sample(NamedTuple):
    """One array of the sample.

    Attributes
    ----------
    name : str
        ``model/producer/dtype``.
    dtype : str
        ``bfloat16``, ``float32``, ``uint8`` or ``int64``.
    data : bytes
        Little-endian elements, a whole number of 4 KB chunks.
    """

    name: str
    dtype: str
    data: bytes


def symbol_bits(dtype: str) -> int:
    """Symbol width of an element type: 16 for bfloat16 and float16, else 32."""
    return 16 if dtype in ("bfloat16", "float16") else 32


def samples(w: int | None = None) -> Iterator[Sample]:
    """The arrays in name order, or those of symbol width ``w``."""
    with np.load(FILE, allow_pickle=False) as arrays:
        for name in sorted(arrays.files):
            dtype = name.rpartition("/")[2]
            if w is None or symbol_bits(dtype) == w:
                yield Sample(name, dtype, arrays[name].tobytes())
