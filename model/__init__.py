"""Golden codec of PlaneZip: format, reference, fast codec."""

from planezip.model.codec import (
    decode,
    decode_blocks,
    decode_bytes,
    decode_chunk,
    encode,
    encode_bytes,
    ratio,
    sizes,
)
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import Parameters, PlaneCode, Tag
from planezip.model.measure import Sizes
from planezip.model.stream import Stream

__all__ = [
    "ErrorCode",
    "Parameters",
    "PlaneCode",
    "Sizes",
    "Stream",
    "StreamError",
    "Tag",
    "decode",
    "decode_blocks",
    "decode_bytes",
    "decode_chunk",
    "encode",
    "encode_bytes",
    "ratio",
    "sizes",
]
