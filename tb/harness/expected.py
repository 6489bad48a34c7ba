"""Contents of the harness' files: what goes into a lane, and what the golden codec says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planezip.hdl.decoder_types import decode_report, decoded_beat
from planezip.hdl.types import ElementType, Mode, beat, chunk_report, descriptor
from planezip.model import encode_bytes, sizes
from planezip.model.format import (
    BLOCK_BYTES,
    BLOCKS_PER_CHUNK,
    CHUNK_BYTES,
    DEFAULT,
    HEADER_BYTES,
    Tag,
)
from tb.harness.arrival import Arrivals
from tb.harness.golden import Chunk, chunks_of, first_fault
from tb.harness.tensors import Tensor
from tb.layouts import pack

__all__ = [
    "Records",
    "beats",
    "compressor_records",
    "decompressor_records",
    "descriptors",
    "join_reports",
    "raw_words",
]

RAW_BYTES, WIRE_BYTES = 32, 64
_WIRE_BEAT, _RAW_BEAT = beat(WIRE_BYTES), decoded_beat(DEFAULT)
_BLOCK, _END = 1, 2


@dataclass(frozen=True)
class Records:
    """Bytes of descriptors.bin, in.bin, out.bin and reports.bin (tb/harness/harness.v).

    Attributes
    ----------
    arrivals : sequence of int
        Cycle in which each chunk is there, counted from the first beat of the input; empty
        for a lane that has what it needs with each beat.
    faulty : sequence of int
        Numbers of the tensors in which the codec finds a fault.
    """

    descriptors: bytes
    input: bytes
    output: bytes
    reports: bytes
    arrivals: Sequence[int] = ()
    faulty: Sequence[int] = ()

    def files(self) -> dict[str, bytes]:
        return {
            "descriptors.bin": self.descriptors,
            "in.bin": self.input,
            "out.bin": self.output,
            "reports.bin": self.reports,
        }


def descriptors(tensors: Sequence[Tensor]) -> bytes:
    """Records of the tensors' descriptors, tagged with their numbers modulo 256."""
    layout = descriptor()
    words = (
        pack(
            layout,
            {
                "dtype": getattr(ElementType, tensor.dtype.upper()),
                "raw_bytes": len(tensor.data),
                "mode": getattr(Mode, tensor.mode.upper()),
                "tag": k % 256,
            },
        )
        for k, tensor in enumerate(tensors)
    )
    return words_to_bytes(words, layout.size)


def words_to_bytes(words: Iterable[int], bits: int) -> bytes:
    """Numbers of ``bits`` bits, each as whole bytes, most significant first."""
    return b"".join(word.to_bytes((bits + 7) // 8, "big") for word in words)


def _padded(data: bytes, beat_bytes: int) -> NDArray[np.uint8]:
    padded = data + bytes(-len(data) % beat_bytes)
    return np.frombuffer(padded, np.uint8).reshape(-1, beat_bytes)


def _marks(count: int, per_block: int | None) -> NDArray[np.uint8]:
    """Marks of the ``count`` beats of a tensor; blocks begin every ``per_block`` beats."""
    marks = np.zeros((count, 1), np.uint8)
    if per_block is not None:
        marks[::per_block] = _BLOCK
    marks[-1:] |= _END
    return marks


def raw_words(data: bytes) -> bytes:
    """Records of a tensor on an input of plain 32-byte words; noise behind the end."""
    words = _padded(data + _noise(-len(data) % RAW_BYTES), RAW_BYTES)[:, ::-1]
    return np.hstack([words, _marks(len(words), BLOCK_BYTES // RAW_BYTES)]).tobytes()


def beats(data: bytes, layout: Any, per_block: int | None = None, noise: bool = False) -> bytes:
    """Records of a tensor as beats of ``layout``: data, number of valid bytes, last.

    Bytes behind the end are zero, or ``noise`` for an input that must ignore them.
    """
    beat_bytes = layout["data"].width // 8
    behind = -len(data) % beat_bytes
    words = _padded(data + (_noise(behind) if noise else bytes(behind)), beat_bytes)[:, ::-1]
    if not len(words):
        return b""
    left = len(data) - (len(words) - 1) * beat_bytes
    head = np.full((len(words), 1), _head(layout, beat_bytes, 0), np.uint8)
    head[-1] = _head(layout, left, 1)
    return np.hstack([head, words, _marks(len(words), per_block)]).tobytes()


def _head(layout: Any, valid_bytes: int, last: int) -> int:
    fields = valid_bytes << layout["bytes"].offset | last << layout["last"].offset
    return int(fields >> layout["data"].width)


@cache
def _noise(count: int) -> bytes:
    return np.random.default_rng(count).bytes(count)


def compressor_records(tensors: Sequence[Tensor]) -> Records:
    """For the compressor: wire beats of the encoder, chunk reports of the size model."""
    layout = chunk_report(DEFAULT)
    output, reports = [], []
    for tensor in tensors:
        wire = encode_bytes(tensor.data, tensor.symbol_bits)
        sent = {"stream": wire, "bypass": tensor.data, "measure": b""}[tensor.mode]
        output.append(beats(sent, _WIRE_BEAT))
        reports += [pack(layout, fields) for fields in _reports(tensor, wire)]
    return Records(
        descriptors(tensors),
        b"".join(raw_words(tensor.data) for tensor in tensors),
        b"".join(output),
        words_to_bytes(reports, layout.size),
    )


def decompressor_records(tensors: Sequence[Tensor]) -> Records:
    """For the decompressor: the tensors themselves, from the encoder's streams, or what the
    golden decoder says of streams of their own."""
    layout = decode_report(DEFAULT)
    inputs, output, reports = [], [], []
    arrivals: list[int] = []
    faulty: list[int] = []
    clock = Arrivals()
    for number, tensor in enumerate(tensors):
        if tensor.stream is None:
            wire = encode_bytes(tensor.data, tensor.symbol_bits)
            sent = tensor.data if tensor.mode == "bypass" else wire
            decoded = beats(tensor.data, _RAW_BEAT, BLOCK_BYTES // RAW_BYTES)
            fields = list(_reports(tensor, wire))
        else:
            sent = tensor.stream
            chunks = _judged(tensor, number)
            decoded = _decoded(chunks)
            fields = [_decode_report(chunk, k + 1 == len(chunks)) for k, chunk in enumerate(chunks)]
            if any(chunk.error for chunk in chunks):
                faulty.append(number)
        if tensor.data:
            inputs.append(beats(sent, _WIRE_BEAT, noise=True) or _empty_stream())
        if tensor.mode != "measure":
            output.append(decoded)
        reports += [pack(layout, values) for values in fields]
        arrivals += clock.of(sent, len(tensor.data), tensor.mode)
    return Records(
        descriptors(tensors),
        b"".join(inputs),
        b"".join(output),
        words_to_bytes(reports, layout.size),
        arrivals,
        faulty,
    )


def _judged(tensor: Tensor, number: int) -> list[Chunk]:
    """Chunks of a tensor with a stream of its own.

    Raises
    ------
    ValueError
        If the first fault is not the one that the codec reports of the tensor as a whole.
    """
    stream, size, w = tensor.stream or b"", len(tensor.data), tensor.symbol_bits
    chunks = list(chunks_of(stream, size, w, tensor.mode))
    faults = [(chunk.error, k, chunk.block) for k, chunk in enumerate(chunks) if chunk.error]
    if tensor.mode != "bypass" and size:
        first = first_fault(stream, size, w)
        if faults[:1] != ([first] if first else []):
            raise ValueError(f"tensor {number}: {first} as a whole, by chunks {faults}")
    return chunks


def _decode_report(chunk: Chunk, last: bool) -> dict[str, object]:
    return {
        "body_bytes": chunk.body_bytes,
        "blocks": chunk.tags,
        "raw": chunk.raw,
        "last": last,
        "error": chunk.error,
        "block": chunk.block,
    }


def _empty_stream() -> bytes:
    """Record of the one beat of a tensor whose stream has no byte: none valid, last."""
    return bytes([_head(_WIRE_BEAT, 0, 1)]) + _noise(WIRE_BYTES) + bytes([_END])


def _decoded(chunks: Sequence[Chunk]) -> bytes:
    """Raw beats of a tensor; those from a chunk's first block at fault on are marked bad."""
    data = b"".join(chunk.data for chunk in chunks)
    made = bytearray(beats(data, _RAW_BEAT, BLOCK_BYTES // RAW_BYTES))
    record = len(made) // max(1, -(-len(data) // RAW_BYTES))
    bad = 1 << _RAW_BEAT["bad"].offset - _RAW_BEAT["data"].width
    start = 0
    for chunk in chunks:
        beat_count = -(-len(chunk.data) // RAW_BYTES)
        for k in range(chunk.good * BLOCK_BYTES // RAW_BYTES, beat_count):
            made[(start + k) * record] |= bad
        start += beat_count
    return bytes(made)


def join_reports(written: bytes, read: bytes, layout: Any) -> bytes:
    """Records of reports of ``layout``, from those of its first and of its second field."""
    fields = [layout["written"], layout["read"]]
    sizes_ = [(field.width + 7) // 8 for field in fields]
    count = len(written) // sizes_[0]
    words = (
        sum(
            int.from_bytes(data[k * size : (k + 1) * size], "big") << field.offset
            for data, size, field in zip((written, read), sizes_, fields, strict=True)
        )
        for k in range(count)
    )
    return words_to_bytes(words, layout.size)


def _reports(tensor: Tensor, wire: bytes) -> Iterable[dict[str, object]]:
    """Chunk reports of a tensor; sizes from the headers in ``wire``, tags from the size model."""
    padded = tensor.data + bytes(-len(tensor.data) % BLOCK_BYTES)
    tags = sizes(np.frombuffer(padded, np.uint8), tensor.symbol_bits).tag
    at = 0
    for start in range(0, len(padded), CHUNK_BYTES):
        size = int.from_bytes(wire[at : at + HEADER_BYTES], "little")
        at += HEADER_BYTES + size
        chunk = tags[start // BLOCK_BYTES :][:BLOCKS_PER_CHUNK]
        counts = [int(count) for count in np.bincount(chunk, minlength=len(Tag))]
        raw = size == len(chunk) * BLOCK_BYTES
        if tensor.mode == "bypass":
            size, raw = len(tensor.data[start : start + CHUNK_BYTES]), True
        if raw:  # counted as RAW, whatever the blocks' winners
            counts = [len(chunk) if tag == Tag.RAW else 0 for tag in Tag]
        last = start + CHUNK_BYTES >= len(padded)
        yield {"body_bytes": size, "blocks": counts, "raw": raw, "last": last}
