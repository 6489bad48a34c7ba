"""Bit-exact encoder: writes the codes of each block's winner (choose.py), block by block."""

from __future__ import annotations

import numba
import numpy as np

from planezip.model.bits import LANES, copy, log2_ceil, popcount, put, reverse
from planezip.model.cache import cached, source_key
from planezip.model.choose import (
    BEST,
    LANE_ROWS,
    NONZERO,
    PICK,
    SIDE_ROWS,
    TAG,
    WIDTH,
    choose,
    pick_planes,
)
from planezip.model.format import (
    BLOCK_BYTES,
    BLOCKS_PER_CHUNK,
    HEADER_BYTES,
    TAG_BITS,
    PlaneCode,
    Tag,
)

__all__ = ["encode_chunks"]

U = np.uint64
_PAYLOAD = LANE_ROWS * LANES  # row of ``lane``: where the payload starts
_POSITION, _RUN, _FULL = ((SIDE_ROWS + row) * LANES for row in range(3))  # rows of ``side``
# Fields of a plane's code: bits from bit 0, their number, bits of payload, payload is a position.
_CODE = U(0xFFF)
_LENGTH, _PIECE, _PLACED = U(12), U(16), U(23)
_WORDS = BLOCK_BYTES // 8
_ZERO_RUN, _ZERO = PlaneCode.ZERO_RUN.prefix[0], PlaneCode.ZERO.prefix[0]
_ONES, _PRE_ZERO = PlaneCode.ONES.prefix[0], PlaneCode.PRE_ZERO.prefix[0]
_PAIR, _ONE = PlaneCode.PAIR.prefix[0], PlaneCode.ONE.prefix[0]
_FIVE = 5 << 12
_RAW, _ZVC, _DBX, _BX, _ZBX = (int(tag) for tag in Tag)


@numba.njit
def _code_planes(coded, codes, side, w, narrow):
    """Code of each plane of each lane, see above.

    Row w - p holds plane p. A zero run is written with the plane that ends it, the last
    run with row w + 1.
    """
    run_bits = U(4 if w == 16 else 5)
    for k in range(LANES):
        width = U(side[WIDTH + k])
        side[_RUN + k] = 0
        side[_POSITION + k] = (log2_ceil(width) << _PIECE) | (U(1) << _PLACED)
        side[_FULL + k] = U(0xFFFFFFFFFFFFFFFF) >> ((U(64) - width) & U(63))
    for p in range(w, -2, -1):
        row = w - p
        here = coded[max(p, 0) * LANES : (max(p, 0) + 1) * LANES]
        above = coded[(p + 1) * LANES : (p + 2) * LANES]
        into = codes[row * LANES : (row + 1) * LANES]
        counts = narrow(U(0) - U(p >= 0))
        lowest = narrow((p + 1) << 2)  # run field: the run ended with the plane above
        for k in range(LANES):
            pre = here[k]
            x = narrow((pre ^ above[k]) & counts)
            zero = narrow(U(0) - U(x == 0))
            low = narrow(x & (U(0) - x))
            full = narrow(U(0) - U(x == side[_FULL + k]))
            pre_zero = narrow(U(0) - U(pre == 0))
            one = narrow(U(0) - U(x == low))
            pair = narrow(U(0) - U(x == narrow(low | (low << U(1)))))
            placed, width = side[_POSITION + k], side[WIDTH + k]
            code = narrow(
                (one & (U(_FIVE | _ONE) | placed))
                | (pair & (U(_FIVE | _PAIR) | placed))
                | (~(one | pair) & (U(1 << 12 | 1) | (width << _PIECE)))
            )
            code = narrow((U(_FIVE | _PRE_ZERO) & pre_zero) | (code & ~pre_zero))
            code = narrow(((U(_FIVE | _ONES) & full) | (code & ~full)) & ~zero)
            run = side[_RUN + k]
            alone = narrow(U(0) - U(run == 1))
            ends = narrow((U(0) - U(run != 0)) & ~(zero & counts))
            bits = narrow(((alone & U(_ZERO)) | (~alone & (U(_ZERO_RUN) | lowest))) & ends)
            length = narrow(ends & ((alone & U(3)) | (~alone & (U(2) + run_bits))))
            code = narrow(((code & _CODE) << length) | bits | (code & ~_CODE))
            into[k] = narrow(code + (length << _LENGTH))
            side[_RUN + k] = narrow((run + U(1)) & zero)
        if p == w:  # only DBX has this plane
            for k in range(LANES):
                side[_RUN + k] &= side[PICK + k]


@numba.njit
def _write_control(body, m, size, lane, side, words, codes, w):
    """Control bits of ``m`` blocks into ``body``; where the payload starts into ``lane``."""
    n = 64 * _WORDS // w
    f, g = 0, 8 * size
    for b in range(m):
        tag = lane[TAG + b]
        bits = TAG_BITS + np.int64(lane[BEST + b])
        mask = U(side[NONZERO + b])
        word, fill = tag, U(TAG_BITS)
        at = 0
        if tag == U(_DBX):
            word |= (words[b] & U((1 << w) - 1)) << fill
            fill += U(w)
        elif tag == U(_ZVC) or tag == U(_ZBX):
            word |= mask << fill
            fill += U(n)
        rows = w + 2 if tag >= U(_DBX) else 0
        for row in range(-1, rows):
            code, length = mask, U(n)
            if row >= 0:
                code = U(codes[U(row * LANES + b)])
                length = (code >> _LENGTH) & U(15)
                code &= _CODE
                word |= code << fill
                fill += length
            if fill >= U(64):
                put(
                    body,
                    f + at if b % 2 == 0 else g - at - 64,
                    word if b % 2 == 0 else reverse(word),
                )
                at += 64
                fill -= U(64)
                word = code >> (length - fill)
        rest = np.int64(fill)
        if b % 2 == 0:
            put(body, f + at, word)
            lane[_PAYLOAD + b] = U(f + at + rest)
            f += bits
        else:
            if rest > 0:
                put(body, g - at - rest, reverse(word) >> U(64 - rest))
            g -= bits
            lane[_PAYLOAD + b] = U(g)


@numba.njit
def _write_payload(body, m, lane, words, coded, codes, w):
    """Payload of ``m`` blocks into ``body``."""
    n = 64 * _WORDS // w
    for b in range(m):
        tag = lane[TAG + b]
        at = np.int64(lane[_PAYLOAD + b])
        place, fill = at >> 6, U(at & 63)
        word = U(0)
        rows = w + 1
        if tag == U(_RAW):
            rows = _WORDS
        elif tag == U(_ZVC):
            rows = n
        for row in range(rows):
            if tag == U(_RAW):
                piece, length = words[row * LANES + b], U(64)
            elif tag == U(_ZVC):
                word_at = U((row * w >> 6) * LANES + b)
                piece = (words[word_at] >> U(row * w & 63)) & U((1 << w) - 1)
                length = U(w) & (U(0) - U(piece != U(0)))
            else:
                code = U(codes[U(row * LANES + b)])
                length = (code >> _PIECE) & U(127)
                if length == U(0):
                    continue
                p = U((w - row) * LANES + b)
                piece = U(coded[p]) ^ U(coded[p + U(LANES)])
                if code >> _PLACED:
                    piece = popcount((piece & (U(0) - piece)) - U(1))
            word |= piece << fill
            fill += length
            if fill >= U(64):
                body[U(place)] |= word
                place += 1
                fill -= U(64)
                word = (piece >> U(1)) >> (length - fill - U(1))
        body[U(place)] |= word


@numba.njit
def _encode(blocks, out, w, narrow):
    words = np.zeros((_WORDS + 1) * LANES, np.uint64)  # with a zero row behind
    scratch = np.zeros(_WORDS * LANES, np.uint64)
    planes = np.zeros(34 * LANES, narrow)  # with a zero row above, as the next two
    delta_planes = np.zeros(34 * LANES, narrow)
    coded = np.zeros(34 * LANES, narrow)
    codes = np.zeros(34 * LANES, narrow)
    lane = np.zeros((LANE_ROWS + 1) * LANES, np.uint64)
    side = np.zeros((SIDE_ROWS + 3) * LANES, narrow)
    moves = np.zeros(6 * LANES, narrow)
    body = np.zeros(BLOCKS_PER_CHUNK * _WORDS + 2, np.uint64)
    body_bytes = body.view(np.uint8)
    at = 0
    for first in range(0, blocks.shape[0], BLOCKS_PER_CHUNK):
        m = min(BLOCKS_PER_CHUNK, blocks.shape[0] - first)
        if m < LANES:
            words[:] = U(0)
        for k in range(m):
            for i in range(_WORDS):
                words[i * LANES + k] = blocks[U(first + k), i]
        choose(words, scratch, planes, delta_planes, lane, side, w, narrow)
        bits = U(TAG_BITS * m)
        for k in range(m):
            bits += lane[BEST + k]
        size = min(np.int64(bits + U(7)) >> 3, m * BLOCK_BYTES)
        for i in range((size >> 3) + 2):
            body[i] = U(0)
        if size < m * BLOCK_BYTES:
            pick_planes(planes, delta_planes, coded, moves, lane, side, w, narrow)
            _code_planes(coded, codes, side, w, narrow)
            _write_control(body, m, size, lane, side, words, codes, w)
            _write_payload(body, m, lane, words, coded, codes, w)
        else:
            for k in range(m):
                for i in range(_WORDS):
                    body[k * _WORDS + i] = words[i * LANES + k]
        out[at] = size & 255
        out[at + 1] = size >> 8
        at += HEADER_BYTES
        copy(body_bytes[:size], out[at : at + size])
        at += size
    return at


def _entries(key):
    @cached
    def encode_16(blocks, out):
        """Wire format of whole chunks of 16-bit symbols (the last one may be shorter).

        Parameters
        ----------
        blocks : uint64[blocks, 16], read-only
            Little-endian words of each block.
        out : uint8[]
            Room for the stream: HEADER_BYTES + CHUNK_BYTES for every chunk.

        Returns
        -------
        int
            Bytes written.
        """
        return _encode(blocks, out, 16, np.uint64) if key >= 0 else 0

    @cached
    def encode_32(blocks, out):
        """The same of 32-bit symbols."""
        return _encode(blocks, out, 32, np.uint32) if key >= 0 else 0

    return {16: encode_16, 32: encode_32}


encode_chunks = _entries(source_key("bits", "choose", "format"))  # by the symbol width
