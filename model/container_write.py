"""Writing of ``.pz`` files (docs/format.md, File container)."""

from __future__ import annotations

import io
import math
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from planezip.model import dtypes
from planezip.model.directory import HEAD_BYTES, INDEX, Entry, pack_entry, pack_head
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import CHUNK_BYTES, HEADER_BYTES
from planezip.model.newfile import new_file
from planezip.model.stream import Stream

__all__ = ["Pieces", "to_bytes", "write", "write_pieces"]


@dataclass(frozen=True)
class Pieces:
    """A compressed tensor that comes piece by piece, each a whole number of chunks.

    Attributes
    ----------
    dtype : str
    shape : tuple of int
    payload : iterable of bytes
        Wire format; taken once, when the tensor is written.
    """

    dtype: str
    shape: tuple[int, ...]
    payload: Iterable[bytes | memoryview]


def write(
    path: str | os.PathLike[str], streams: Mapping[str, Stream], *, index: bool = True
) -> None:
    """Write named tensors to a file; an existing file is replaced only by a whole new one.

    Parameters
    ----------
    path
    streams : mapping of str to Stream
    index : bool
        Store an index of the chunks (6 bytes each), so that one can be read alone.

    Raises
    ------
    ValueError
        For a name beyond 65,535 bytes of UTF-8, more than 32 dimensions, or a dimension
        that makes the tensor larger than 2^63 bytes.
    StreamError
        For a stream whose chunk headers are broken.
    OSError
    """
    write_pieces(path, {name: _whole(stream) for name, stream in streams.items()}, index=index)


def to_bytes(streams: Mapping[str, Stream], *, index: bool = True) -> bytes:
    """The file that :func:`write` writes, as bytes."""
    file = io.BytesIO()
    _dump(file, {name: _whole(stream) for name, stream in streams.items()}, index)
    return file.getvalue()


def write_pieces(
    path: str | os.PathLike[str], tensors: Mapping[str, Pieces], *, index: bool = True
) -> None:
    """:func:`write` for tensors that are too large to hold, piece by piece."""
    with new_file(path) as file:
        _dump(file, tensors, index)


def _whole(stream: Stream) -> Pieces:
    return Pieces(stream.dtype, stream.shape, (stream.payload,))


def _dump(file: BinaryIO, tensors: Mapping[str, Pieces], index: bool) -> None:
    """Payload first, behind a gap for the directory, whose length is known."""
    blank = [pack_entry(name, _entry(t, index)) for name, t in tensors.items()]
    file.seek(HEAD_BYTES + sum(map(len, blank)))
    directory = [pack_entry(name, _dump_payload(file, t, index)) for name, t in tensors.items()]
    file.seek(0)
    file.write(pack_head(len(tensors), b"".join(directory)) + b"".join(directory))


def _entry(tensor: Pieces, index: bool) -> Entry:
    """Entry of a tensor before its payload is known."""
    raw_bytes = math.prod(tensor.shape) * dtypes.dtype_of(tensor.dtype).itemsize
    table = np.zeros(-(-raw_bytes // CHUNK_BYTES), INDEX) if index else None
    return Entry(tensor.dtype, tensor.shape, raw_bytes, 0, 0, 0, table)


def _dump_payload(file: BinaryIO, tensor: Pieces, index: bool) -> Entry:
    """Write the payload; the finished entry."""
    entry = _entry(tensor, index)
    wire_bytes = crc = chunk = 0
    for piece in tensor.payload:
        at = 0
        while at < len(piece):
            size = int.from_bytes(piece[at : at + HEADER_BYTES], "little")
            end = at + HEADER_BYTES + size
            if chunk == entry.chunk_count:
                raise StreamError(ErrorCode.EXTRA, max(chunk - 1, 0))
            if end > len(piece):
                raise StreamError(ErrorCode.STREAM_END, chunk)
            if entry.index is not None:
                entry.index[chunk] = size, zlib.crc32(piece[at:end])
            chunk += 1
            at = end
        file.write(piece)
        wire_bytes += len(piece)
        crc = zlib.crc32(piece, crc)
    if chunk < entry.chunk_count:
        raise StreamError(ErrorCode.STREAM_END, chunk)
    return replace(entry, wire_bytes=wire_bytes, crc32=crc)
