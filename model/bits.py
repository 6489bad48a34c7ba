"""Bits in words, for encoder and decoder: planes of many blocks at once, bit strings.

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
    "add_up",
    "compaction",
    "compress",
    "copy",
    "expand",
    "join_planes",
    "load",
    "log2_ceil",
    "popcount",
    "put",
    "reverse",
    "split_planes",
    "subtract",
]

U = np.uint64
LANES = BLOCKS_PER_CHUNK
# Masks of the lower half of every 2, 4, ..., 64 bits.
_BITS, _PAIRS, _NIBBLES = U(0x5555555555555555), U(0x3333333333333333), U(0x0F0F0F0F0F0F0F0F)
_BYTES, _QUARTERS, _HALVES = U(0x00FF00FF00FF00FF), U(0x0000FFFF0000FFFF), U(0x00000000FFFFFFFF)


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


@numba.njit(inline="always")
def _swap(a, steps):
    """Stages of a butterfly network, each a step, a shift and a mask.

    Bits ``shift`` and up of each 2 ``shift`` change places with the lower ones ``step``
    rows further on.
    """
    for step, shift, mask in steps:
        for row in range(16):
            if row & step == 0:
                i, j = row * LANES, (row + step) * LANES
                for k in range(LANES):
                    t = ((a[i + k] >> U(shift)) ^ a[j + k]) & mask
                    a[j + k] ^= t
                    a[i + k] ^= t << U(shift)


@numba.njit
def _swap_within(a):
    """Swaps the middle two quarters of each word."""
    for k in range(16 * LANES):
        t = ((a[k] >> U(16)) ^ a[k]) & U(0xFFFF0000)
        a[k] ^= t ^ (t << U(16))


@numba.njit
def split_planes(a, planes, w):
    """Planes 0 to w - 1 of the symbols in the 16 words of each lane; overwrites the words.

    A butterfly network transposes the bits: first whole symbols, so that a word has the
    symbols i, i + 16, ..., then the bits of those. Row r of plane p is then in row
    r % 4 * 4 + r // 4 (w = 16) or r % 2 * 8 + r // 2 (w = 32).
    """
    _swap(a, ((8, 32, _HALVES),))
    if w == 16:
        _swap(
            a, ((4, 16, _QUARTERS), (2, 8, _BYTES), (1, 4, _NIBBLES), (8, 2, _PAIRS), (4, 1, _BITS))
        )
        for p in range(16):
            copy(a[(p % 4 * 4 + p // 4) * LANES :][:LANES], planes[p * LANES :])
    else:
        _swap_within(a)
        _swap(a, ((4, 8, _BYTES), (2, 4, _NIBBLES), (1, 2, _PAIRS), (8, 1, _BITS)))
        for p in range(16):
            source = a[(p % 2 * 8 + p // 2) * LANES :]
            low, high = planes[p * LANES :], planes[(16 + p) * LANES :]
            for k in range(LANES):
                low[k] = source[k] & U(0xFFFFFFFF)
                high[k] = source[k] >> U(32)


@numba.njit
def join_planes(planes, a, w):
    """Inverse of split_planes()."""
    if w == 16:
        for p in range(16):
            copy(planes[p * LANES :][:LANES], a[(p % 4 * 4 + p // 4) * LANES :])
        _swap(
            a, ((4, 1, _BITS), (8, 2, _PAIRS), (1, 4, _NIBBLES), (2, 8, _BYTES), (4, 16, _QUARTERS))
        )
    else:
        for p in range(16):
            into = a[(p % 2 * 8 + p // 2) * LANES :]
            low, high = planes[p * LANES :], planes[(16 + p) * LANES :]
            for k in range(LANES):
                into[k] = low[k] | (high[k] << U(32))
        _swap(a, ((8, 1, _BITS), (1, 2, _PAIRS), (2, 4, _NIBBLES), (4, 8, _BYTES)))
        _swap_within(a)
    _swap(a, ((8, 32, _HALVES),))


@numba.njit
def subtract(words, deltas, borrow, w):
    """Deltas of neighbouring symbols modulo 2^w, a zero behind them, and their plane w.

    ``words`` has a row of zeros behind its 16. All symbols of a word at once: the top bit
    of each is kept out of the subtraction, so that no borrow crosses.
    """
    top = U(0x8000800080008000) if w == 16 else U(0x8000000080000000)
    per_word = 64 // w
    for k in range(LANES):
        borrow[k] = U(0)
    for j in range(16):
        here, after = words[j * LANES :], words[(j + 1) * LANES :]
        into = deltas[j * LANES :]
        place = U(j * per_word)
        for k in range(LANES):
            b = here[k]
            a = (b >> U(w)) | (after[k] << U(64 - w))
            d = ((a | top) - (b & ~top)) ^ ((a ^ ~b) & top)
            into[k] = d
            c = (~a & b | ~(a ^ b) & d) & top
            if w == 16:
                c = (c >> U(15) | c >> U(30) | c >> U(45) | c >> U(60)) & U(15)
            else:
                c = (c >> U(31) | c >> U(62)) & U(3)
            borrow[k] |= c << place
    last = deltas[15 * LANES :]
    for k in range(LANES):
        last[k] &= U(0xFFFFFFFFFFFFFFFF) >> U(w)
        borrow[k] &= U(0xFFFFFFFFFFFFFFFF) >> U(65 - 16 * per_word)


@numba.njit
def add_up(deltas, total, pick, words, w):
    """Inverse of subtract() from the base ``total``; adds to ``words`` where ``pick`` is set.

    ``total`` is overwritten.
    """
    top = U(0x8000800080008000) if w == 16 else U(0x8000000080000000)
    every = U(0x0001000100010001) if w == 16 else U(0x0000000100000001)
    for j in range(16):
        here, into = deltas[j * LANES :], words[j * LANES :]
        for k in range(LANES):
            a = here[k]
            b = a << U(w)
            a = ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top)
            if w == 16:
                b = a << U(32)
                a = ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top)
            b = total[k] * every
            total[k] = (total[k] + (a >> U(64 - w))) & U((1 << w) - 1)
            a <<= U(w)
            into[k] |= (((a & ~top) + (b & ~top)) ^ ((a ^ b) & top)) & pick[k]


@numba.njit
def compaction(masks, moves):
    """Moves that push the ones of each lane's mask together, for compress() and expand().

    Row i of ``moves`` marks the bits that go down by 2^i places (Warren, Hacker's Delight,
    section 7-4).
    """
    for k in range(LANES):
        mask = U(masks[k])
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
def compress(a, rows, moves, narrow):
    """Pushes the bits under each lane's mask together, in place; the others must be zero.

    ``narrow`` is the type of ``a``.
    """
    for row in range(rows):
        plane = a[row * LANES :]
        for k in range(LANES):
            x = plane[k]
            for i in range(6):
                moved = narrow(x & moves[i * LANES + k])
                x = narrow((x ^ moved) | (moved >> U(1 << i)))
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
