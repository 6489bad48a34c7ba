"""Bit-exact decoder: parses the blocks of a chunk one by one (parse.py), rebuilds them together.

``x[row * LANES + lane]`` holds row ``row`` of the block in vector lane ``lane``.
"""

from __future__ import annotations

import numba
import numpy as np

from planezip.model.bits import LANES, add_up, compaction, copy, expand, join_planes
from planezip.model.cache import cached, source_key
from planezip.model.errors import ErrorCode
from planezip.model.format import BLOCK_BYTES, BLOCKS_PER_CHUNK, HEADER_BYTES, TAG_BITS, Tag
from planezip.model.parse import BASE, CONTROL_WORDS, LANE_ROWS, MARGIN, MASK, TAG, parse

__all__ = ["decode_chunks", "walk_chunks"]

U = np.uint64
_PICK = LANE_ROWS * LANES  # row of ``lane``: all ones for DBX
_WORDS = BLOCK_BYTES // 8
_RAW, _DBX, _ZBX = int(Tag.RAW), int(Tag.DBX), int(Tag.ZBX)
_CHUNK_SIZE, _STREAM_END = int(ErrorCode.CHUNK_SIZE), int(ErrorCode.STREAM_END)
_TAIL = int(ErrorCode.TAIL)


@numba.njit
def _rebuild(m, lane, planes, words, moves, scratch, w):
    """Words of the blocks from their planes; RAW and ZVC blocks stay as they are."""
    zbx = dbx = False
    for k in range(LANES):
        tag = lane[TAG + k] if k < m else U(_RAW)
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
        compaction(lane[MASK:], moves)
        expand(planes, w, lane[MASK:], moves)
    join_planes(planes, scratch, w)
    if dbx:
        add_up(scratch, lane[BASE:], lane[_PICK:], words, w)
    for j in range(_WORDS):
        for k in range(LANES):
            words[j * LANES + k] |= scratch[j * LANES + k] & ~lane[_PICK + k]


@numba.njit
def _decode(payload, at, blocks, out, w):
    body = np.zeros(BLOCKS_PER_CHUNK * _WORDS + 2 * MARGIN + 2, np.uint64)
    body_bytes = body.view(np.uint8)
    planes = np.zeros(33 * LANES, np.uint64)
    words = np.zeros(_WORDS * LANES, np.uint64)
    scratch = np.zeros(_WORDS * LANES, np.uint64)
    lane = np.zeros((LANE_ROWS + 1) * LANES, np.uint64)
    moves = np.zeros(6 * LANES, np.uint64)
    codes = np.zeros(33, np.int64)
    control = np.zeros(CONTROL_WORDS + 2, np.uint64)
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
            # Around the body stands what was there before: nothing depends on it.
            copy(payload[at : at + size], body_bytes[8 * MARGIN :])
            code, done = parse(body, size, m, lane, planes, words, codes, control, w)
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


decode_chunks, walk_chunks = _entries(source_key("bits", "errors", "format", "parse"))
