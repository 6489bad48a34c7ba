"""Exact sizes of data in every encoding, by the size model: nothing is encoded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planezip.model.arrays import check_width, pieces
from planezip.model.format import BLOCK_BYTES, BLOCKS_PER_CHUNK, HEADER_BYTES, Tag
from planezip.model.size_model import run_16, run_32

__all__ = ["Sizes", "measure", "wire_bytes"]


@dataclass(frozen=True)
class Sizes:
    """Sizes of the blocks of a tensor.

    Attributes
    ----------
    w : int
        Symbol width in bits.
    raw_bytes : int
        Bytes of the tensor, padding of the last block excluded.
    bits : int16 [blocks, 5]
        Bits of each block in each encoding, by :class:`Tag`; the 3 bits of the tag included.
    best_bits : int16 [blocks]
        The fewest of them.
    tag : uint8 [blocks]
        The :class:`Tag` that has them; the lowest one of several.
    """

    w: int
    raw_bytes: int
    bits: NDArray[np.int16]
    best_bits: NDArray[np.int16]
    tag: NDArray[np.uint8]

    @property
    def wire_bytes(self) -> int:
        """Bytes on the wire, headers, padding and raw chunks included."""
        if not len(self.best_bits):
            return 0
        starts = np.arange(0, len(self.best_bits), BLOCKS_PER_CHUNK)
        bodies = (np.add.reduceat(self.best_bits.astype(np.int64), starts) + 7) // 8
        raw = np.diff(np.append(starts, len(self.best_bits))) * BLOCK_BYTES
        return int(np.minimum(bodies, raw).sum()) + HEADER_BYTES * len(starts)

    @property
    def ratio(self) -> float:
        """Raw bytes over wire bytes; 1.0 for an empty tensor."""
        return self.raw_bytes / self.wire_bytes if self.raw_bytes else 1.0


def measure(data: NDArray[np.uint8], w: int) -> Sizes:
    """Sizes of all blocks of ``data``, taken as symbols of ``w`` bits.

    Parameters
    ----------
    data : uint8, contiguous
        Bytes of a tensor, in any shape.
    w : int
        16 or 32.
    """
    check_width(w)
    flat = data.reshape(-1)
    blocks = -(-flat.size // BLOCK_BYTES)
    bits = np.empty((blocks, len(Tag)), np.int16)
    best, tags = np.empty(blocks, np.int16), np.empty(blocks, np.uint8)
    at = 0
    for piece in pieces(flat, "<u8"):
        rows = slice(at, at + len(piece))
        (run_16 if w == 16 else run_32)(piece, bits[rows], best[rows], tags[rows])
        at += len(piece)
    return Sizes(w, flat.size, bits, best, tags)


def wire_bytes(data: NDArray[np.uint8], w: int) -> int:
    """Bytes on the wire of ``data``, taken as symbols of ``w`` bits; see :func:`measure`."""
    check_width(w)
    nothing = np.empty((0, len(Tag)), np.int16), np.empty(0, np.int16), np.empty(0, np.uint8)
    run = run_16 if w == 16 else run_32
    return sum(int(run(piece, *nothing)) for piece in pieces(data.reshape(-1), "<u8"))
