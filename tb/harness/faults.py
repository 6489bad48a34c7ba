"""Streams of their own for the decompressor: broken ones, and those no encoder writes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from planezip.model import decode_bytes, encode_bytes
from planezip.model.format import BLOCK_BYTES, BLOCKS_PER_CHUNK
from planezip.model.generate import mixed
from tb.harness.golden import first_fault
from tb.harness.tensors import DTYPES, Tensor
from tb.legal import STYLES, broken, legal_chunk

__all__ = ["broken_tensors", "legal_tensors"]

_MODES = ("stream",) * 8 + ("bypass", "measure")
_POOL_BLOCKS = 4096
_POOL_STREAMS = 200


def broken_tensors(seed: int, w: int, faults: int, short: bool = False) -> list[Tensor]:
    """Tensors of which ``faults`` have a stream in which the codec finds a fault.

    Flipped bits, truncations and extensions of what the encoder writes and of other legal
    streams; between them streams that stay legal, and sound ones. ``short``: of a few blocks.
    """
    rng = random.Random(f"{seed} {w}")
    pool = mixed(_POOL_BLOCKS, w, seed).tobytes()
    sizes = [_blocks(rng, short) for _ in range(_POOL_STREAMS)]
    legal = [(blocks, _legal(rng, w, blocks, STYLES)) for blocks in sizes]
    tensors: list[Tensor] = []
    while faults:
        mode, blocks = rng.choice(_MODES), _blocks(rng, short)
        if rng.randrange(4) or mode == "bypass":
            at = rng.randrange(_POOL_BLOCKS - blocks) * BLOCK_BYTES
            less = rng.choice((0, rng.randrange(BLOCK_BYTES)))
            data = pool[at : at + blocks * BLOCK_BYTES - less]
            stream = data if mode == "bypass" else encode_bytes(data, w)
        else:
            blocks, stream = rng.choice(legal)
            data = bytes(blocks * BLOCK_BYTES)
        if rng.randrange(16):
            stream = broken(rng, stream)
        if mode == "bypass":
            faults -= len(stream) != len(data)
        else:
            faults -= first_fault(stream, len(data), w) is not None
        tensors.append(Tensor(rng.choice(DTYPES[w]), data, mode, stream))
    return tensors


def legal_tensors(seed: int, w: int, blocks: int, styles: Sequence[str]) -> list[Tensor]:
    """About ``blocks`` blocks in tensors of legal streams, chunks of ``styles`` in turn."""
    rng = random.Random(f"{seed} {w} {styles}")
    tensors: list[Tensor] = []
    while blocks > 0:
        size = rng.choice((1, 2, rng.randint(1, 31), 32, 32, 33, rng.randint(32, 200)))
        stream = _legal(rng, w, size, styles)
        data = decode_bytes(stream, size * BLOCK_BYTES, w)
        tensors.append(Tensor(rng.choice(DTYPES[w]), data, "stream", stream))
        blocks -= size
    return tensors


def _blocks(rng: random.Random, short: bool) -> int:
    """Blocks of a tensor: a few, now and then more than a chunk."""
    n = BLOCKS_PER_CHUNK
    if short:
        return rng.randint(1, 4)
    return rng.choice((*(rng.randint(1, 6) for _ in range(7)), rng.randint(n - 2, 2 * n + 2)))


def _legal(rng: random.Random, w: int, blocks: int, styles: Sequence[str]) -> bytes:
    return b"".join(
        legal_chunk(rng, min(BLOCKS_PER_CHUNK, blocks - first), w, style=rng.choice(styles))
        for first in range(0, blocks, BLOCKS_PER_CHUNK)
    )
