"""Files of compressed tensors, ``.pz`` (docs/format.md, File container)."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from planezip.model import dtypes
from planezip.model.codec import decode_bytes
from planezip.model.container_write import Pieces, to_bytes, write, write_pieces
from planezip.model.directory import Entry, parse
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import CHUNK_BYTES, HEADER_BYTES
from planezip.model.stream import Stream

__all__ = [
    "Entry",
    "File",
    "Pieces",
    "chunk_numbers_from",
    "from_bytes",
    "read",
    "to_bytes",
    "write",
    "write_pieces",
]


class File:
    """A ``.pz`` file opened for reading; a context manager.

    Parameters
    ----------
    source : path or bytes
        A file is read as needed, from any number of threads.

    Attributes
    ----------
    entries : dict of str to Entry
        The directory, in file order.

    Raises
    ------
    StreamError
        FILE_HEADER or CHECKSUM: not a whole ``.pz`` file.
    OSError
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self._file: io.BufferedIOBase | None = None
        if isinstance(source, bytes):
            self._bytes, length = source, len(source)
        else:
            self._file = Path(source).open("rb")  # noqa: SIM115, close() closes it
            length = os.fstat(self._file.fileno()).st_size
        try:
            self.entries = parse(self._read, length)
        except BaseException:
            self.close()
            raise

    def _read(self, start: int, count: int) -> bytes:
        """Bytes of the file; fewer if it ends before."""
        if self._file is None:
            return self._bytes[start : start + count]
        parts = []
        while count and (part := os.pread(self._file.fileno(), count, start)):
            parts.append(part)  # one call gives 2 GB at most
            start += len(part)
            count -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def stream(self, name: str) -> Stream:
        """Tensor ``name``, its checksum verified; KeyError if there is none."""
        entry = self.entries[name]
        payload = self._read(entry.offset, entry.wire_bytes)
        if zlib.crc32(payload) != entry.crc32:
            raise StreamError(ErrorCode.CHECKSUM, detail=f"{name} is damaged")
        return Stream(entry.dtype, entry.shape, payload)

    def chunk(self, name: str, k: int) -> bytes:
        """Raw bytes of chunk ``k`` of tensor ``name``, read and decoded alone.

        Raises
        ------
        KeyError, IndexError
            For a tensor or chunk that is not there.
        ValueError
            For a file without chunk index.
        StreamError
        """
        entry = self.entries[name]
        if entry.index is None:
            raise ValueError(f"{name} has no chunk index: decode the whole tensor")
        if not 0 <= k < entry.chunk_count:
            raise IndexError(f"chunk must be from 0 to {entry.chunk_count - 1}, not {k!r}")
        sizes = entry.index["size"]
        start = entry.offset + HEADER_BYTES * k + int(sizes[:k].sum(dtype=np.int64))
        wire = self._read(start, HEADER_BYTES + int(sizes[k]))
        if zlib.crc32(wire) != entry.index["crc"][k]:
            raise StreamError(ErrorCode.CHECKSUM, k, detail=f"{name} is damaged")
        raw_bytes = min(CHUNK_BYTES, entry.raw_bytes - k * CHUNK_BYTES)
        with chunk_numbers_from(k):
            return decode_bytes(wire, raw_bytes, dtypes.symbol_bits(entry.dtype))

    def pieces(self, name: str, chunks: int = 1024) -> Iterator[bytes]:
        """Wire bytes of tensor ``name``, ``chunks`` chunks at a time, verified at the end.

        Raises
        ------
        StreamError
            A broken chunk header; CHECKSUM after the last piece.
        """
        entry = self.entries[name]
        at, end = entry.offset, entry.offset + entry.wire_bytes
        crc = 0
        for first in range(0, entry.chunk_count, chunks):
            count = min(chunks, entry.chunk_count - first)
            most = count * (HEADER_BYTES + CHUNK_BYTES)
            piece = _whole_chunks(self._read(at, min(most, end - at)), first, count)
            crc = zlib.crc32(piece, crc)
            yield piece
            at += len(piece)
        if at < end:
            raise StreamError(ErrorCode.EXTRA, max(entry.chunk_count - 1, 0))
        if crc != entry.crc32:
            raise StreamError(ErrorCode.CHECKSUM, detail=f"{name} is damaged")


def _whole_chunks(data: bytes, first: int, count: int) -> bytes:
    """The ``count`` chunks at the front of ``data``; ``first`` is the number of the first."""
    at = 0
    for k in range(first, first + count):
        size = int.from_bytes(data[at : at + HEADER_BYTES], "little")
        if size > CHUNK_BYTES:
            raise StreamError(ErrorCode.CHUNK_SIZE, k)
        at += HEADER_BYTES + size
        if at > len(data):
            raise StreamError(ErrorCode.STREAM_END, k)
    return data[:at]


@contextmanager
def chunk_numbers_from(first: int) -> Iterator[None]:
    """Errors of a part that starts at chunk ``first`` count chunks from the whole."""
    try:
        yield
    except StreamError as error:
        raise StreamError(error.code, first + error.chunk, error.block, error.detail) from None


def from_bytes(data: bytes) -> dict[str, Stream]:
    """The tensors of a file given as bytes, checksums verified; StreamError if broken."""
    file = File(bytes(data))
    return {name: file.stream(name) for name in file.entries}


def read(path: str | os.PathLike[str]) -> dict[str, Stream]:
    """The tensors of a file, checksums verified; StreamError if broken, OSError."""
    with File(path) as file:
        return {name: file.stream(name) for name in file.entries}
