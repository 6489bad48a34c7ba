"""Which tensor, chunk and block a beat of a lane's output belongs to, for messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planezip.model import encode_bytes, sizes
from planezip.model.format import BLOCK_BYTES, BLOCKS_PER_CHUNK, CHUNK_BYTES, HEADER_BYTES
from tb.harness.tensors import Tensor

__all__ = ["raw_place", "wire_place"]


def raw_place(tensors: Sequence[Tensor], beat: int, bit: int = 0, beat_bytes: int = 32) -> str:
    """Place of a bit of a beat on a port of raw bytes; empty for a beat behind the last one."""
    number, offset = _tensor(
        [0 if t.mode == "measure" else len(t.data) for t in tensors], beat, beat_bytes
    )
    if number is None:
        return ""
    chunk, at = divmod(offset + min(bit // 8, beat_bytes - 1), CHUNK_BYTES)
    return _told(tensors, number, chunk, at // BLOCK_BYTES)


def wire_place(tensors: Sequence[Tensor], beat: int, bit: int = 0, beat_bytes: int = 64) -> str:
    """The same on the wire of a compressor (docs/format.md: blocks from both ends)."""
    streams = [_wire(tensor) for tensor in tensors]
    number, offset = _tensor([len(stream) for stream in streams], beat, beat_bytes)
    if number is None:
        return ""
    tensor, wire = tensors[number], streams[number]
    at = offset + min(bit // 8, beat_bytes - 1)
    if tensor.mode == "bypass":
        return _told(tensors, number, at // CHUNK_BYTES, at % CHUNK_BYTES // BLOCK_BYTES)
    chunk = start = 0
    while True:
        size = int.from_bytes(wire[start : start + HEADER_BYTES], "little")
        if at < start + HEADER_BYTES + size or start + HEADER_BYTES + size >= len(wire):
            break
        start += HEADER_BYTES + size
        chunk += 1
    bit = 8 * (at - start - HEADER_BYTES) + bit % 8
    if bit < 0:
        return _told(tensors, number, chunk, None)
    return _told(tensors, number, chunk, _block(tensor, chunk, size, bit))


def _wire(tensor: Tensor) -> bytes:
    if tensor.mode == "stream":
        return encode_bytes(tensor.data, tensor.symbol_bits)
    return tensor.data if tensor.mode == "bypass" else b""


def _tensor(lengths: Sequence[int], beat: int, beat_bytes: int) -> tuple[int | None, int]:
    """Number of the tensor that a beat is of, and the byte of it that the beat begins with."""
    ends = np.cumsum([-(-length // beat_bytes) for length in lengths])
    number = int(np.searchsorted(ends, beat, side="right"))
    if number == len(lengths):
        return None, 0
    first = int(ends[number - 1]) if number else 0
    return number, (beat - first) * beat_bytes


def _block(tensor: Tensor, chunk: int, body_bytes: int, bit: int) -> int | None:
    """Block whose bits hold ``bit`` of a chunk's body; None for padding."""
    data = tensor.data[chunk * CHUNK_BYTES : (chunk + 1) * CHUNK_BYTES]
    padded = data + bytes(-len(data) % BLOCK_BYTES)
    if body_bytes == len(padded):
        return bit // (8 * BLOCK_BYTES)
    bits = sizes(np.frombuffer(padded, np.uint8), tensor.symbol_bits).best_bits
    for first, at in ((0, bit), (1, 8 * body_bytes - 1 - bit)):
        ends = np.cumsum(bits[first::2], dtype=np.int64)
        k = int(np.searchsorted(ends, at, side="right"))
        if k < len(ends):
            return first + 2 * k
    return None


def _told(tensors: Sequence[Tensor], number: int, chunk: int, block: int | None) -> str:
    tensor = tensors[number]
    what = "header or padding" if block is None else f"block {chunk * BLOCKS_PER_CHUNK + block}"
    return f"tensor {number} ({tensor.dtype}, {len(tensor.data)} bytes), chunk {chunk}, {what}"
