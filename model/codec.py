"""Compress and decompress whole tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planezip.model import dtypes, reference
from planezip.model.arrays import flat_bytes
from planezip.model.stream import Stream

__all__ = ["decode", "decode_bytes", "encode", "encode_bytes", "ratio"]


def encode_bytes(data: bytes, w: int) -> bytes:
    """Wire format of ``data`` taken as symbols of ``w`` bits (16 or 32)."""
    return reference.encode_tensor(bytes(data), w)


def decode_bytes(payload: bytes, raw_bytes: int, w: int) -> bytes:
    """Inverse of :func:`encode_bytes`; StreamError for a broken stream."""
    return reference.decode_tensor(bytes(payload), raw_bytes, w)


def encode(array: Any) -> Stream:
    """Compress a NumPy array or a tensor (see :func:`planezip.model.arrays.flat_bytes`)."""
    data, name, shape = flat_bytes(array)
    return Stream(name, shape, encode_bytes(data.tobytes(), dtypes.symbol_bits(name)))


def decode(stream: Stream) -> NDArray[Any]:
    """The array that ``stream`` holds, bit for bit; StreamError for a broken stream."""
    data = decode_bytes(stream.payload, stream.raw_bytes, stream.w)
    return np.frombuffer(bytearray(data), dtypes.dtype_of(stream.dtype)).reshape(stream.shape)


def ratio(array: Any) -> float:
    """Raw bytes over wire bytes."""
    return encode(array).ratio
