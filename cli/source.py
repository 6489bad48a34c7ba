"""A tensor in a file, read piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planezip.cli.errors import CliError
from planezip.model import dtypes
from planezip.model.format import CHUNK_BYTES

__all__ = ["PIECE_BYTES", "Piece", "Source", "damaged", "map_pieces", "regroup"]

PIECE_BYTES = 4096 * CHUNK_BYTES
Piece = NDArray[np.uint8]


@dataclass(frozen=True)
class Source:
    """A tensor in a file.

    Attributes
    ----------
    file, name : str
        Path of the file, and the tensor's name in it.
    dtype : str
    shape : tuple of int
    pieces : callable
        Yields the little-endian bytes in C order, uint8 [PIECE_BYTES], the last piece
        shorter.
    """

    file: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[Piece]]

    @property
    def raw_bytes(self) -> int:
        """Bytes of the tensor."""
        return math.prod(self.shape) * dtypes.dtype_of(self.dtype).itemsize


def regroup(parts: Iterator[Piece]) -> Iterator[Piece]:
    """Pieces of any length as pieces of ``PIECE_BYTES``."""
    held: list[Piece] = []
    size = 0
    for part in parts:
        while size + part.size >= PIECE_BYTES:
            cut = PIECE_BYTES - size
            yield np.concatenate([*held, part[:cut]]) if held else part[:cut]
            held, size, part = [], 0, part[cut:]
        if part.size:
            held.append(part)
            size += part.size
    if held:
        yield np.concatenate(held)


def map_pieces(path: str, start: int, end: int) -> Callable[[], Iterator[Piece]]:
    """Bytes ``start`` to ``end`` of a file, mapped piece by piece."""

    def pieces() -> Iterator[Piece]:
        for at in range(start, end, PIECE_BYTES):
            yield np.memmap(path, np.uint8, "r", at, (min(PIECE_BYTES, end - at),))

    return pieces


@contextmanager
def damaged(what: str) -> Iterator[None]:
    """Whatever NumPy and zipfile raise for damaged input, as one CliError."""
    try:
        yield
    except CliError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CliError(f"{what}: damaged or not supported: {error}") from None
