"""Tensors for the cases of the format that random data hardly ever have (make coverage)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from planezip.model import encode_bytes
from planezip.model.format import (
    BLOCK_BYTES,
    BLOCKS_PER_CHUNK,
    CHUNK_BYTES,
    DEFAULT,
    HEADER_BYTES,
    TAG_BITS,
    PlaneCode,
    Tag,
)
from planezip.model.reference import bits_of
from tb.harness.tensors import DTYPES, Tensor
from tb.legal import LegalBlock, chunk_of

__all__ = ["directed_faults", "directed_tensors", "short_tensors"]

_CODED_BLOCKS = (1, 2, 3, 5, 10, 11, 17, 31)
_SHORT_TENSORS = 150  # more than twice the chunks that wait in a decompressor


def directed_tensors(seed: int, w: int) -> list[Tensor]:
    """Chunks of every number of blocks stored as they are, tensors of every tail, sizes at the
    borders, ties, masks of nearly all symbols, many runs."""
    rng = random.Random(f"{seed} {w} directed")
    raw = [rng.randbytes(m * BLOCK_BYTES) for m in range(1, BLOCKS_PER_CHUNK + 1)]
    tails = [rng.randbytes(size) for size in range(1, BLOCK_BYTES)]
    coded = [b"".join(_ramp(rng, w) for _ in range(m)) for m in _CODED_BLOCKS]
    parts = [*raw, *tails, *coded, _words([1] * DEFAULT.symbols(w), w), _below_raw(rng, w)]
    parts += [_tie()] if w == 32 else []
    parts += [b"".join(_few_zeros(rng, w) for _ in range(BLOCKS_PER_CHUNK)) for _ in range(2)]
    rng.shuffle(parts)
    made = [Tensor(rng.choice(DTYPES[w]), data) for data in parts]
    made.append(Tensor(DTYPES[w][0], bytes(BLOCK_BYTES)))  # a run of all planes
    runs = b"".join(_many_runs(rng, w) for _ in range(BLOCKS_PER_CHUNK))
    return [*made, Tensor(DTYPES[w][0], runs)]


def directed_faults(seed: int, w: int) -> list[Tensor]:
    """Streams with a fault in their second chunk, of the kinds that flipped bits rarely make."""
    rng = random.Random(f"{seed} {w} directed faults")
    return [
        Tensor(
            rng.choice(DTYPES[w]),
            bytes(size),
            "stream",
            encode_bytes(b"".join(_ramp(rng, w) for _ in range(BLOCKS_PER_CHUNK)), w) + second,
        )
        for size, second in _second_chunks(w)
    ]


def short_tensors(seed: int) -> list[Tensor]:
    """Tensors of one block in one wire beat: with a slow output they fill the queue of chunks."""
    rng = random.Random(f"{seed} short tensors")
    widths = [rng.choice((16, 32)) for _ in range(_SHORT_TENSORS)]
    return [
        Tensor(rng.choice(DTYPES[w]), _words([rng.getrandbits(w)] * DEFAULT.symbols(w), w))
        for w in widths
    ]


def _second_chunks(w: int) -> Iterator[tuple[int, bytes]]:
    """Bytes of a tensor of two chunks, and a second chunk with a fault."""
    run = [*PlaneCode.ZERO_RUN.prefix], [0, DEFAULT.run_bits(Tag.BX, w)]
    zero = LegalBlock(
        [*bits_of(Tag.BX, TAG_BITS), *(bit for code in run for bit in bits_of(*code))]
    )
    two, one = CHUNK_BYTES + 2 * BLOCK_BYTES, CHUNK_BYTES + BLOCK_BYTES
    large = BLOCK_BYTES + 1
    yield one, large.to_bytes(HEADER_BYTES, "little") + bytes(large)  # CHUNK_SIZE
    yield two, chunk_of([zero, zero], more=1)  # TRAILING
    yield two, chunk_of([zero, zero], padding=1)  # PADDING
    yield one - 1, BLOCK_BYTES.to_bytes(HEADER_BYTES, "little") + b"\1" * BLOCK_BYTES  # TAIL


def _words(values: Iterable[int], w: int) -> bytes:
    return b"".join((value % (1 << w)).to_bytes(w // 8, "little") for value in values)


def _ramp(rng: random.Random, w: int) -> bytes:
    """A block that DBX codes in a few bytes."""
    start, step = rng.getrandbits(w), rng.getrandbits(4)
    return _words((start + step * k for k in range(DEFAULT.symbols(w))), w)


def _few_zeros(rng: random.Random, w: int) -> bytes:
    """A block that ZBX codes in a few bytes, with all but a few symbols."""
    n = DEFAULT.symbols(w)
    values = [rng.getrandbits(w) | 1] * n
    for k in rng.sample(range(n), rng.randint(1, n // 8)):
        values[k] = 0
    return _words(values, w)


def _many_runs(rng: random.Random, w: int) -> bytes:
    """A block whose planes have as many runs of zeros in BX as there can be, or nearly.

    With few symbols ZVC is a little shorter: one run too few would change the choice.
    """
    n = DEFAULT.symbols(w)
    there = sum(1 << k for k in rng.sample(range(n), rng.choice((1, 2, 3, 4, n))))
    planes: list[int] = []
    plane = rng.getrandbits(n) & there
    while len(planes) < w:
        planes += [plane] * (3 if rng.randrange(8) else 4)
        plane ^= rng.getrandbits(n) & there
    planes = planes[rng.randrange(3) :][:w]
    planes += [plane] * (w - len(planes))
    return _words((sum((bits >> k & 1) << j for j, bits in enumerate(planes)) for k in range(n)), w)


def _below_raw(rng: random.Random, w: int) -> bytes:
    """Blocks whose coded form is a byte shorter than their own bytes: RAW, one of them ZVC."""
    # Bits of a chunk beyond those of its blocks: 3 for RAW, zeros of ZVC save w each.
    zeros, raw = next(
        (z, m)
        for m in range(BLOCKS_PER_CHUNK)
        for z in range(1, DEFAULT.symbols(w))
        if -16 < TAG_BITS * (m + 1) + DEFAULT.symbols(w) - w * z <= -8
    )
    symbols = [rng.getrandbits(w) | 1 for _ in range(DEFAULT.symbols(w) * (raw + 1))]
    symbols[:zeros] = [0] * zeros
    return _words(symbols, w)


def _tie() -> bytes:
    """A block, w = 32, of which ZVC and DBX take 387 bits, fewer than the others."""
    zeros = [0] * (DEFAULT.symbols(32) - 11)
    return _words([*zeros, *(514_423_048 * k for k in range(1, 12))], 32)  # found by search
