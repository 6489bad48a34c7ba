"""Compress, decompress and measure whole tensors."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from planezip.model import dtypes, measure
from planezip.model.arrays import PIECE_BYTES, check_width, flat_bytes, pieces
from planezip.model.decoder import decode_chunks, walk_chunks
from planezip.model.encoder import encode_chunks
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import BLOCK_BYTES, BLOCKS_PER_CHUNK, CHUNK_BYTES, HEADER_BYTES
from planezip.model.stream import Stream

__all__ = [
    "decode",
    "decode_blocks",
    "decode_bytes",
    "decode_chunk",
    "encode",
    "encode_bytes",
    "ratio",
    "sizes",
]

_PIECE_CHUNKS = PIECE_BYTES // CHUNK_BYTES
Bytes = NDArray[np.uint8]
Item = TypeVar("Item")
Result = TypeVar("Result")
Walked = tuple[int, StreamError | None, Bytes, NDArray[np.int64]]


def encode(array: Any, threads: int = 1) -> Stream:
    """Compress a NumPy array or a torch tensor.

    Parameters
    ----------
    array : array
        Of any dtype in :data:`planezip.model.dtypes.DTYPES`, any shape, any strides; see
        :func:`planezip.model.arrays.flat_bytes`. Big-endian data become little-endian.
    threads : int
        Threads that encode; the result does not depend on it.

    Raises
    ------
    TypeError
        For other objects and dtypes.
    """
    data, name, shape = flat_bytes(array)
    w = dtypes.symbol_bits(name)
    wire = np.empty(-(-data.size // CHUNK_BYTES) * (HEADER_BYTES + CHUNK_BYTES), np.uint8)
    used = 0
    for part in _encode(data, w, threads, wire):
        if threads > 1:
            wire[used : used + part.size] = part
        used += part.size
    wire.resize(used, refcheck=False)
    return Stream(name, shape, wire.data.toreadonly())


def encode_bytes(data: bytes | bytearray | memoryview, w: int, threads: int = 1) -> bytes:
    """Wire format of ``data`` taken as symbols of ``w`` bits (16 or 32)."""
    wire = io.BytesIO()  # hands its buffer over as bytes without a copy
    for part in _encode(np.frombuffer(data, np.uint8), w, threads, None):
        wire.write(part.data)
    return wire.getvalue()


def decode(stream: Stream, threads: int = 1) -> NDArray[Any]:
    """The array that ``stream`` holds, bit for bit.

    Raises
    ------
    StreamError
        With code, chunk and block of the first fault in reading order.
    """
    data, error = decode_blocks(stream.payload, stream.raw_bytes, stream.w, threads)
    if error:
        raise error
    return data.view(dtypes.dtype_of(stream.dtype)).reshape(stream.shape)


def decode_bytes(
    payload: bytes | bytearray | memoryview, raw_bytes: int, w: int, threads: int = 1
) -> bytes:
    """Inverse of :func:`encode_bytes`; StreamError for a broken stream."""
    out = io.BytesIO()
    for part, error in _decode(_walk(payload, raw_bytes, w), raw_bytes, w, threads, None):
        if error:
            raise error
        out.write(part.data)
    return out.getvalue()


def decode_blocks(
    payload: bytes | bytearray | memoryview, raw_bytes: int, w: int, threads: int = 1
) -> tuple[Bytes, StreamError | None]:
    """What a decoder delivers of a stream that may be broken.

    Returns
    -------
    data : uint8 [raw_bytes or fewer]
        The tensor, or all blocks before the one at fault (EXTRA: the whole tensor).
    error : StreamError or None
        First fault in reading order.
    """
    walked = _walk(payload, raw_bytes, w)
    out = np.empty(min(raw_bytes, walked[0] * CHUNK_BYTES), np.uint8)
    done = 0
    for part, error in _decode(walked, raw_bytes, w, threads, out):
        done += part.size
        if error:
            return out[:done], error
    return out, None


def decode_chunk(stream: Stream, chunk: int, offset: int | None = None) -> bytes:
    """Raw bytes of one chunk; 4096 or, at the end of the tensor, fewer.

    Parameters
    ----------
    chunk : int
        Number of the chunk, from 0.
    offset : int, optional
        Of its header in the payload, if known; else the headers before it are read.

    Raises
    ------
    IndexError
        For a chunk that the tensor does not have.
    StreamError
        Faults of this chunk, or of the headers where they are read.
    """
    if not 0 <= chunk < stream.chunk_count:
        raise IndexError(f"chunk must be from 0 to {stream.chunk_count - 1}, not {chunk!r}")
    at = int(stream.chunk_index()[chunk]) if offset is None else offset
    end = at + HEADER_BYTES + int.from_bytes(stream.payload[at : at + HEADER_BYTES], "little")
    count = min(CHUNK_BYTES, stream.raw_bytes - chunk * CHUNK_BYTES)
    try:
        return decode_bytes(stream.payload[at:end], count, stream.w)
    except StreamError as error:
        raise StreamError(error.code, chunk, error.block) from None


def sizes(array: Any, w: int | None = None) -> measure.Sizes:
    """Bits per block of a NumPy array or a torch tensor in every encoding.

    ``w`` overrides the symbol width that belongs to the dtype.
    """
    data, name, _ = flat_bytes(array)
    return measure.measure(data, dtypes.symbol_bits(name) if w is None else w)


def ratio(array: Any) -> float:
    """Raw bytes over wire bytes, by the size model; 1.0 for an empty array."""
    data, name, _ = flat_bytes(array)
    return data.size / measure.wire_bytes(data, dtypes.symbol_bits(name)) if data.size else 1.0


# --- pieces, in threads ---------------------------------------------------------------


def _map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """``map`` in threads, in order, with no more results at hand than threads use."""
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be an integer of at least 1, not {threads!r}")
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _encode(data: Bytes, w: int, threads: int, out: Bytes | None) -> Iterator[Bytes]:
    """Wire format piece by piece; a piece may be overwritten once the next one is asked for.

    One thread writes the pieces into ``out``, one by one.
    """
    check_width(w)
    room = -(-PIECE_BYTES // CHUNK_BYTES) * (HEADER_BYTES + CHUNK_BYTES)
    used = 0
    spare: deque[Bytes] = deque()

    def encode_piece(blocks: NDArray[np.uint64]) -> tuple[Bytes, int]:
        nonlocal used
        try:
            wire = spare.pop()
        except IndexError:
            wire = np.empty(room, np.uint8) if out is None or threads > 1 else out[used:]
        size = encode_chunks[w](blocks, wire)
        used += size
        return wire, size

    for wire, size in _map(encode_piece, pieces(data, "<u8"), threads):
        yield wire[:size]
        if out is None or threads > 1:
            spare.append(wire)


def _walk(payload: bytes | bytearray | memoryview, raw_bytes: int, w: int) -> Walked:
    """Chunks to decode, the fault behind them, the payload, offsets of the pieces."""
    check_width(w)
    if not isinstance(raw_bytes, int) or raw_bytes < 0:
        raise ValueError(f"raw_bytes must be an integer of at least 0, not {raw_bytes!r}")
    data = np.frombuffer(payload, np.uint8)
    data.flags.writeable = False  # one type for the kernels
    # No stream has more chunks than headers fit into it.
    limit = data.size // HEADER_BYTES + 1
    blocks = min(-(-raw_bytes // BLOCK_BYTES), limit * BLOCKS_PER_CHUNK)
    offsets = np.zeros(limit // _PIECE_CHUNKS + 1, np.int64)
    chunks, code, end = walk_chunks(data, blocks, w, offsets, _PIECE_CHUNKS)
    total = -(-raw_bytes // CHUNK_BYTES)
    if code:
        return chunks, StreamError(ErrorCode(code), chunks), data, offsets
    if chunks == total and end < data.size:
        return chunks, StreamError(ErrorCode.EXTRA, max(total - 1, 0)), data, offsets
    return chunks, None, data, offsets


def _decode(
    walked: Walked, raw_bytes: int, w: int, threads: int, out: Bytes | None
) -> Iterator[tuple[Bytes, StreamError | None]]:
    """Decoded pieces in order, into ``out`` if it is given; the first fault ends them."""
    chunks, behind, data, offsets = walked
    end = min(raw_bytes, chunks * CHUNK_BYTES)

    def decode_piece(first: int) -> tuple[Bytes, StreamError | None]:
        at = first * CHUNK_BYTES
        size = min(PIECE_BYTES, end - at)
        part = np.empty(size, np.uint8) if out is None else out[at : at + size]
        blocks = -(-size // BLOCK_BYTES)
        code, chunk, block = decode_chunks(data, offsets[first // _PIECE_CHUNKS], blocks, part, w)
        if not code:
            return part, None
        error = StreamError(ErrorCode(code), first + chunk, block)
        return part[: chunk * CHUNK_BYTES + block * BLOCK_BYTES], error

    for part, error in _map(decode_piece, range(0, chunks, _PIECE_CHUNKS), threads):
        yield part, error
        if error:
            return
    if behind:
        yield np.empty(0, np.uint8), behind
