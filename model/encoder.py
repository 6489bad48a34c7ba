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
    transpose,
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
# Rows of ``lane``: what is known of each block.
_BITS, _BEST, _TAG, _NONZERO, _MASK, _WIDTH, _POSITION, _PICK, _RUN, _PAYLOAD = (
    row * LANES for row in range(10)
)
_LAST, _LAST_TWO, _ZEROS, _RUNS, _LONG, _PLACED, _VERBATIM = (row * LANES for row in range(10, 17))
_WORDS = BLOCK_BYTES // 8
_ZERO_RUN, _ZERO = PlaneCode.ZERO_RUN.prefix[0], PlaneCode.ZERO.prefix[0]
_ONES, _PRE_ZERO = PlaneCode.ONES.prefix[0], PlaneCode.PRE_ZERO.prefix[0]
_PAIR, _ONE = PlaneCode.PAIR.prefix[0], PlaneCode.ONE.prefix[0]
_RAW, _ZVC, _DBX, _BX, _ZBX = (int(tag) for tag in Tag)


@numba.njit
def _unpack(words, symbols, w):
    """Symbols of each lane from its 64-bit words."""
    full = U((1 << w) - 1)
    for i in range(64 * _WORDS // w):
        source, into = words[(i * w >> 6) * LANES :], symbols[i * LANES :]
        shift = U(i * w & 63)
        for k in range(LANES):
            into[k] = (source[k] >> shift) & full


@numba.njit
def _subtract(symbols, deltas, borrow, w):
    """Deltas of each lane modulo 2^w, a zero behind them, and their plane w."""
    n = 64 * _WORDS // w
    full = U((1 << w) - 1)
    for k in range(LANES):
        borrow[k] = U(0)
        deltas[(n - 1) * LANES + k] = U(0)
    for i in range(n - 1):
        first, second, into = symbols[i * LANES :], symbols[(i + 1) * LANES :], deltas[i * LANES :]
        for k in range(LANES):
            delta = second[k] - first[k]
            into[k] = delta & full
            borrow[k] |= (delta >> U(63)) << U(i)


@numba.njit
def _form_planes(values, planes, w):
    """Planes 0 to w - 1 of the values of each lane."""
    rows = 16 * LANES
    if w == 16:
        for k in range(rows):
            low = values[k] | (values[rows + k] << U(16))
            high = values[2 * rows + k] | (values[3 * rows + k] << U(16))
            planes[k] = low | (high << U(32))
    else:
        for k in range(rows):
            planes[k] = values[k] | (values[rows + k] << U(32))
    transpose(planes, w)
    if w == 32:
        for k in range(rows):
            planes[rows + k] = planes[k] >> U(32)
        for k in range(rows):
            planes[k] &= U(0xFFFFFFFF)


@numba.njit
def _price(planes, count, run_bits, dense, lane):
    """Bits of all codes and their payload, into row _BITS of ``lane``.

    Symbols outside row _MASK do not count, those inside it are _WIDTH; ``dense`` says that
    the mask is one row of ones from bit 0 on.
    """
    for k in range(LANES):
        for row in (_LAST, _LAST_TWO, _ZEROS, _RUNS, _LONG, _PLACED, _VERBATIM):
            lane[row + k] = U(0)
    for p in range(count - 1, -1, -1):
        here = planes[p * LANES : (p + 1) * LANES]
        above = planes[(p + 1) * LANES : (p + 2) * LANES]
        for k in range(LANES):
            pre = here[k]
            x = pre ^ above[k]
            rest = x & (x - U(1))
            low = x ^ rest
            if dense:
                neighbour = low << U(1)
            else:
                higher = lane[_MASK + k] & (U(0) - (low << U(1)))
                neighbour = higher & (U(0) - higher)
            zero = U(0) - U(x == U(0))
            short = U(0) - (U(x == lane[_MASK + k]) | U(pre == U(0)))
            placed = (U(0) - (U(rest == U(0)) | U(rest == neighbour))) & ~short
            last, two = lane[_LAST + k], lane[_LAST_TWO + k]
            lane[_LAST + k] = zero
            lane[_LAST_TWO + k] = zero & last
            # counts, downwards: a mask is 0 or -1
            lane[_ZEROS + k] += zero
            lane[_RUNS + k] += zero & ~last
            lane[_LONG + k] += zero & last & ~two
            lane[_PLACED + k] += placed & ~zero
            lane[_VERBATIM + k] += ~(short | placed | zero)
    for k in range(LANES):
        width, verbatim = lane[_WIDTH + k], lane[_VERBATIM + k]
        short = lane[_ZEROS + k] + verbatim + U(count)
        zeros = U(3) * lane[_RUNS + k] + U(run_bits - 1) * lane[_LONG + k]
        placed = log2_ceil(width) * lane[_PLACED + k]
        lane[_BITS + k] = U(5) * short - zeros - placed - (width + U(1)) * verbatim


@numba.njit
def _choose(words, symbols, deltas, planes, delta_planes, lane, w):
    """Planes of the chunk in ``words``; tag and bits of each lane's winner in ``lane``."""
    n = 64 * _WORDS // w
    run_bits = 4 if w == 16 else 5
    every = U(0xFFFFFFFFFFFFFFFF) >> U(64 - n)
    _unpack(words, symbols, w)
    _subtract(symbols, deltas, delta_planes[w * LANES :], w)
    _form_planes(symbols, planes, w)
    _form_planes(deltas, delta_planes, w)
    zeros = U(0)
    for k in range(LANES):
        lane[_NONZERO + k] = U(0)
    for p in range(w):
        plane = planes[p * LANES :]
        for k in range(LANES):
            lane[_NONZERO + k] |= plane[k]
    for k in range(LANES):
        mask = lane[_NONZERO + k]
        zeros |= mask ^ every
        lane[_TAG + k] = U(_RAW)
        lane[_BEST + k] = U(w * n)
        lane[_BITS + k] = U(n) + U(w) * popcount(mask)
        lane[_MASK + k] = every >> U(1)
        lane[_WIDTH + k] = U(n - 1)
    _improve(lane, U(_ZVC), U(0))
    _price(delta_planes, w + 1, run_bits, True, lane)
    _improve(lane, U(_DBX), U(w))
    for k in range(LANES):
        lane[_MASK + k] = every
        lane[_WIDTH + k] = U(n)
    _price(planes, w, run_bits, True, lane)
    _improve(lane, U(_BX), U(0))
    if zeros == U(0):  # ZBX is BX and a mask
        return
    for k in range(LANES):
        lane[_MASK + k] = lane[_NONZERO + k]
        lane[_WIDTH + k] = popcount(lane[_MASK + k])
    _price(planes, w, run_bits, False, lane)
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
def _write_control(body, m, size, lane, symbols, codes, w):
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
            word |= symbols[b] << fill
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
def _write_payload(body, m, lane, words, symbols, coded, codes, w):
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
                piece = symbols[U(row * LANES + b)]
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


@numba.njit(nogil=True, cache=True)
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
    words = np.zeros(_WORDS * LANES, np.uint64)
    symbols = np.zeros(64 * LANES, np.uint64)
    deltas = np.zeros(64 * LANES, np.uint64)
    planes = np.zeros(34 * LANES, np.uint64)  # with a zero row above, as the next two
    delta_planes = np.zeros(34 * LANES, np.uint64)
    coded = np.zeros(34 * LANES, np.uint64)
    codes = np.zeros(34 * LANES, np.uint64)
    lane = np.zeros(17 * LANES, np.uint64)
    moves = np.zeros(6 * LANES, np.uint64)
    body = np.zeros(BLOCKS_PER_CHUNK * _WORDS + 2, np.uint64)
    body_bytes = body.view(np.uint8)
    at = 0
    for first in range(0, blocks.shape[0], BLOCKS_PER_CHUNK):
        m = min(BLOCKS_PER_CHUNK, blocks.shape[0] - first)
        if m < LANES:
            words[:] = U(0)
        for k in range(m):
            block = blocks[first + k]
            for i in range(_WORDS):
                words[i * LANES + k] = block[i]
        _choose(words, symbols, deltas, planes, delta_planes, lane, w)
        bits = U(TAG_BITS * m)
        for k in range(m):
            bits += lane[_BEST + k]
        size = min(np.int64(bits + U(7)) >> 3, m * BLOCK_BYTES)
        for i in range((size >> 3) + 2):
            body[i] = U(0)
        if size < m * BLOCK_BYTES:
            _pick_planes(planes, delta_planes, coded, moves, lane, w)
            _code_planes(coded, codes, lane, w)
            _write_control(body, m, size, lane, symbols, codes, w)
            _write_payload(body, m, lane, words, symbols, coded, codes, w)
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
