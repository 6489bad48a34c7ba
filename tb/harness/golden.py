"""What the golden codec says of a stream that may be broken, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planezip.hdl.intake import entries
from planezip.hdl.types import Mode
from planezip.model import decode_blocks
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import (
    BLOCK_BYTES,
    CHUNK_BYTES,
    DEFAULT,
    HEADER_BYTES,
    TAG_BITS,
    PlaneCode,
    Tag,
    log2_ceil,
)

__all__ = ["Chunk", "chunks_of", "first_fault", "tags_of"]

# By the next 5 control bits: the code and the length of its prefix.
_CODES = [
    next((c, c.prefix[1]) for c in PlaneCode if bits & ((1 << c.prefix[1]) - 1) == c.prefix[0])
    for bits in range(32)
]


@dataclass(frozen=True)
class Chunk:
    """A chunk as it must come out.

    Attributes
    ----------
    data : bytes
        As many as the chunk has; zero from the first block at fault on.
    good : int
        Blocks before that one, or all.
    tags : list of int
        Of the good blocks, how many have which tag.
    body_bytes : int
        As the header says; 0 if there is no body.
    raw : bool
    error, block : int
        First fault of the chunk and its block; 0, 0 if there is none.
    """

    data: bytes
    good: int
    tags: list[int]
    body_bytes: int
    raw: bool
    error: int
    block: int


def tags_of(body: bytes, count: int, w: int) -> list[int]:
    """Tags of the first ``count`` blocks, which are sound, of a coded body."""
    up = int.from_bytes(body, "little")
    down = int(f"{up:0{8 * len(body)}b}"[::-1], 2) if body else 0
    n, at, tags = DEFAULT.symbols(w), [0, 0], []
    for k in range(count):
        bits = (down if k % 2 else up) >> at[k % 2]
        tag = Tag(bits & ((1 << TAG_BITS) - 1))
        tags.append(int(tag))
        used = TAG_BITS
        mask = bits >> used & ((1 << n) - 1) if tag in (Tag.ZVC, Tag.ZBX) else (1 << n) - 1
        used += n if tag in (Tag.ZVC, Tag.ZBX) else w if tag == Tag.DBX else 0
        if tag in (Tag.RAW, Tag.ZVC):
            at[k % 2] += used + w * mask.bit_count()
            continue
        width = n - 1 if tag == Tag.DBX else mask.bit_count()
        left, run = DEFAULT.planes(tag, w), DEFAULT.run_bits(tag, w)
        bits >>= used
        payload = 0
        while left > 0:
            code, length = _CODES[bits & 31]
            bits >>= length
            if code == PlaneCode.ZERO_RUN:
                left = bits & ((1 << run) - 1)
                bits >>= run
                length += run
            else:
                left -= 1
            used += length
            if code == PlaneCode.VERBATIM:
                payload += width
            elif code in (PlaneCode.PAIR, PlaneCode.ONE):
                payload += log2_ceil(width)
        at[k % 2] += used + payload
    return tags


def chunks_of(stream: bytes, raw_bytes: int, w: int, mode: str) -> Iterator[Chunk]:
    """The chunks of a tensor; after a fault inside a chunk the next one is read all the same."""
    found = entries(stream, raw_bytes, Mode[mode.upper()])
    for k, (body, error, extra) in enumerate(found):
        size = min(CHUNK_BYTES, raw_bytes - k * CHUNK_BYTES)
        blocks = -(-size // BLOCK_BYTES)
        if body is None:
            yield Chunk(bytes(size), 0, [0] * len(Tag), 0, False, int(error), 0)
            continue
        fault: StreamError | None = None
        raw = mode == "bypass" or len(body) == blocks * BLOCK_BYTES
        if mode == "bypass":
            data = body
        else:
            part, fault = decode_blocks(len(body).to_bytes(HEADER_BYTES, "little") + body, size, w)
            data = part.tobytes()
        good = fault.block if fault else blocks
        tags = [int(Tag.RAW)] * good if raw else tags_of(body, good, w)
        last = ErrorCode.EXTRA if extra else 0
        yield Chunk(
            data[: good * BLOCK_BYTES].ljust(size, b"\0"),
            good,
            [int(count) for count in np.bincount(tags, minlength=len(Tag))],
            len(body),
            raw,
            int(fault.code) if fault else int(last),
            fault.block if fault else 0,
        )


def first_fault(stream: bytes, raw_bytes: int, w: int) -> tuple[int, int, int] | None:
    """Code, chunk and block of the fault that the codec reports of the whole tensor."""
    error = decode_blocks(stream, raw_bytes, w)[1]
    return (int(error.code), error.chunk, error.block) if error else None
