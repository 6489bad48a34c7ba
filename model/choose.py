"""Which encoding each block of a chunk takes, and the planes of the winner.

The blocks of a chunk lie side by side, one vector lane each: ``x[row * LANES + lane]``.
Their planes are formed by transposing bit matrices and priced plane by plane. Planes, and
``side`` with what is known of each block in their type, are uint64 for w = 16 and uint32
for w = 32; ``narrow`` casts to that type: numba computes in 64 bits, and only casts tell
the compiler that narrow lanes will do.
"""

from __future__ import annotations

import numba
import numpy as np

from planezip.model.bits import (
    LANES,
    compaction,
    compress,
    copy,
    log2_ceil,
    popcount,
    split_planes,
    subtract,
)
from planezip.model.format import BLOCK_BYTES, Tag

__all__ = ["BEST", "LANE_ROWS", "NONZERO", "PICK", "SIDE_ROWS", "TAG", "WIDTH", "choose"]
__all__ += ["pick_planes"]

U = np.uint64
BITS, BEST, TAG = (row * LANES for row in range(3))  # rows of ``lane``, uint64
LANE_ROWS = 3
# Rows of ``side``.
NONZERO, MASK, WIDTH, PICK, LAST, LAST_TWO, COUNTS = (row * LANES for row in range(7))
SIDE_ROWS = 7
_A_ZERO, _A_RUN, _A_LONG_RUN, _A_POSITION, _A_VERBATIM = (U(1 << 6 * k) for k in range(5))
_WORDS = BLOCK_BYTES // 8
_RAW, _ZVC, _DBX, _BX, _ZBX = (int(tag) for tag in Tag)


@numba.njit
def _price(planes, count, mask, dense, run_bits, lane, side, narrow):
    """Bits of all codes and their payload, into row BITS of ``lane``.

    Symbols outside row ``mask`` of ``side`` do not count.
    """
    for k in range(LANES):
        side[LAST + k] = 0
        side[LAST_TWO + k] = 0
        side[COUNTS + k] = 0
    for p in range(count - 1, -1, -1):
        here = planes[p * LANES : (p + 1) * LANES]
        above = planes[(p + 1) * LANES : (p + 2) * LANES]
        for k in range(LANES):
            pre = here[k]
            x = narrow(pre ^ above[k])
            rest = narrow(x & (x - U(1)))
            neighbour = narrow((x ^ rest) << U(1))
            if not dense:
                higher = narrow(side[mask + k] & (U(0) - neighbour))
                neighbour = narrow(higher & (U(0) - higher))
            # conditions as masks, 0 or -1; they count in 6 bits of a word each
            zero = narrow(U(0) - U(x == 0))
            last, two = side[LAST + k], side[LAST_TWO + k]
            side[LAST + k] = zero
            side[LAST_TWO + k] = zero & last
            short = narrow(zero | (U(0) - (U(x == side[mask + k]) | U(pre == 0))))
            placed = narrow(~short & (U(0) - (U(rest == 0) | U(rest == neighbour))))
            side[COUNTS + k] += narrow(
                (zero & _A_ZERO)
                | (zero & ~last & _A_RUN)
                | (zero & last & ~two & _A_LONG_RUN)
                | (placed & _A_POSITION)
                | (~(short | placed) & _A_VERBATIM)
            )
    for k in range(LANES):
        width = popcount(U(side[mask + k]))
        counts = U(side[COUNTS + k])
        zeros, runs = counts & U(63), (counts >> U(6)) & U(63)
        long_runs, positions = (counts >> U(12)) & U(63), (counts >> U(18)) & U(63)
        verbatim = counts >> U(24)
        bits = U(3) * runs + U(run_bits - 1) * long_runs + U(5) * (U(count) - zeros - verbatim)
        lane[BITS + k] = bits + log2_ceil(width) * positions + (width + U(1)) * verbatim


@numba.njit
def choose(words, scratch, planes, delta_planes, lane, side, w, narrow):
    """Planes of the chunk in ``words``; tag and bits of each lane's winner in ``lane``."""
    n = 64 * _WORDS // w
    run_bits = 4 if w == 16 else 5
    every = U(0xFFFFFFFFFFFFFFFF) >> U(64 - n)
    subtract(words, scratch, delta_planes[w * LANES :], w)
    split_planes(scratch, delta_planes, w)
    copy(words[: 16 * LANES], scratch)
    split_planes(scratch, planes, w)
    for k in range(LANES):
        side[NONZERO + k] = 0
    for p in range(w):
        plane = planes[p * LANES :]
        for k in range(LANES):
            side[NONZERO + k] |= plane[k]
    zeros = U(0)
    for k in range(LANES):
        nonzero = U(side[NONZERO + k])
        zeros |= nonzero ^ every
        lane[TAG + k] = U(_RAW)
        lane[BEST + k] = U(w * n)
        lane[BITS + k] = U(n) + U(w) * popcount(nonzero)
        side[MASK + k] = every >> U(1)
    _improve(lane, U(_ZVC), U(0))
    _price(delta_planes, w + 1, MASK, True, run_bits, lane, side, narrow)
    _improve(lane, U(_DBX), U(w))
    for k in range(LANES):
        side[MASK + k] = every
    _price(planes, w, MASK, True, run_bits, lane, side, narrow)
    _improve(lane, U(_BX), U(0))
    if zeros != U(0):  # else ZBX is BX and a mask
        _price(planes, w, NONZERO, False, run_bits, lane, side, narrow)
        _improve(lane, U(_ZBX), U(n))


@numba.njit
def _improve(lane, tag, extra):
    for k in range(LANES):
        bits = lane[BITS + k] + extra
        if bits < lane[BEST + k]:
            lane[BEST + k] = bits
            lane[TAG + k] = tag


@numba.njit
def pick_planes(planes, delta_planes, coded, moves, lane, side, w, narrow):
    """Planes of each lane's winner, compact, w + 1 of them and a zero row above.

    Their width and a mask of the lanes with DBX go to rows WIDTH and PICK of ``side``.
    """
    n = 64 * _WORDS // w
    some_zbx = False
    for k in range(LANES):
        dbx = U(0) - U(lane[TAG + k] == U(_DBX))
        zbx = U(0) - U(lane[TAG + k] == U(_ZBX))
        side[PICK + k] = dbx
        side[MASK + k] = side[NONZERO + k] | ~zbx
        side[WIDTH + k] = U(n) - (dbx & U(1))
        if zbx:
            some_zbx = True
            side[WIDTH + k] = popcount(U(side[NONZERO + k]))
    for p in range(w + 1):
        plain, delta, into = planes[p * LANES :], delta_planes[p * LANES :], coded[p * LANES :]
        for k in range(LANES):
            pick = side[PICK + k]
            into[k] = narrow((plain[k] & ~pick) | (delta[k] & pick))
    if some_zbx:
        compaction(side[MASK:], moves)
        compress(coded, w, moves, narrow)
