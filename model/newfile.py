"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["new_file"]


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file for writing; an error inside leaves whatever was there before.

    Raises
    ------
    ValueError
        Where ``path`` is a folder, a device or the like.
    OSError
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise ValueError(f"path must be that of a file, not {str(path)!r}")
    draft = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
    try:
        with draft.open("wb") as file:
            yield file
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
