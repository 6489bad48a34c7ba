"""Element types: names, NumPy dtypes and symbol widths (docs/format.md, first table)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DTYPES", "dtype_of", "name_of", "symbol_bits"]

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, name, name))
    for name in (
        *("bfloat16", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"),
        *("float8_e4m3fn", "float8_e5m2", "complex64", "complex128"),
    )
}
"""NumPy dtype of every element type, by the name that streams and files carry."""


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy dtype of an element type's name; ValueError for an unknown one."""
    try:
        return DTYPES[name]
    except KeyError:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {name!r}") from None


def name_of(dtype: np.dtype[Any]) -> str:
    """Name of a NumPy dtype of either byte order.

    Raises
    ------
    TypeError
        For a dtype without fixed-size numbers in it (object, string, structured, ...).
    """
    name = np.dtype(dtype).name
    if name not in DTYPES:
        raise TypeError(f"dtype must be one of {', '.join(DTYPES)}, not {name!r}")
    return name


def symbol_bits(name: str) -> int:
    """Symbol width w of an element type: 16 for bfloat16 and float16, else 32."""
    dtype_of(name)
    return 16 if name in ("bfloat16", "float16") else 32
