"""Vectorised exact size model: bits of every block in every encoding, without encoding it.

Independent of the encoder: no plane is ever formed. Blocks lie side by side, so that the
compiler fills vector registers with one lane per block, and each lane walks over its
symbols once. Bit p of a few words says whether plane p has one 1, two, three, two
adjacent ones, nothing but ones, and whether the pre-XOR plane has a one; the codes of all
planes (docs/format.md, Plane codes) follow, and their size from population counts.

Intermediate values are cast back to the type of the symbols by ``narrow`` (uint16 or uint32):
numba computes in 64 bits, and only casts tell the compiler that narrow lanes will do.
"""

from __future__ import annotations

import numba
import numpy as np

from planezip.model.cache import cached, source_key
from planezip.model.format import (
    BLOCK_BYTES,
    BLOCKS_PER_CHUNK,
    HEADER_BYTES,
    TAG_BITS,
)

__all__ = ["run_16", "run_32"]

U = np.uint64
_LANES = 64  # a multiple of 32; the fastest of those tried
_WORDS = BLOCK_BYTES // 8
# Rows of the scratch array, one word per lane; the symbols stand behind them.
_ONE, _TWO, _THREE, _ADJACENT, _ALL, _PRE, _LAST = range(7)  # BX
_Z_ADJACENT, _Z_ALL, _Z_LAST, _ZEROS = range(7, 11)  # ZBX, where it differs from BX
_D = 11  # DBX, planes 0 to w - 1: the seven rows of BX again
_TOP = 18  # DBX, plane w itself: w deltas a row, delta i in bit i % w
_ROWS = 22


@numba.njit(inline="always")
def _gather(blocks, first, words, a, w):
    """Symbols of the blocks, side by side: first their words, then what those consist of."""
    per_word = 64 // w
    for k in range(_LANES):
        block = min(first + k, blocks.shape[0] - 1)
        for j in range(_WORDS):
            words[j * _LANES + k] = blocks[block, j]
    for j in range(_WORDS):
        for i in range(per_word):
            for k in range(_LANES):
                a[(_ROWS + j * per_word + i) * _LANES + k] = words[j * _LANES + k] >> U(i * w)


@numba.njit(inline="always")
def _count(a, rows, k, x, y, narrow):
    """Takes planes' next two bits into the rows of one, two, three ones, adjacent ones, all."""
    both, some = narrow(x & y), narrow(x | y)
    one, two = a[(rows + _ONE) * _LANES + k], a[(rows + _TWO) * _LANES + k]
    a[(rows + _THREE) * _LANES + k] |= (two & some) | (one & both)
    a[(rows + _TWO) * _LANES + k] = two | (one & some) | both
    a[(rows + _ONE) * _LANES + k] = one | some
    a[(rows + _ADJACENT) * _LANES + k] |= (a[(rows + _LAST) * _LANES + k] & x) | both
    a[(rows + _LAST) * _LANES + k] = y
    a[(rows + _ALL) * _LANES + k] &= both


@numba.njit(inline="always")
def _walk(a, n, w, narrow):
    """Symbols, two by two: rows of BX and ZBX."""
    for k in range(_D * _LANES):
        a[k] = 0
    for row in (_ALL, _Z_ALL):
        for k in range(_LANES):
            a[row * _LANES + k] = (1 << w) - 1
    for i in range(0, n, 2):
        for k in range(_LANES):
            s, t = a[(_ROWS + i) * _LANES + k], a[(_ROWS + i + 1) * _LANES + k]
            x, y = narrow(s ^ (s >> U(1))), narrow(t ^ (t >> U(1)))
            _count(a, 0, k, x, y, narrow)
            a[_PRE * _LANES + k] |= s | t
            s_zero, t_zero = narrow(U(0) - U(s == 0)), narrow(U(0) - U(t == 0))
            before = a[_Z_LAST * _LANES + k]
            between = narrow((before & s_zero) | x)
            a[_Z_ADJACENT * _LANES + k] |= (before & x) | (between & y)
            a[_Z_LAST * _LANES + k] = (between & t_zero) | y
            a[_Z_ALL * _LANES + k] &= (s_zero | x) & (t_zero | y)
            a[_ZEROS * _LANES + k] -= s_zero + t_zero


@numba.njit(inline="always")
def _delta(a, i, k, w, narrow):
    """Delta i, its planes, and its sign in the top bit of a word."""
    s, q = a[(_ROWS + i) * _LANES + k], a[(_ROWS + i - 1) * _LANES + k]
    d = narrow(s - q)
    sign = narrow(((~s & q) | (~(s ^ q) & d)) & U(1 << (w - 1)))
    return d, narrow(d ^ (d >> U(1)) ^ sign), sign


@numba.njit(inline="always")
def _walk_deltas(a, n, w, narrow):
    """Deltas, the first one alone, then two by two: rows of DBX."""
    for k in range(_LANES):
        d, x, sign = _delta(a, 1, k, w, narrow)
        a[(_D + _ONE) * _LANES + k] = x
        a[(_D + _TWO) * _LANES + k] = 0
        a[(_D + _THREE) * _LANES + k] = 0
        a[(_D + _ADJACENT) * _LANES + k] = 0
        a[(_D + _LAST) * _LANES + k] = x
        a[(_D + _ALL) * _LANES + k] = x
        a[(_D + _PRE) * _LANES + k] = d
        a[_TOP * _LANES + k] = sign
    for i in range(2, n, 2):
        signs = a[(_TOP + i // w) * _LANES : (_TOP + i // w + 1) * _LANES]
        for k in range(_LANES):
            d, x, d_sign = _delta(a, i, k, w, narrow)
            e, y, e_sign = _delta(a, i + 1, k, w, narrow)
            _count(a, _D, k, x, y, narrow)
            a[(_D + _PRE) * _LANES + k] |= d | e
            signs[k] = (signs[k] >> U(2)) | (d_sign >> U(1)) | e_sign


@numba.njit(inline="always")
def _ones(x):
    x = x - ((x >> U(1)) & U(0x5555555555555555))
    x = (x & U(0x3333333333333333)) + ((x >> U(2)) & U(0x3333333333333333))
    x = (x + (x >> U(4))) & U(0x0F0F0F0F0F0F0F0F)
    return (x * U(0x0101010101010101)) >> U(56)


@numba.njit(inline="always")
def _plane_bits(one, two, three, adjacent, everywhere, pre, planes, run, width, position):
    """Bits of all plane codes and their payload, from words with one bit per plane."""
    zero = ~one & ((U(1) << U(planes)) - U(1))
    starts = zero & ~(zero >> U(1))
    lone = starts & ~(zero << U(1))
    full = everywhere & one
    short = full | (one & ~pre)
    placed = one & ~short & (~two | (two & ~three & adjacent))
    lone_count, start_count = _ones(lone), _ones(starts)
    placed_count, five = _ones(placed), _ones(short | placed)
    verbatim = U(planes) - _ones(zero) - five
    bits = U(3) * lone_count + U(2 + run) * (start_count - lone_count)
    return bits + U(5) * five + position * placed_count + verbatim * (width + U(1))


@numba.njit(inline="always")
def _log2_ceil(n):
    bits = U(0)
    for k in range(6):
        bits += U(n > U(1 << k))
    return bits


@numba.njit(inline="always")
def _finish(a, n, w, out):
    """Bits of the five encodings of each lane, tag included, into ``out``: [6, lanes].

    Row 5 takes the fewest of them.
    """
    run = 4 if w == 16 else 5
    position = U(6 if w == 16 else 5)
    ones = U(0xFFFFFFFFFFFFFFFF) >> U(64 - n)
    for k in range(_LANES):
        one, two = U(a[_ONE * _LANES + k]), U(a[_TWO * _LANES + k])
        three, pre = U(a[_THREE * _LANES + k]), U(a[_PRE * _LANES + k])
        adjacent, every = U(a[_ADJACENT * _LANES + k]), U(a[_ALL * _LANES + k])
        count = U(n) - U(a[_ZEROS * _LANES + k])
        out[0, k] = TAG_BITS + 8 * BLOCK_BYTES
        out[1, k] = U(TAG_BITS + n) + U(w) * count
        bits = _plane_bits(one, two, three, adjacent, every, pre, w, run, U(n), position)
        out[3, k] = U(TAG_BITS) + bits
        adjacent, every = U(a[_Z_ADJACENT * _LANES + k]), U(a[_Z_ALL * _LANES + k])
        field = _log2_ceil(count)
        bits = _plane_bits(one, two, three, adjacent, every, pre, w, run, count, field)
        out[4, k] = U(TAG_BITS + n) + bits
    for k in range(_LANES):
        signs = U(0)
        for i in range(n // w):
            signs |= U(a[(_TOP + i) * _LANES + k]) << U(i * w)
        two = signs & (signs - U(1))
        three = two & (two - U(1))
        adjacent = signs & (signs >> U(1))
        top = U(signs != U(0)) << U(w)
        bits = _plane_bits(
            U(a[(_D + _ONE) * _LANES + k]) | top,
            U(a[(_D + _TWO) * _LANES + k]) | (U(two != U(0)) << U(w)),
            U(a[(_D + _THREE) * _LANES + k]) | (U(three != U(0)) << U(w)),
            U(a[(_D + _ADJACENT) * _LANES + k]) | (U(adjacent != U(0)) << U(w)),
            U(a[(_D + _ALL) * _LANES + k]) | (U((signs | U(1)) == ones) << U(w)),
            U(a[(_D + _PRE) * _LANES + k]) | top,
            w + 1,
            run,
            U(n - 1),
            position,
        )
        out[2, k] = U(TAG_BITS + w) + bits
    for k in range(_LANES):
        least = out[0, k]
        for t in range(1, 5):
            least = min(least, out[t, k])
        out[5, k] = least


@numba.njit(inline="always")
def _run(blocks, a, w, narrow, bits, best, tags):
    """Wire bytes of ``blocks`` (chunks from the first one on); fills what is not empty."""
    n = 8 * BLOCK_BYTES // w
    words = np.empty(_WORDS * _LANES, np.uint64)
    out = np.empty((6, _LANES), np.int32)
    total = 0
    for first in range(0, blocks.shape[0], _LANES):
        _gather(blocks, first, words, a, w)
        _walk(a, n, w, narrow)
        _walk_deltas(a, n, w, narrow)
        _finish(a, n, w, out)
        count = min(_LANES, blocks.shape[0] - first)
        for start in range(0, count, BLOCKS_PER_CHUNK):
            m = min(BLOCKS_PER_CHUNK, count - start)
            body = 0
            for k in range(m):
                body += out[5, start + k]
            total += HEADER_BYTES + min((body + 7) >> 3, m * BLOCK_BYTES)
        if bits.shape[0] > 0:
            for k in range(count):
                best[first + k] = out[5, k]
                tag = 0
                for t in range(4, -1, -1):
                    bits[first + k, t] = out[t, k]
                    if out[t, k] == out[5, k]:
                        tag = t
                tags[first + k] = tag
    return total


def _entries(key):
    @cached
    def run_16(blocks, bits, best, tags):
        """Wire bytes of 16-bit symbols; fills bits, best and tags unless they are empty.

        ``blocks`` is uint64 [blocks, 16], read-only: the little-endian words.
        """
        a = np.empty((_ROWS + 64) * _LANES * (key >= 0), np.uint16)
        return _run(blocks, a, 16, np.uint16, bits, best, tags)

    @cached
    def run_32(blocks, bits, best, tags):
        """The same of 32-bit symbols."""
        a = np.empty((_ROWS + 32) * _LANES * (key >= 0), np.uint32)
        return _run(blocks, a, 32, np.uint32, bits, best, tags)

    return run_16, run_32


run_16, run_32 = _entries(source_key("format"))
