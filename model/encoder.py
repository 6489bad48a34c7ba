"""Bit-exact encoder: forms the planes of a chunk's blocks, picks the winners, writes them.

The blocks of a chunk lie side by side, one vector lane each: ``x[row * LANES + lane]``.
Their planes are formed by transposing bit matrices and priced plane by plane; the codes
of the winner are then written block by block.
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
    put,
    reverse,
    split_planes,
    subtract,
)
from planezip.model.cache import cached, source_key
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
# Rows of ``lane``: what is known of each block.
_BITS, _BEST, _TAG, _NONZERO, _MASK, _WIDTH, _POSITION, _PICK, _RUN, _PAYLOAD = (
    row * LANES for row in range(10)
)
_LAST, _LAST_TWO, _COUNTS = (row * LANES for row in range(10, 13))
_A_ZERO, _A_RUN, _A_LONG_RUN, _A_POSITION, _A_VERBATIM = (U(1 << 8 * k) for k in range(5))
_WORDS = BLOCK_BYTES // 8
_ZERO_RUN, _ZERO = PlaneCode.ZERO_RUN.prefix[0], PlaneCode.ZERO.prefix[0]
_ONES, _PRE_ZERO = PlaneCode.ONES.prefix[0], PlaneCode.PRE_ZERO.prefix[0]
_PAIR, _ONE = PlaneCode.PAIR.prefix[0], PlaneCode.ONE.prefix[0]
_RAW, _ZVC, _DBX, _BX, _ZBX = (int(tag) for tag in Tag)


@numba.njit
def _price(planes, count, mask, dense, run_bits, lane):
    """Bits of all codes and their payload, into row _BITS of ``lane``.

    Symbols outside row ``mask`` of ``lane`` do not count.
    """
    for k in range(LANES):
        lane[_LAST + k] = U(0)
        lane[_LAST_TWO + k] = U(0)
        lane[_COUNTS + k] = U(0)
    for p in range(count - 1, -1, -1):
        here = planes[p * LANES : (p + 1) * LANES]
        above = planes[(p + 1) * LANES : (p + 2) * LANES]
        for k in range(LANES):
            pre = here[k]
            x = pre ^ above[k]
            rest = x & (x - U(1))
            neighbour = (x ^ rest) << U(1)
            if not dense:
                higher = lane[mask + k] & (U(0) - neighbour)
                neighbour = higher & (U(0) - higher)
            pair = rest == neighbour
            # conditions as masks, 0 or -1; they count in bytes of a word
            zero = U(0) - U(x == U(0))
            last, two = lane[_LAST + k], lane[_LAST_TWO + k]
            lane[_LAST + k] = zero
            lane[_LAST_TWO + k] = zero & last
            short = zero | (U(0) - (U(x == lane[mask + k]) | U(pre == U(0))))
            placed = ~short & (U(0) - (U(rest == U(0)) | U(pair)))
            lane[_COUNTS + k] += (
                (zero & _A_ZERO)
                | (zero & ~last & _A_RUN)
                | (zero & last & ~two & _A_LONG_RUN)
                | (placed & _A_POSITION)
                | (~(short | placed) & _A_VERBATIM)
            )
    for k in range(LANES):
        width = popcount(lane[mask + k])
        counts = lane[_COUNTS + k]
        zeros, runs = counts & U(255), (counts >> U(8)) & U(255)
        long_runs, positions = (counts >> U(16)) & U(255), (counts >> U(24)) & U(255)
        verbatim = counts >> U(32)
        bits = U(3) * runs + U(run_bits - 1) * long_runs + U(5) * (U(count) - zeros - verbatim)
        lane[_BITS + k] = bits + log2_ceil(width) * positions + (width + U(1)) * verbatim


@numba.njit
def _choose(words, scratch, planes, delta_planes, lane, w):
    """Planes of the chunk in ``words``; tag and bits of each lane's winner in ``lane``."""
    n = 64 * _WORDS // w
    run_bits = 4 if w == 16 else 5
    every = U(0xFFFFFFFFFFFFFFFF) >> U(64 - n)
    subtract(words, scratch, delta_planes[w * LANES :], w)
    split_planes(scratch, delta_planes, w)
    copy(words[: 16 * LANES], scratch)
    split_planes(scratch, planes, w)
    for k in range(LANES):
        lane[_NONZERO + k] = U(0)
    for p in range(w):
        plane = planes[p * LANES :]
        for k in range(LANES):
            lane[_NONZERO + k] |= plane[k]
    zeros = U(0)
    for k in range(LANES):
        zeros |= lane[_NONZERO + k] ^ every
        lane[_TAG + k] = U(_RAW)
        lane[_BEST + k] = U(w * n)
        lane[_BITS + k] = U(n) + U(w) * popcount(lane[_NONZERO + k])
        lane[_MASK + k] = every >> U(1)
    _improve(lane, U(_ZVC), U(0))
    _price(delta_planes, w + 1, _MASK, True, run_bits, lane)
    _improve(lane, U(_DBX), U(w))
    for k in range(LANES):
        lane[_MASK + k] = every
    _price(planes, w, _MASK, True, run_bits, lane)
    _improve(lane, U(_BX), U(0))
    if zeros != U(0):  # else ZBX is BX and a mask
        _price(planes, w, _NONZERO, False, run_bits, lane)
        _improve(lane, U(_ZBX), U(n))


@numba.njit
def _improve(lane, tag, extra):
    for k in range(LANES):
        bits = lane[_BITS + k] + extra
        if bits < lane[_BEST + k]:
            lane[_BEST + k] = bits
            lane[_TAG + k] = tag


@numba.njit
def _pick_planes(planes, delta_planes, coded, moves, lane, w):
    """Planes of each lane's winner, compact, w + 1 of them and a zero row above."""
    n = 64 * _WORDS // w
    some_zbx = U(0)
    for k in range(LANES):
        dbx = U(0) - U(lane[_TAG + k] == U(_DBX))
        zbx = U(0) - U(lane[_TAG + k] == U(_ZBX))
        some_zbx |= zbx
        lane[_PICK + k] = dbx
        lane[_MASK + k] = lane[_NONZERO + k] | ~zbx
        lane[_WIDTH + k] = U(n) - (dbx & U(1))
        if zbx:
            lane[_WIDTH + k] = popcount(lane[_NONZERO + k])
    for p in range(w + 1):
        plain, delta, into = planes[p * LANES :], delta_planes[p * LANES :], coded[p * LANES :]
        for k in range(LANES):
            pick = lane[_PICK + k]
            into[k] = (plain[k] & ~pick) | (delta[k] & pick)
    if some_zbx:
        compaction(lane[_MASK:], moves)
        compress(coded, w, moves)


@numba.njit
def _code_planes(coded, codes, lane, w):
    """Code of each plane of each lane: bits | length << 16 | payload length << 24.

    Row w - p holds plane p. A zero run is written with the plane that ends it, the last
    run with row w + 1. Bit 32 marks payload that is a position.
    """
    run_bits = U(4 if w == 16 else 5)
    for k in range(LANES):
        lane[_RUN + k] = U(0)
        lane[_POSITION + k] = log2_ceil(lane[_WIDTH + k]) << U(24) | U(1 << 32)
        lane[_MASK + k] = U(0xFFFFFFFFFFFFFFFF) >> ((U(64) - lane[_WIDTH + k]) & U(63))
    for p in range(w, -2, -1):
        row = w - p
        here = coded[max(p, 0) * LANES : (max(p, 0) + 1) * LANES]
        above = coded[(p + 1) * LANES : (p + 2) * LANES]
        into = codes[row * LANES : (row + 1) * LANES]
        counts = U(0) - U(p >= 0)
        lowest = U((p + 1) << 2)  # run field: the run ended with the plane above
        for k in range(LANES):
            pre = here[k]
            x = (pre ^ above[k]) & counts
            zero = U(0) - U(x == U(0))
            low = x & (U(0) - x)
            full = U(0) - U(x == lane[_MASK + k])
            pre_zero = U(0) - U(pre == U(0))
            one = U(0) - U(x == low)
            pair = U(0) - U(x == (low | (low << U(1))))
            code = (U(5 << 16 | _PRE_ZERO) & pre_zero) | (
                ~pre_zero
                & (
                    (one & (U(5 << 16 | _ONE) | lane[_POSITION + k]))
                    | (pair & (U(5 << 16 | _PAIR) | lane[_POSITION + k]))
                    | (~(one | pair) & (U(1 << 16 | 1) | (lane[_WIDTH + k] << U(24))))
                )
            )
            code = ((U(5 << 16 | _ONES) & full) | (code & ~full)) & ~zero
            run = lane[_RUN + k]
            alone = U(0) - U(run == U(1))
            ends = (U(0) - U(run != U(0))) & ~(zero & counts)
            bits = (alone & U(_ZERO)) | (~alone & (U(_ZERO_RUN) | lowest))
            length = ends & ((alone & U(3)) | (~alone & (U(2) + run_bits)))
            into[k] = ((code & U(0xFFFF)) << length) | (bits & ends) | (code & ~U(0xFFFF))
            into[k] += length << U(16)
            lane[_RUN + k] = (run + U(1)) & zero
        if p == w:  # only DBX has this plane
            for k in range(LANES):
                lane[_RUN + k] &= lane[_PICK + k]


@numba.njit
def _write_control(body, m, size, lane, words, codes, w):
    """Control bits of ``m`` blocks into ``body``; where the payload starts into ``lane``."""
    n = 64 * _WORDS // w
    f, g = 0, 8 * size
    for b in range(m):
        tag = lane[_TAG + b]
        bits = TAG_BITS + np.int64(lane[_BEST + b])
        mask = lane[_NONZERO + b]
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
                code = codes[U(row * LANES + b)]
                length = (code >> U(16)) & U(255)
                code &= U(0xFFFF)
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
        tag = lane[_TAG + b]
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
                code = codes[U(row * LANES + b)]
                length = (code >> U(24)) & U(255)
                if length == U(0):
                    continue
                p = U((w - row) * LANES + b)
                piece = coded[p] ^ coded[p + U(LANES)]
                if (code >> U(32)) & U(1):
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
def _encode(blocks, out, w):
    words = np.zeros((_WORDS + 1) * LANES, np.uint64)  # with a zero row behind
    scratch = np.zeros(_WORDS * LANES, np.uint64)
    planes = np.zeros(34 * LANES, np.uint64)  # with a zero row above, as the next two
    delta_planes = np.zeros(34 * LANES, np.uint64)
    coded = np.zeros(34 * LANES, np.uint64)
    codes = np.zeros(34 * LANES, np.uint64)
    lane = np.zeros(13 * LANES, np.uint64)
    moves = np.zeros(6 * LANES, np.uint64)
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
        _choose(words, scratch, planes, delta_planes, lane, w)
        bits = U(TAG_BITS * m)
        for k in range(m):
            bits += lane[_BEST + k]
        size = min(np.int64(bits + U(7)) >> 3, m * BLOCK_BYTES)
        for i in range((size >> 3) + 2):
            body[i] = U(0)
        if size < m * BLOCK_BYTES:
            _pick_planes(planes, delta_planes, coded, moves, lane, w)
            _code_planes(coded, codes, lane, w)
            _write_control(body, m, size, lane, words, codes, w)
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


def _entry(key):
    @cached
    def encode_chunks(blocks, out, w):
        """Wire format of whole chunks (the last one may be shorter).

        Parameters
        ----------
        blocks : uint64[blocks, 16], read-only
            Little-endian words of each block.
        out : uint8[]
            Room for the stream: HEADER_BYTES + CHUNK_BYTES for every chunk.
        w : int
            Symbol width, 16 or 32.

        Returns
        -------
        int
            Bytes written.
        """
        return _encode(blocks, out, w) if key >= 0 else 0

    return encode_chunks


encode_chunks = _entry(source_key("bits", "format"))
