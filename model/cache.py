"""Key that renews numba's compiled code when a file that it was made from changes."""

from __future__ import annotations

import zlib
from pathlib import Path

__all__ = ["source_key"]


def source_key(*names: str) -> int:
    """Checksum of modules of this package, for a closure variable of a cached function.

    numba looks at the file of the cached function only, not at those of the functions and
    constants that it uses, but the values of its closure variables are part of its key.
    """
    folder = Path(__file__).parent
    return zlib.crc32(b"".join((folder / f"{name}.py").read_bytes() for name in names))
