"""Header and directory of a ``.pz`` file (docs/format.md, File container)."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planezip.model import dtypes
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import BLOCK_BYTES, CHUNK_BYTES, FORMAT_VERSION, HEADER_BYTES

__all__ = ["HEAD_BYTES", "INDEX", "MAGIC", "Entry", "pack_entry", "pack_head", "parse"]

MAGIC = b"\x89PZ\r\n\x1a\n\0"
MAX_DIMENSIONS = 32  # NumPy 1 has no more

_HEAD = struct.Struct("<8sHHIQI4x")  # magic, version, flags, tensors, directory bytes, CRC
_HEAD_CRC_AT = 24
HEAD_BYTES = _HEAD.size
_FIELDS = struct.Struct("<HBBBx")  # name bytes, dtype bytes, dimensions, flags
_SIZES = struct.Struct("<QQI")  # raw bytes, wire bytes, CRC of the wire bytes
INDEX = np.dtype([("size", "<u2"), ("crc", "<u4")])  # per chunk: header field, CRC
_FLAG_INDEX = 1


def _broken(detail: str) -> StreamError:
    return StreamError(ErrorCode.FILE_HEADER, detail=detail)


@dataclass(frozen=True)
class Entry:
    """What the directory of a file says about one tensor.

    Attributes
    ----------
    dtype : str
    shape : tuple of int
    raw_bytes, wire_bytes : int
    crc32 : int
        CRC-32 (zlib) of the wire bytes.
    offset : int
        Where the wire bytes start in the file.
    index : structured array [chunks] of ``size``, ``crc``, or None
        Body size of each chunk in bytes, and CRC-32 of its header and body.
    """

    dtype: str
    shape: tuple[int, ...]
    raw_bytes: int
    wire_bytes: int
    crc32: int
    offset: int
    index: NDArray[np.void] | None

    @property
    def chunk_count(self) -> int:
        """Chunks of the tensor."""
        return -(-self.raw_bytes // CHUNK_BYTES)

    def chunk_raw_bytes(self) -> NDArray[np.int64]:
        """Raw bytes of each chunk's blocks, the padding of the last block included."""
        padded = -(-self.raw_bytes // BLOCK_BYTES) * BLOCK_BYTES
        return np.diff(np.append(np.arange(0, padded, CHUNK_BYTES), padded))


def pack_head(count: int, directory: bytes) -> bytes:
    """Header of a file of ``count`` tensors, the checksum over it and its directory included."""
    head = _HEAD.pack(MAGIC, FORMAT_VERSION, 0, count, len(directory), 0)[:_HEAD_CRC_AT]
    crc = zlib.crc32(directory, zlib.crc32(head))
    return head + crc.to_bytes(4, "little") + bytes(_HEAD.size - _HEAD_CRC_AT - 4)


def pack_entry(name: str, entry: Entry) -> bytes:
    """Directory entry of one tensor; ValueError for a name or shape that does not fit."""
    text, dtype = name.encode("utf-8"), entry.dtype.encode("ascii")
    if len(text) > 0xFFFF:
        raise ValueError(f"name must have at most 65535 bytes of UTF-8, not {len(text)!r}")
    problem = _shape_problem(entry.shape, dtypes.dtype_of(entry.dtype).itemsize)
    if problem:
        raise ValueError(f"{name}: {problem}")
    flags = 0 if entry.index is None else _FLAG_INDEX
    fields = _FIELDS.pack(len(text), len(dtype), len(entry.shape), flags)
    shape = struct.pack(f"<{len(entry.shape)}Q", *entry.shape)
    sizes = _SIZES.pack(entry.raw_bytes, entry.wire_bytes, entry.crc32)
    table = b"" if entry.index is None else entry.index.tobytes()
    return fields + text + dtype + shape + sizes + table


def _shape_problem(shape: tuple[int, ...], itemsize: int) -> str | None:
    """Why NumPy could not make an array of this shape, if so."""
    if len(shape) > MAX_DIMENSIONS:
        return f"a tensor must have at most {MAX_DIMENSIONS} dimensions, not {len(shape)}"
    if math.prod(n for n in shape if n) * itemsize >= 1 << 63:
        return f"a tensor must be below 2^63 bytes, not of the shape {shape}"
    return None


class _Cursor:
    """Reads the directory front to back; whatever is not there is an error."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise _broken("the directory ends within an entry")
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self, count: int, what: str) -> str:
        try:
            return self.take(count).decode("utf-8")
        except UnicodeDecodeError:
            raise _broken(f"the {what} is not UTF-8") from None


def _parse_entry(cursor: _Cursor, offset: int) -> tuple[str, Entry]:
    name_bytes, dtype_bytes, dimensions, flags = _FIELDS.unpack(cursor.take(_FIELDS.size))
    if cursor.data[cursor.at - 1] or flags & ~_FLAG_INDEX:
        raise _broken("reserved bits of an entry are not zero")
    name = cursor.text(name_bytes, "name")
    dtype = cursor.text(dtype_bytes, "dtype")
    if dtype not in dtypes.DTYPES:
        raise _broken(f"{name}: unknown dtype {dtype!r}")
    itemsize = dtypes.dtype_of(dtype).itemsize
    shape = struct.unpack(f"<{dimensions}Q", cursor.take(8 * dimensions))
    problem = _shape_problem(shape, itemsize)
    if problem:
        raise _broken(f"{name}: {problem}")
    raw_bytes, wire_bytes, crc = _SIZES.unpack(cursor.take(_SIZES.size))
    if raw_bytes != math.prod(shape) * itemsize:
        raise _broken(f"{name}: {raw_bytes} bytes do not fit the shape {shape} of {dtype}")
    if not least_wire_bytes(raw_bytes) <= wire_bytes <= most_wire_bytes(raw_bytes):
        raise _broken(f"{name}: {raw_bytes} bytes cannot come from {wire_bytes} wire bytes")
    index = None
    if flags & _FLAG_INDEX:
        chunks = -(-raw_bytes // CHUNK_BYTES)
        index = np.frombuffer(cursor.take(chunks * INDEX.itemsize), INDEX)
        if int(index["size"].sum(dtype=np.int64)) + HEADER_BYTES * chunks != wire_bytes:
            raise _broken(f"{name}: the chunk index does not fit the wire bytes")
    return name, Entry(dtype, shape, raw_bytes, wire_bytes, crc, offset, index)


def least_wire_bytes(raw_bytes: int) -> int:
    """Lower limit of the wire bytes: 9 bits a block (a tag and one zero run), headers."""
    chunks, rest = divmod(-(-raw_bytes // BLOCK_BYTES), CHUNK_BYTES // BLOCK_BYTES)
    per_chunk = HEADER_BYTES + 9 * CHUNK_BYTES // BLOCK_BYTES // 8
    return chunks * per_chunk + (HEADER_BYTES + -(-9 * rest // 8) if rest else 0)


def most_wire_bytes(raw_bytes: int) -> int:
    """Upper limit of the wire bytes: every chunk raw."""
    blocks = -(-raw_bytes // BLOCK_BYTES)
    return blocks * BLOCK_BYTES + -(-raw_bytes // CHUNK_BYTES) * HEADER_BYTES


def parse(read: Callable[[int, int], bytes], length: int) -> dict[str, Entry]:
    """The directory of a file; its sizes are checked against the bytes that are there.

    Parameters
    ----------
    read : callable
        ``read(offset, count)`` gives bytes of the file.
    length : int
        Bytes of the file.
    """
    head = read(0, _HEAD.size)
    if head[: len(MAGIC)] != MAGIC:
        raise _broken("not a .pz file: make one with `planezip encode`")
    if len(head) < _HEAD.size:
        raise _broken("the file ends within its header")
    _, version, flags, count, directory_bytes, crc = _HEAD.unpack(head)
    if version != FORMAT_VERSION:
        raise _broken(f"version {version} is not known, only {FORMAT_VERSION}: update planezip")
    if flags or any(head[_HEAD_CRC_AT + 4 :]):
        raise _broken("reserved bits of the header are not zero")
    if directory_bytes > length - _HEAD.size:
        raise _broken(f"the file is shorter than its directory of {directory_bytes} bytes")
    directory = read(_HEAD.size, directory_bytes)
    if zlib.crc32(directory, zlib.crc32(head[:_HEAD_CRC_AT])) != crc:
        raise StreamError(ErrorCode.CHECKSUM, detail="header and directory are damaged")
    cursor, offset = _Cursor(directory), _HEAD.size + directory_bytes
    entries: dict[str, Entry] = {}
    for _ in range(count):
        name, entry = _parse_entry(cursor, offset)
        if name in entries:
            raise _broken(f"the name {name!r} appears twice")
        entries[name] = entry
        offset += entry.wire_bytes
    if cursor.at != len(directory):
        raise _broken("bytes after the last entry of the directory")
    if offset != length:
        raise _broken(f"the file has {length} bytes, its directory accounts for {offset}")
    return entries
