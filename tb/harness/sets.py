"""Data of the bulk runs: shipped activations, generated blocks, corner lengths.

All sets of a width share one memory of blocks, so that no block is counted twice, on
whatever simulator it runs.
"""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

import numpy as np

from planezip.model.format import BLOCK_BYTES, CHUNK_BYTES
from planezip.model.generate import mixed
from tb.activations import samples
from tb.harness.tensors import DTYPES, Blocks, Tensor, as_blocks, cut, distinct
from tb.shared import shared

__all__ = ["Sets"]

_ROOT = Path(__file__).resolve().parent.parent.parent
_MODES = ("stream", "stream", "bypass", "measure")
_CORNER_BYTES = (
    *(1, 2, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 0, 255, 256, 257),
    *(0, 0, 1, 0, 5 * BLOCK_BYTES, CHUNK_BYTES + 1),
)
_LONG_BYTES = (
    *(CHUNK_BYTES + d for d in (-129, -128, -1, 0, 32, 128)),
    *(2 * CHUNK_BYTES + d for d in (-128, -1, 0, 1)),
    3 * CHUNK_BYTES + 5,
)


@lru_cache(32)  # the lanes' sets of a seed are made of the same blocks
def _candidates(count: int, w: int, seed: int) -> Blocks:
    """More generated blocks than ``count``, as some are there twice."""
    return mixed(count + count // 4 + 64, w, seed)


class Sets:
    """Sets of tensors, deterministic in ``seed``, without a block that came before."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._turn = 0
        self._seen: dict[int, set[bytes]] = {16: set(), 32: set()}

    def real(self, w: int) -> list[Tensor]:
        """All shipped activations, whatever their own width, as symbols of ``w`` bits."""
        return self._cut(as_blocks(sample.data for sample in samples()), w)

    def shared(self, w: int) -> list[Tensor]:
        """All activations of the folder of test inputs; none where it is absent."""
        files = sorted(shared("activations").glob("*/*.npy"))
        return self._cut(as_blocks(np.load(file).tobytes() for file in files), w)

    def generated(self, w: int, blocks: int) -> list[Tensor]:
        """``blocks`` generated blocks of all kinds."""
        return cut(self._generate(w, blocks), w, self._seed, self._seen[w])

    def corner(self, w: int, passes: int = 1, short: bool = False) -> list[Tensor]:
        """Tensors of all lengths around beats, blocks and chunks, ``passes`` times, shuffled.

        Half of them in mode stream, the others in bypass and measure; ``short`` leaves most
        of those of a chunk and more out.
        """
        rng = random.Random(f"{self._seed} {w} {passes}")
        every = _CORNER_BYTES if short else (*_CORNER_BYTES, *_LONG_BYTES)
        sizes = [size for _ in range(passes) for size in rng.sample(every, len(every))]
        blocks = self._generate(w, sum(size // BLOCK_BYTES for size in sizes))
        tensors, at = [], 0
        for size in sizes:
            whole = size // BLOCK_BYTES
            data = blocks[at : at + whole].tobytes() + self._tail(w, size % BLOCK_BYTES, rng)
            at += whole
            tensors.append(Tensor(rng.choice(DTYPES[w]), data, rng.choice(_MODES)))
        return tensors

    def _cut(self, blocks: Blocks, w: int) -> list[Tensor]:
        return cut(distinct(blocks, self._seen[w]), w, self._seed, self._seen[w])

    def _generate(self, w: int, count: int) -> Blocks:
        """``count`` generated blocks that were not seen yet."""
        made = [np.zeros((0, BLOCK_BYTES), np.uint8)]
        while (missing := count - sum(map(len, made))) > 0:
            self._turn += 1
            candidates = _candidates(missing, w, self._seed * 1_000_000 + self._turn)
            made.append(distinct(candidates, self._seen[w], limit=missing))
        return np.concatenate(made)

    def _tail(self, w: int, size: int, rng: random.Random) -> bytes:
        """``size`` bytes that are, padded with zeros, a block not seen yet."""
        while size:
            tail = rng.randbytes(size)
            block = tail + bytes(BLOCK_BYTES - size)
            if block not in self._seen[w]:
                self._seen[w].add(block)
                return tail
        return b""
