"""Bits in words, for encoder and decoder: transposition over lanes, reversal, bit strings.

Words are uint64. LANES blocks lie side by side, one vector lane each: ``x[row * LANES + lane]``.
Indices of inner loops are unsigned or start from a slice: numba then leaves out the code
for negative ones, which keeps the compiler from using vectors.
"""

from __future__ import annotations

import numba
import numpy as np

from planezip.model.format import BLOCKS_PER_CHUNK

__all__ = [
    "LANES",
    "compaction",
    "compress",
    "copy",
    "expand",
    "load",
    "log2_ceil",
    "popcount",
    "put",
    "reverse",
    "transpose",
]

U = np.uint64
LANES = BLOCKS_PER_CHUNK


@numba.njit(inline="always")
def popcount(x):
    """Number of ones."""
    x = x - ((x >> U(1)) & U(0x5555555555555555))
    x = (x & U(0x3333333333333333)) + ((x >> U(2)) & U(0x3333333333333333))
    x = (x + (x >> U(4))) & U(0x0F0F0F0F0F0F0F0F)
    return (x * U(0x0101010101010101)) >> U(56)


@numba.njit(inline="always")
def log2_ceil(n):
    """``ceil(log2(n))`` for n up to 64; 0 for 0 and 1."""
    return U(n > U(1)) + U(n > U(2)) + U(n > U(4)) + U(n > U(8)) + U(n > U(16)) + U(n > U(32))


@numba.njit(inline="always")
def reverse(x):
    """The 64 bits in opposite order."""
    x = ((x >> U(1)) & U(0x5555555555555555)) | ((x & U(0x5555555555555555)) << U(1))
    x = ((x >> U(2)) & U(0x3333333333333333)) | ((x & U(0x3333333333333333)) << U(2))
    x = ((x >> U(4)) & U(0x0F0F0F0F0F0F0F0F)) | ((x & U(0x0F0F0F0F0F0F0F0F)) << U(4))
    x = ((x >> U(8)) & U(0x00FF00FF00FF00FF)) | ((x & U(0x00FF00FF00FF00FF)) << U(8))
    x = ((x >> U(16)) & U(0x0000FFFF0000FFFF)) | ((x & U(0x0000FFFF0000FFFF)) << U(16))
    return (x >> U(32)) | (x << U(32))


@numba.njit
def copy(source, target):
    """Copies the first ``source.size`` items; numba's assignment of slices is far slower."""
    for k in range(source.size):
        target[k] = source[k]


@numba.njit
def put(words, at, value):
    """ORs ``value`` into the bit string ``words`` from bit ``at`` on."""
    word, shift = U(at) >> U(6), U(at) & U(63)
    words[word] |= value << shift
    words[word + U(1)] |= (value >> U(1)) >> (U(63) - shift)


@numba.njit
def load(words, at):
    """The 64 bits of the bit string ``words`` from bit ``at`` on."""
    word, shift = U(at) >> U(6), U(at) & U(63)
    return (words[word] >> shift) | ((words[word + U(1)] << U(1)) << (U(63) - shift))


@numba.njit
def transpose(a, w):
    """Transposes the bit matrices of each lane in place: 64 / w of w x w bits in 16 rows.

    For w = 16, row j of ``a`` holds row j of four 16 x 16 matrices, one in each 16 bits.
    For w = 32, it holds rows j and j + 16 of one 32 x 32 matrix.
    """
    if w == 32:
        for k in range(16 * LANES):
            t = ((a[k] >> U(16)) ^ a[k]) & U(0xFFFF0000)
            a[k] ^= t ^ (t << U(16))
    for step, mask in (
        (8, U(0x00FF00FF00FF00FF)),
        (4, U(0x0F0F0F0F0F0F0F0F)),
        (2, U(0x3333333333333333)),
        (1, U(0x5555555555555555)),
    ):
        for row in range(16):
            if row & step == 0:
                i, j = row * LANES, (row + step) * LANES
                for k in range(LANES):
                    t = ((a[i + k] >> U(step)) ^ a[j + k]) & mask
                    a[j + k] ^= t
                    a[i + k] ^= t << U(step)


@numba.njit
def compaction(masks, moves):
    """Moves that push the ones of each lane's mask together, for compress() and expand().

    Row i of ``moves`` marks the bits that go down by 2^i places (Warren, Hacker's Delight,
    section 7-4).
    """
    for k in range(LANES):
        mask = masks[k]
        gaps = ~mask << U(1)
        for i in range(6):
            parity = gaps ^ (gaps << U(1))
            parity ^= parity << U(2)
            parity ^= parity << U(4)
            parity ^= parity << U(8)
            parity ^= parity << U(16)
            parity ^= parity << U(32)
            move = parity & mask
            moves[i * LANES + k] = move
            mask = (mask ^ move) | (move >> U(1 << i))
            gaps &= ~parity


@numba.njit
def compress(a, rows, moves):
    """Pushes the bits under each lane's mask together, in place; the others must be zero."""
    for row in range(rows):
        plane = a[row * LANES :]
        for k in range(LANES):
            x = plane[k]
            for i in range(6):
                moved = x & moves[i * LANES + k]
                x = (x ^ moved) | (moved >> U(1 << i))
            plane[k] = x


@numba.njit
def expand(a, rows, masks, moves):
    """Inverse of compress(), in place; bits outside the mask become zero."""
    for row in range(rows):
        plane = a[row * LANES :]
        for k in range(LANES):
            x = plane[k]
            for i in range(5, -1, -1):
                move = moves[i * LANES + k]
                x = (x & ~move) | ((x << U(1 << i)) & move)
            plane[k] = x & masks[k]
