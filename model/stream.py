"""A compressed tensor in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planezip.model import dtypes
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import BLOCK_BYTES, CHUNK_BYTES, HEADER_BYTES

__all__ = ["Stream"]


@dataclass(frozen=True)
class Stream:
    """A tensor as it stands on the wire, with what the wire does not carry.

    Attributes
    ----------
    dtype : str
        Name of the element type (:data:`planezip.model.dtypes.DTYPES`).
    shape : tuple of int
        Shape of the tensor, in elements.
    payload : bytes or read-only memoryview of bytes
        Wire format: chunk after chunk (docs/format.md). :func:`planezip.model.encode` makes
        a view, which saves a copy; ``bytes(payload)`` makes bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    payload: bytes | memoryview

    def __post_init__(self) -> None:
        dtypes.dtype_of(self.dtype)
        if not isinstance(self.payload, bytes) and not (
            isinstance(self.payload, memoryview) and self.payload.readonly
        ):
            kind = type(self.payload).__name__
            raise TypeError(f"payload must be bytes or a read-only memoryview, not {kind}")
        if any(not isinstance(n, int) or n < 0 for n in self.shape):
            raise ValueError(f"shape must consist of integers of at least 0, not {self.shape!r}")

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape, self.wire_bytes))

    def __reduce__(self) -> tuple[type[Stream], tuple[str, tuple[int, ...], bytes]]:
        return Stream, (self.dtype, self.shape, bytes(self.payload))  # no pickle of views

    @property
    def w(self) -> int:
        """Symbol width in bits."""
        return dtypes.symbol_bits(self.dtype)

    @property
    def raw_bytes(self) -> int:
        """Bytes of the tensor, uncompressed and without padding."""
        return math.prod(self.shape) * dtypes.dtype_of(self.dtype).itemsize

    @property
    def wire_bytes(self) -> int:
        """Bytes on the wire, headers and padding included."""
        return len(self.payload)

    @property
    def ratio(self) -> float:
        """Raw bytes over wire bytes; 1.0 for an empty tensor."""
        return self.raw_bytes / self.wire_bytes if self.payload else 1.0

    @property
    def chunk_count(self) -> int:
        """Chunks of the tensor."""
        return -(-self.raw_bytes // CHUNK_BYTES)

    def chunk_index(self) -> NDArray[np.int64]:
        """Byte offset of each chunk's header in ``payload``, then the end: chunk_count + 1.

        Raises
        ------
        StreamError
            CHUNK_SIZE, STREAM_END or EXTRA, as a decoder would find them.
        """
        offsets = [0]
        for chunk in range(self.chunk_count):
            at = offsets[-1]
            header = self.payload[at : at + HEADER_BYTES]
            size = int.from_bytes(header, "little")
            blocks = -(-min(CHUNK_BYTES, self.raw_bytes - chunk * CHUNK_BYTES) // BLOCK_BYTES)
            if len(header) == HEADER_BYTES and size > blocks * BLOCK_BYTES:
                raise StreamError(ErrorCode.CHUNK_SIZE, chunk)
            if len(header) < HEADER_BYTES or at + HEADER_BYTES + size > len(self.payload):
                raise StreamError(ErrorCode.STREAM_END, chunk)
            offsets.append(at + HEADER_BYTES + size)
        if offsets[-1] < len(self.payload):
            raise StreamError(ErrorCode.EXTRA, max(self.chunk_count - 1, 0))
        return np.array(offsets, np.int64)
