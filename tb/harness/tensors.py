"""Tensors for the bulk harness: distinct blocks, cut into tensors of mixed lengths."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planezip.model.format import BLOCK_BYTES, BLOCKS_PER_CHUNK

__all__ = ["DTYPES", "Blocks", "Tensor", "as_blocks", "cut", "distinct"]

Blocks = NDArray[np.uint8]
DTYPES = {16: ("bfloat16", "float16"), 32: ("float32", "int64", "uint8", "bool", "int16")}


@dataclass(frozen=True)
class Tensor:
    """Element type (lower-case name of hdl.types.ElementType), bytes, mode.

    ``stream``: what a decompressor is given; by default what the golden codec writes. Where it
    is broken, ``data`` only says how many bytes the descriptor promises.
    """

    dtype: str
    data: bytes
    mode: str = "stream"
    stream: bytes | None = None

    @property
    def symbol_bits(self) -> int:
        return 16 if self.dtype in DTYPES[16] else 32

    @property
    def blocks(self) -> int:
        return -(-len(self.data) // BLOCK_BYTES)

    @property
    def chunks(self) -> list[int]:
        """Blocks of each chunk."""
        return [
            min(BLOCKS_PER_CHUNK, self.blocks - k) for k in range(0, self.blocks, BLOCKS_PER_CHUNK)
        ]


def as_blocks(parts: Iterable[bytes]) -> Blocks:
    """Whole blocks of ``parts``, each padded with zeros, as ``[blocks, 128]``."""
    padded = [part + bytes(-len(part) % BLOCK_BYTES) for part in parts]
    return np.frombuffer(b"".join(padded), np.uint8).reshape(-1, BLOCK_BYTES)


def distinct(blocks: Blocks, seen: set[bytes], limit: int | None = None) -> Blocks:
    """The first ``limit`` blocks not in ``seen`` yet, each once; they are added to it."""
    keep: list[int] = []
    for k, block in enumerate(blocks):
        key = block.tobytes()
        if len(keep) == limit:
            break
        if key not in seen:
            seen.add(key)
            keep.append(k)
    return blocks[keep]


def _lengths(rng: random.Random) -> Iterator[int]:
    """Blocks per tensor: long ones, single blocks, odd chunks, full chunks and one more."""
    n = BLOCKS_PER_CHUNK
    while True:
        yield rng.choice(
            (
                rng.randint(1, 3),
                rng.randint(1, n - 1),
                n,
                n + 1,
                2 * n,
                rng.randint(n, 10 * n),
                rng.randint(10 * n, 60 * n),
            )
        )


def cut(blocks: Blocks, w: int, seed: int, seen: set[bytes], empty: float = 0.0) -> list[Tensor]:
    """``blocks`` in order, as tensors of mixed lengths and element types of width ``w``.

    The first tensor is two chunks or longer. Some tensors end within their last block (only
    if its padded form is a block not seen yet); with probability ``empty`` a tensor without
    bytes follows.
    """
    rng = random.Random(seed)
    tensors: list[Tensor] = []
    at = 0
    for length in _lengths(rng):
        if at >= len(blocks):
            return tensors
        length = max(length, 2 * BLOCKS_PER_CHUNK) if not tensors else length
        data = blocks[at : at + length].tobytes()
        at += length
        if rng.random() < 0.5:
            left = rng.randint(1, BLOCK_BYTES - 1)
            tail = data[len(data) - BLOCK_BYTES :][:left] + bytes(BLOCK_BYTES - left)
            if tail not in seen:
                seen.add(tail)
                data = data[: len(data) - BLOCK_BYTES + left]
        tensors.append(Tensor(rng.choice(DTYPES[w]), data))
        if rng.random() < empty:
            tensors.append(Tensor(rng.choice(DTYPES[w]), b""))
    return tensors
