"""Golden codec of PlaneZip: format, reference, fast codec.

Names are imported when they are first used: who only needs the format does not wait for numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "ErrorCode": "errors",
    "Parameters": "format",
    "PlaneCode": "format",
    "Sizes": "measure",
    "Stream": "stream",
    "StreamError": "errors",
    "Tag": "format",
}  # of the others: codec


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'codec')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
