"""Bit-exact decoder: parses the blocks of a chunk one by one, rebuilds them side by side.

``x[row * LANES + lane]`` holds row ``row`` of the block in vector lane ``lane``.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from planezip.model.bits import (
    LANES,
    add_up,
    compaction,
    copy,
    expand,
    join_planes,
    load,
    log2_ceil,
    popcount,
    reverse,
)
from planezip.model.cache import cached, source_key
from planezip.model.errors import ErrorCode
from planezip.model.format import (
    BLOCK_BYTES,
    BLOCKS_PER_CHUNK,
    HEADER_BYTES,
    TAG_BITS,
    PlaneCode,
    Tag,
)

__all__ = ["decode_chunks", "walk_chunks"]

U = np.uint64
_WORDS = BLOCK_BYTES // 8
_RAW, _ZVC, _DBX, _BX, _ZBX = (int(tag) for tag in Tag)
_TAG, _MASK, _BASE, _PICK = (row * LANES for row in range(4))
_MARGIN = 4  # zero words before and behind a body, so that a read never leaves the array
_CONTROL_WORDS = 4  # the longest control string has 202 bits
_OVERRUN, _POSITION, _RUN = int(ErrorCode.OVERRUN), int(ErrorCode.POSITION), int(ErrorCode.RUN)
_CHUNK_SIZE, _STREAM_END = int(ErrorCode.CHUNK_SIZE), int(ErrorCode.STREAM_END)
_BAD_TAG, _TAIL = int(ErrorCode.TAG), int(ErrorCode.TAIL)
_TRAILING, _PADDING = int(ErrorCode.TRAILING), int(ErrorCode.PADDING)
_ZERO, _ONES, _PRE_ZERO = int(PlaneCode.ZERO), int(PlaneCode.ONES), int(PlaneCode.PRE_ZERO)
_PAIR, _ONE, _VERBATIM = int(PlaneCode.PAIR), int(PlaneCode.ONE), int(PlaneCode.VERBATIM)


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
def _parse(body, size, m, lane, planes, words, codes, control, w):
    """Tags, masks, bases and pre-XOR planes of a coded body, RAW and ZVC blocks as words.

    Returns the first fault: its code and its block (0, m if there is none).
    """
    n = 64 * _WORDS // w
    run_bits = 4 if w == 16 else 5
    every = U(0xFFFFFFFFFFFFFFFF) >> U(64 - n)
    f = 64 * _MARGIN
    g = f + 8 * size
    for b in range(m):
        left = g - f
        if left < TAG_BITS:
            return _OVERRUN, b
        if b % 2 == 0:
            for i in range(_CONTROL_WORDS):
                control[i] = load(body, f + 64 * i)
        else:
            for i in range(_CONTROL_WORDS):
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
            lane[_BASE + b] = load(control, at) & U((1 << w) - 1)
            at += w
            count, width = w + 1, U(n - 1)
        elif tag in (_BX, _ZBX):
            count, width = w, popcount(mask)
        lane[_TAG + b] = U(tag)
        lane[_MASK + b] = mask
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
        if count == w:
            planes[w * LANES + b] = U(0)
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


@numba.njit
def _rebuild(m, lane, planes, words, moves, scratch, w):
    """Words of the blocks from their planes; RAW and ZVC blocks stay as they are."""
    zbx = dbx = False
    for k in range(LANES):
        tag = lane[_TAG + k] if k < m else U(_RAW)
        zbx |= tag == U(_ZBX)
        dbx |= tag == U(_DBX)
        lane[_PICK + k] = U(0) - U(tag == U(_DBX))
        if tag >= U(_DBX):
            for i in range(_WORDS):
                words[i * LANES + k] = U(0)
        else:
            for p in range(w):
                planes[p * LANES + k] = U(0)
    if zbx:
        compaction(lane[_MASK:], moves)
        expand(planes, w, lane[_MASK:], moves)
    join_planes(planes, scratch, w)
    if dbx:
        add_up(scratch, lane[_BASE:], lane[_PICK:], words, w)
    for j in range(_WORDS):
        for k in range(LANES):
            words[j * LANES + k] |= scratch[j * LANES + k] & ~lane[_PICK + k]


@numba.njit
def _decode(payload, at, blocks, out, w):
    body = np.zeros(BLOCKS_PER_CHUNK * _WORDS + 2 * _MARGIN + 2, np.uint64)
    body_bytes = body.view(np.uint8)
    planes = np.zeros(33 * LANES, np.uint64)
    words = np.zeros(_WORDS * LANES, np.uint64)
    scratch = np.zeros(_WORDS * LANES, np.uint64)
    lane = np.zeros(4 * LANES, np.uint64)
    moves = np.zeros(6 * LANES, np.uint64)
    codes = np.zeros(33, np.int64)
    control = np.zeros(_CONTROL_WORDS + 2, np.uint64)
    raw = np.zeros(BLOCKS_PER_CHUNK * _WORDS, np.uint64)
    raw_bytes = raw.view(np.uint8)
    for first in range(0, blocks, BLOCKS_PER_CHUNK):
        m = min(BLOCKS_PER_CHUNK, blocks - first)
        size = np.int64(payload[at]) | (np.int64(payload[at + 1]) << 8)
        at += HEADER_BYTES
        code, done = 0, m
        if size == m * BLOCK_BYTES:
            copy(payload[at : at + size], raw_bytes)
        else:
            margin = 8 * _MARGIN
            copy(payload[at : at + size], body_bytes[margin:])
            for k in range(margin + size, 2 * margin + size + 8):
                body_bytes[k] = 0
            code, done = _parse(body, size, m, lane, planes, words, codes, control, w)
            _rebuild(done, lane, planes, words, moves, scratch, w)
            for k in range(done):
                for i in range(_WORDS):
                    raw[k * _WORDS + i] = words[i * LANES + k]
        at += size
        start = first * BLOCK_BYTES
        end = min(start + done * BLOCK_BYTES, out.size)
        copy(raw_bytes[: end - start], out[start:])
        if code == 0:
            for k in range(end - start, m * BLOCK_BYTES):
                if raw_bytes[k] != 0:
                    code, done = _TAIL, m - 1
        if code != 0:
            return code, first // BLOCKS_PER_CHUNK, done
    return 0, 0, 0


@numba.njit
def _walk(payload, blocks, w, offsets, every):
    shortest = TAG_BITS + 2 + (4 if w == 16 else 5)  # BX, all planes zero
    at, chunk = 0, 0
    for first in range(0, blocks, BLOCKS_PER_CHUNK):
        m = min(BLOCKS_PER_CHUNK, blocks - first)
        if payload.size - at < HEADER_BYTES:
            return chunk, _STREAM_END, at
        size = np.int64(payload[at]) | (np.int64(payload[at + 1]) << 8)
        if size > m * BLOCK_BYTES:
            return chunk, _CHUNK_SIZE, at
        if payload.size - at - HEADER_BYTES < size:
            return chunk, _STREAM_END, at
        if chunk % every == 0:
            offsets[chunk // every] = at
        at += HEADER_BYTES + size
        chunk += 1
        if 8 * size < m * shortest:
            break
    return chunk, 0, at


def _entries(key):
    @cached
    def decode_chunks(payload, at, blocks, out, w):
        """Decodes whole chunks (the last one may be shorter) whose headers are known to be sound.

        Parameters
        ----------
        payload : uint8[], read-only
            Wire format.
        at : int
            Offset of the first header.
        blocks : int
            Blocks to decode.
        out : uint8[]
            Room for the data; fewer bytes than the blocks have, if the rest is the tail.
        w : int
            Symbol width, 16 or 32.

        Returns
        -------
        code, chunk, block : int
            First fault, its chunk counted from the first one here; code 0 if there is none.
        """
        return _decode(payload, at, blocks, out, w) if key >= 0 else (0, 0, 0)

    @cached
    def walk_chunks(payload, blocks, w, offsets, every):
        """Reads the chunk headers of a tensor of ``blocks`` blocks.

        Stops at a header that is broken, and behind a body too short for its blocks, so that
        no stream makes a decoder ask for memory that the stream cannot fill.

        Parameters
        ----------
        payload : uint8[], read-only
            Wire format.
        offsets : int64[]
            Takes the offset of each ``every``-th header.

        Returns
        -------
        chunks, code, end : int
            Chunks with a whole body; the fault behind them, or 0; offset behind them.
        """
        return _walk(payload, blocks, w, offsets, every) if key >= 0 else (0, 0, 0)

    return decode_chunks, walk_chunks


decode_chunks, walk_chunks = _entries(source_key("bits", "format", "errors"))
