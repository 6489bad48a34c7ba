"""Vectorised exact size model: bits of every block in every encoding, without encoding it.

Independent of the encoder: no plane is ever formed. Blocks lie side by side, so that the
compiler fills vector registers with one lane per block, and each lane walks over its
symbols once. Bit p of a few words says whether plane p has one 1, two, three, two
adjacent ones, nothing but ones, and whether the pre-XOR plane has a one; the codes of all
planes (docs/format.md, Plane codes) follow, and their size from population counts.
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
_LANES16, _LANES32 = 32, 256  # multiples of 32; the fastest of those tried
# Rows of the scratch array, one word per lane; the symbols stand behind them.
_ONE, _TWO, _THREE, _ADJACENT, _ALL, _PRE, _LAST = range(7)  # BX
_Z_ADJACENT, _Z_ALL, _Z_LAST, _ZEROS = range(7, 11)  # ZBX, where it differs from BX
_D = 11  # DBX, planes 0 to w - 1: the seven rows of BX again
_TOP = 18  # DBX, plane w, in bit w - 1 of the seven rows
_DELTA, _HALF = 25, 26
_ROWS = 27


@numba.njit(inline="always")
def _gather(blocks, first, a, n, lanes):
    for lane in range(lanes):
        block = min(first + lane, blocks.shape[0] - 1)
        for i in range(n):
            a[(_ROWS + i) * lanes + lane] = blocks[block, i]


@numba.njit(inline="always")
def _walk(a, n, w, lanes):
    """Symbols: rows of BX and ZBX."""
    for k in range(_ROWS * lanes):
        a[k] = 0
    for row in (_ALL, _Z_ALL, _D + _ALL, _TOP + _ALL):
        for lane in range(lanes):
            a[row * lanes + lane] = (1 << w) - 1
    for i in range(n):
        for k in range(lanes):
            s = a[(_ROWS + i) * lanes + k]
            x = s ^ (s >> U(1))
            one, two = a[_ONE * lanes + k], a[_TWO * lanes + k]
            a[_THREE * lanes + k] |= two & x
            a[_TWO * lanes + k] = two | (one & x)
            a[_ONE * lanes + k] = one | x
            a[_ADJACENT * lanes + k] |= a[_LAST * lanes + k] & x
            a[_LAST * lanes + k] = x
            a[_ALL * lanes + k] &= x
            a[_PRE * lanes + k] |= s
            zero = U(0) - U(s == 0)
            last = a[_Z_LAST * lanes + k]
            a[_Z_ADJACENT * lanes + k] |= last & x
            a[_Z_LAST * lanes + k] = (last & zero) | x
            a[_Z_ALL * lanes + k] &= zero | x
            a[_ZEROS * lanes + k] -= zero


@numba.njit(inline="always")
def _walk_deltas(a, n, lanes):
    """Deltas: rows of DBX. The halved delta carries plane w of the delta in bit w - 1."""
    for i in range(1, n):
        for k in range(lanes):
            s, q = a[(_ROWS + i) * lanes + k], a[(_ROWS + i - 1) * lanes + k]
            a[_DELTA * lanes + k] = s - q
            a[_HALF * lanes + k] = (s >> U(1)) - (q >> U(1)) - (~s & q & U(1))
        for k in range(lanes):
            d, h = a[_DELTA * lanes + k], a[_HALF * lanes + k]
            x = d ^ h
            one, two = a[(_D + _ONE) * lanes + k], a[(_D + _TWO) * lanes + k]
            a[(_D + _THREE) * lanes + k] |= two & x
            a[(_D + _TWO) * lanes + k] = two | (one & x)
            a[(_D + _ONE) * lanes + k] = one | x
            a[(_D + _ADJACENT) * lanes + k] |= x & a[(_D + _LAST) * lanes + k]
            a[(_D + _LAST) * lanes + k] = x
            a[(_D + _ALL) * lanes + k] &= x
            a[(_D + _PRE) * lanes + k] |= d
            one, two = a[(_TOP + _ONE) * lanes + k], a[(_TOP + _TWO) * lanes + k]
            a[(_TOP + _THREE) * lanes + k] |= two & h
            a[(_TOP + _TWO) * lanes + k] = two | (one & h)
            a[(_TOP + _ONE) * lanes + k] = one | h
            a[(_TOP + _ADJACENT) * lanes + k] |= h & a[(_TOP + _LAST) * lanes + k]
            a[(_TOP + _LAST) * lanes + k] = h
            a[(_TOP + _ALL) * lanes + k] &= h


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
def _log2_ceil(n, w):
    bits = U(0)
    for k in range(6):
        bits += U(n > U(1 << k))
    return bits


@numba.njit(inline="always")
def _finish(a, n, w, lanes, out):
    """Bits of the five encodings of each lane, tag included, into ``out``: [5, lanes]."""
    run_planes = 4 if w == 16 else 5
    top = U(w - 1)
    for k in range(lanes):
        one, two, three = U(a[_ONE * lanes + k]), U(a[_TWO * lanes + k]), U(a[_THREE * lanes + k])
        pre = U(a[_PRE * lanes + k])
        count = U(n) - U(a[_ZEROS * lanes + k])
        position = _log2_ceil(count, w)
        out[0, k] = TAG_BITS + 8 * BLOCK_BYTES
        out[1, k] = U(TAG_BITS + n) + U(w) * count
        bits = _plane_bits(
            one,
            two,
            three,
            U(a[_ADJACENT * lanes + k]),
            U(a[_ALL * lanes + k]),
            pre,
            w,
            run_planes,
            U(n),
            U(6 if w == 16 else 5),
        )
        out[3, k] = U(TAG_BITS) + bits
        bits = _plane_bits(
            one,
            two,
            three,
            U(a[_Z_ADJACENT * lanes + k]),
            U(a[_Z_ALL * lanes + k]),
            pre,
            w,
            run_planes,
            count,
            position,
        )
        out[4, k] = U(TAG_BITS + n) + bits
    for k in range(lanes):
        top_one = (U(a[(_TOP + _ONE) * lanes + k]) >> top) << U(w)
        bits = _plane_bits(
            U(a[(_D + _ONE) * lanes + k]) | top_one,
            U(a[(_D + _TWO) * lanes + k]) | ((U(a[(_TOP + _TWO) * lanes + k]) >> top) << U(w)),
            U(a[(_D + _THREE) * lanes + k]) | ((U(a[(_TOP + _THREE) * lanes + k]) >> top) << U(w)),
            U(a[(_D + _ADJACENT) * lanes + k])
            | ((U(a[(_TOP + _ADJACENT) * lanes + k]) >> top) << U(w)),
            U(a[(_D + _ALL) * lanes + k]) | ((U(a[(_TOP + _ALL) * lanes + k]) >> top) << U(w)),
            U(a[(_D + _PRE) * lanes + k]) | top_one,
            w + 1,
            run_planes,
            U(n - 1),
            U(6 if w == 16 else 5),
        )
        out[2, k] = U(TAG_BITS + w) + bits


@numba.njit(inline="always")
def _run(blocks, a, out, w, lanes, bits, best, tags):
    """Wire bytes of ``blocks`` (chunks from the first one on); fills what is not empty."""
    n = 8 * BLOCK_BYTES // w
    total = 0
    body = 0
    for first in range(0, blocks.shape[0], lanes):
        _gather(blocks, first, a, n, lanes)
        _walk(a, n, w, lanes)
        _walk_deltas(a, n, lanes)
        _finish(a, n, w, lanes, out)
        count = min(lanes, blocks.shape[0] - first)
        for k in range(lanes):
            least = out[0, k]
            for t in range(1, 5):
                least = min(least, out[t, k])
            out[5, k] = least
        for k in range(count):
            body += out[5, k]
            block = first + k
            if block % BLOCKS_PER_CHUNK == BLOCKS_PER_CHUNK - 1 or block == blocks.shape[0] - 1:
                raw = (block % BLOCKS_PER_CHUNK + 1) * BLOCK_BYTES
                total += HEADER_BYTES + min((body + 7) // 8, raw)
                body = 0
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
        """Wire bytes of uint16 [blocks, 64]; fills bits, best and tags unless they are empty."""
        a = np.empty((_ROWS + 64) * _LANES16 * (key >= 0), np.uint16)
        out = np.empty((6, _LANES16), np.int32)
        return _run(blocks, a, out, 16, _LANES16, bits, best, tags)

    @cached
    def run_32(blocks, bits, best, tags):
        """The same of uint32 [blocks, 32]."""
        a = np.empty((_ROWS + 32) * _LANES32 * (key >= 0), np.uint32)
        out = np.empty((6, _LANES32), np.int32)
        return _run(blocks, a, out, 32, _LANES32, bits, best, tags)

    return run_16, run_32


run_16, run_32 = _entries(source_key("format"))
