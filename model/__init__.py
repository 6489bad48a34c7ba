"""Golden codec of PlaneZip: format, reference, fast codec."""

from planezip.model.codec import decode, decode_bytes, encode, encode_bytes, ratio
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import Parameters, PlaneCode, Tag
from planezip.model.stream import Stream

__all__ = [
    "ErrorCode",
    "Parameters",
    "PlaneCode",
    "Stream",
    "StreamError",
    "Tag",
    "decode",
    "decode_bytes",
    "encode",
    "encode_bytes",
    "ratio",
]
