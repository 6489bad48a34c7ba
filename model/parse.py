"""Parses the blocks of a coded body one by one: tags, masks, bases, planes, the first fault.

``x[row * LANES + lane]`` holds row ``row`` of the block in vector lane ``lane``.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from planezip.model.bits import LANES, load, log2_ceil, popcount, reverse
from planezip.model.errors import ErrorCode
from planezip.model.format import BLOCK_BYTES, TAG_BITS, PlaneCode, Tag

__all__ = ["BASE", "CONTROL_WORDS", "LANE_ROWS", "MARGIN", "MASK", "TAG", "parse"]

U = np.uint64
TAG, MASK, BASE = (row * LANES for row in range(3))  # rows of ``lane``
LANE_ROWS = 3
MARGIN = 4  # zero words before and behind a body, so that a read never leaves the array
CONTROL_WORDS = 4  # the longest control string has 202 bits
_WORDS = BLOCK_BYTES // 8
_RAW, _ZVC, _DBX, _BX, _ZBX = (int(tag) for tag in Tag)
_BAD_TAG, _RUN, _POSITION = int(ErrorCode.TAG), int(ErrorCode.RUN), int(ErrorCode.POSITION)
_OVERRUN, _TRAILING = int(ErrorCode.OVERRUN), int(ErrorCode.TRAILING)
_PADDING = int(ErrorCode.PADDING)
_ZERO, _ONES, _PRE_ZERO = int(PlaneCode.ZERO), int(PlaneCode.ONES), int(PlaneCode.PRE_ZERO)
_PAIR, _VERBATIM = int(PlaneCode.PAIR), int(PlaneCode.VERBATIM)


def _prefix_table() -> NDArray[np.int64]:
    """By the next 5 control bits: the code and the length of its prefix, ``[32, 2]``."""
    table = np.zeros((32, 2), np.int64)
    for bits in range(32):
        for code in PlaneCode:
            value, length = code.prefix
            if bits & ((1 << length) - 1) == value:
                table[bits] = code, length
    return table


_PREFIXES = _prefix_table()


@numba.njit
def parse(body, size, m, lane, planes, words, codes, control, w):
    """Tags, masks, bases and pre-XOR planes of a coded body, RAW and ZVC blocks as words.

    Returns the first fault: its code and its block (0, m if there is none).
    """
    n = 64 * _WORDS // w
    run_bits = 4 if w == 16 else 5
    every = U(0xFFFFFFFFFFFFFFFF) >> U(64 - n)
    f = 64 * MARGIN
    g = f + 8 * size
    for b in range(m):
        left = g - f
        if left < TAG_BITS:
            return _OVERRUN, b
        if b % 2 == 0:
            for i in range(CONTROL_WORDS):
                control[i] = load(body, f + 64 * i)
        else:
            for i in range(CONTROL_WORDS):
                control[i] = reverse(load(body, max(g - 64 * (i + 1), 0)))
        tag = np.int64(control[0] & U(7))
        if tag > _ZBX:
            return _BAD_TAG, b
        at = TAG_BITS
        mask = every
        if tag in (_ZVC, _ZBX):
            mask = load(control, at) & every
            at += n
        count, width = 0, U(n)
        if tag == _DBX:
            lane[BASE + b] = load(control, at) & U((1 << w) - 1)
            at += w
            count, width = w + 1, U(n - 1)
        elif tag in (_BX, _ZBX):
            count, width = w, popcount(mask)
        lane[TAG + b] = U(tag)
        lane[MASK + b] = mask
        field = np.int64(log2_ceil(width))
        bits = 0
        if tag == _RAW:
            bits = 64 * _WORDS
        elif tag == _ZVC:
            bits = w * np.int64(popcount(mask))

        codes[:] = _ZERO
        row = 0
        while row < count:
            window = load(control, at)
            if window & U(1):  # a row of verbatim planes at once
                ones = np.int64(popcount(window & ~(window + U(1))))
                ones = min(ones, count - row)
                codes[row : row + ones] = _VERBATIM
                bits += ones * np.int64(width)
                at += ones
                row += ones
                continue
            code, length = _PREFIXES[window & U(31), 0], _PREFIXES[window & U(31), 1]
            codes[U(row)] = code
            at += length
            if code == 0:
                lowest = np.int64((window >> U(2)) & U((1 << run_bits) - 1))
                at += run_bits
                covers = count - row - lowest
                row = row + covers - 1 if covers >= 2 else count  # count + 1 planes: RUN
            elif code >= _PAIR:
                bits += field
            row += 1
        if at > left:
            return _OVERRUN, b
        if row > count:
            return _RUN, b
        if at + bits > left:
            return _OVERRUN, b
        if b % 2 == 0:
            at += f
            f = at + bits
        else:
            at = g - at - bits
            g = at

        if tag == _RAW:
            for i in range(_WORDS):
                words[i * LANES + b] = load(body, at + 64 * i)
            continue
        if tag == _ZVC:
            for i in range(_WORDS):
                words[i * LANES + b] = U(0)
            for i in range(n):
                if (mask >> U(i)) & U(1):
                    s = load(body, at) & U((1 << w) - 1)
                    words[(i * w >> 6) * LANES + b] |= s << U(i * w & 63)
                    at += w
            continue
        full = every >> (U(n) - width) if width > U(0) else U(0)
        above = U(0)
        for row in range(count):
            code = codes[U(row)]
            if code == _VERBATIM:
                above ^= load(body, at) & full
                at += np.int64(width)
            elif code >= _PAIR:
                ones = 6 - code  # 2 for a pair, 1 for a single one
                position = load(body, at) & ((U(1) << U(field)) - U(1))
                if position + U(ones) > width:
                    return _POSITION, b
                above ^= U(2 * ones - 1) << position
                at += field
            elif code == _PRE_ZERO:
                above = U(0)
            elif code == _ONES:
                above ^= full
            planes[U((count - 1 - row) * LANES + b)] = above
    if g - f >= 8:
        return _TRAILING, m - 1
    if g > f and load(body, f) & ((U(1) << U(g - f)) - U(1)):
        return _PADDING, m - 1
    return 0, m
