"""Errors of a stream that the format does not allow (docs/format.md, Errors)."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ErrorCode", "StreamError"]


class ErrorCode(IntEnum):
    """Fault of a stream; the hardware reports the same values (0: no error)."""

    CHUNK_SIZE = 1  # header above the raw size of the chunk
    STREAM_END = 2  # the stream ends within a header or body
    TAG = 3  # reserved tag
    RUN = 4  # zero run that names a plane not below its first one
    POSITION = 5  # position past the plane's width
    OVERRUN = 6  # block needs more bits than are left in the body
    TRAILING = 7  # 8 or more bits left in the body
    PADDING = 8  # padding bits of the body not zero
    TAIL = 9  # bytes behind the tensor's end not zero
    EXTRA = 10  # bytes after the last chunk
    # File container only, never from the hardware:
    FILE_HEADER = 32  # not a PlaneZip file, or a header that contradicts itself
    CHECKSUM = 33  # bytes of a file do not match their checksum


class StreamError(ValueError):
    """A stream broke the format.

    Attributes
    ----------
    code : ErrorCode
    chunk, block : int
        Where the fault is (docs/format.md, Errors).
    detail : str
        What a person should know beyond that; may be empty.
    """

    def __init__(self, code: ErrorCode, chunk: int = 0, block: int = 0, detail: str = "") -> None:
        self.code = code
        self.chunk = chunk
        self.block = block
        self.detail = detail
        text = f"{code.name} in chunk {chunk}, block {block}"
        super().__init__(f"{text}: {detail}" if detail else text)
