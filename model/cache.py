"""Compiled code of the numba kernels on disk."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

__all__ = ["cached", "source_key"]


def cached(function: Callable[..., Any]) -> Any:
    """Compiles on first use, without the interpreter lock, and keeps the code on disk.

    Where neither this folder nor the user's cache can be written, on every start anew.
    """
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # numba finds no folder for its cache
        return numba.njit(nogil=True)(function)


def source_key(*names: str) -> int:
    """Checksum of modules of this package, for a closure variable of a cached function.

    numba renews its code when the file of the cached function changes, but not for the
    files of the functions and constants that it uses; the values of the closure variables
    are part of its key, however.
    """
    folder = Path(__file__).parent
    return zlib.crc32(b"".join((folder / f"{name}.py").read_bytes() for name in names))
