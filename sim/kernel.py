"""Compilation of the numeric kernels, cached on disk.

numba's cache looks only at the file of the function that is called; a kernel that was
compiled into another one and then changed would stay in use, with the old layout of its
arrays. Here the cache of every kernel depends on the text of all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

__all__ = ["inlined", "kernel"]

_FILES = (
    *("evict", "graph", "kernel", "liveness", "machine", "machine_queues", "machine_state"),
    *("prefetch", "replay", "swaps"),
)
_STAMP = hashlib.sha256(
    b"".join((Path(__file__).parent / f"{name}.py").read_bytes() for name in _FILES)
).hexdigest()


def kernel(function: Callable[..., Any], inline: Any = "never") -> Any:
    """Compile ``function`` at its first call, or take it from the cache."""
    compiled: Any = njit(cache=True, inline=inline)(function)
    compiled._cache._cache_file._source_stamp = _STAMP
    return compiled


def inlined(function: Callable[..., Any]) -> Any:
    """Likewise, for small functions of large tuples of arrays: a call would copy them."""
    return kernel(function, "always")
