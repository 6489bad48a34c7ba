"""Files of the whole-path harness: what goes in, what the golden codec says comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planezip.hdl.engine_types import completion, engine_descriptor
from planezip.hdl.types import ElementType, Mode, beat
from planezip.model import encode_bytes, sizes
from planezip.model.errors import ErrorCode
from planezip.model.format import (
    BLOCK_BYTES,
    BLOCKS_PER_CHUNK,
    DEFAULT,
    HEADER_BYTES,
    Tag,
)
from tb.harness.golden import chunks_of
from tb.harness.tensors import Tensor
from tb.layouts import pack

__all__ = ["beat_records", "golden_completion", "path_files", "wire_of"]

_BLOCK, _END = 1, 2
_TAGS = 1 << 16


def wire_of(tensor: Tensor) -> bytes:
    """What goes over the link for a tensor."""
    if tensor.stream is not None:
        return tensor.stream
    return tensor.data if tensor.mode == "bypass" else encode_bytes(tensor.data, tensor.symbol_bits)


def beat_records(data: bytes, size: int, per_block: int | None, noise: bool) -> bytes:
    """Records of a tensor as beats of ``size`` bytes; noise or zeros behind its end."""
    behind = -len(data) % size
    tail = np.random.default_rng(behind).bytes(behind) if noise else bytes(behind)
    words = np.frombuffer(data + tail, np.uint8).reshape(-1, size)[:, ::-1]
    count = len(words)
    if not count:
        return b""
    layout = beat(size)
    width = (layout.size + 7) // 8 - size
    head: NDArray[np.uint8] = np.zeros((count, width), np.uint8)
    head[:] = _head(layout, size, 0, width)
    head[-1] = _head(layout, size - behind, 1, width)
    marks = np.zeros((count, 1), np.uint8)
    if per_block is not None:
        marks[::per_block] = _BLOCK
    marks[-1:] |= _END
    return np.hstack([head, words, marks]).tobytes()


def _head(layout: Any, valid: int, last: int, width: int) -> list[int]:
    number = pack(layout, {"bytes": valid, "last": last}) >> layout["data"].width
    return list(number.to_bytes(width, "big"))


def _words(layout: Any, fields: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(pack(layout, f).to_bytes((layout.size + 7) // 8, "big") for f in fields)


def _descriptor(tensor: Tensor, wire_bytes: int, tag: int) -> dict[str, Any]:
    return {
        "raw_bytes": len(tensor.data),
        "wire_bytes": wire_bytes,
        "dtype": getattr(ElementType, tensor.dtype.upper()),
        "mode": getattr(Mode, tensor.mode.upper()),
        "tag": tag % _TAGS,
    }


def _counts(tensor: Tensor, wire: bytes) -> list[int]:
    """Blocks per encoding of a sound tensor; those of chunks stored as they are count as RAW."""
    padded = tensor.data + bytes(-len(tensor.data) % BLOCK_BYTES)
    counts = np.zeros(len(Tag), np.int64)
    if tensor.mode == "bypass":
        counts[Tag.RAW] = len(padded) // BLOCK_BYTES
        return [int(count) for count in counts]
    tags = sizes(np.frombuffer(padded, np.uint8), tensor.symbol_bits).tag
    at = 0
    for first in range(0, len(tags), BLOCKS_PER_CHUNK):
        chunk = tags[first : first + BLOCKS_PER_CHUNK]
        size = int.from_bytes(wire[at : at + HEADER_BYTES], "little")
        at += HEADER_BYTES + size
        if size == len(chunk) * BLOCK_BYTES:
            counts[Tag.RAW] += len(chunk)
        else:
            counts += np.bincount(chunk, minlength=len(Tag))
    return [int(count) for count in counts]


def golden_completion(tensor: Tensor, tag: int) -> tuple[dict[str, Any], bytes]:
    """Completion of a tensor without its cycles, and the bytes that come out raw."""
    wire = wire_of(tensor)
    fields: dict[str, Any] = {
        "tag": tag % _TAGS,
        "raw_bytes": len(tensor.data),
        "wire_bytes": len(wire),
    }
    data = tensor.data
    if tensor.stream is None:
        fields["blocks"] = _counts(tensor, wire)
    else:
        chunks = list(chunks_of(wire, len(data), tensor.symbol_bits, tensor.mode))
        fields["blocks"] = [sum(chunk.tags[tag] for chunk in chunks) for tag in Tag]
        faults = [(c.error, k, c.block) for k, c in enumerate(chunks) if c.error]
        if not data and wire:
            faults = [(int(ErrorCode.EXTRA), 0, 0)]
        if faults:
            fields["error"], fields["chunk"], fields["block"] = faults[0]
        data = b"".join(chunk.data for chunk in chunks)
    return fields, b"" if tensor.mode == "measure" else data


def path_files(lanes: int, tensors: Sequence[Tensor], back: Sequence[Tensor]) -> dict[str, bytes]:
    """Contents of the harness' files for ``tensors`` one way and ``back`` the other."""
    raw, wire = 32 * lanes, 64 * lanes
    per_block = max(1, BLOCK_BYTES // raw)
    there = [golden_completion(tensor, k)[0] for k, tensor in enumerate(tensors)]
    here = [golden_completion(tensor, k) for k, tensor in enumerate(back)]
    sent = [b"" if tensor.mode == "measure" else wire_of(tensor) for tensor in tensors]
    return {
        "descriptors.bin": _words(
            engine_descriptor(), [_descriptor(t, 0, k) for k, t in enumerate(tensors)]
        ),
        "in.bin": b"".join(beat_records(t.data, raw, per_block, noise=True) for t in tensors),
        "wire.bin": b"".join(beat_records(s, wire, None, noise=False) for s in sent),
        "completions.bin": _words(completion(DEFAULT), there),
        "back_descriptors.bin": _words(
            engine_descriptor(), [_descriptor(t, len(wire_of(t)), k) for k, t in enumerate(back)]
        ),
        "link.bin": b"".join(beat_records(wire_of(t), wire, None, noise=True) for t in back),
        "out.bin": b"".join(beat_records(data, raw, per_block, noise=False) for _, data in here),
        "back_completions.bin": _words(completion(DEFAULT), [fields for fields, _ in here]),
    }
