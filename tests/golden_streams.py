"""Streams for the golden vectors, put together code by code: legal ones and broken ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

from planezip.model import reference
from planezip.model.errors import ErrorCode
from planezip.model.format import CHUNK_BYTES, DEFAULT, PlaneCode, Tag, log2_ceil
from planezip.model.reference import bits_of
from tb.legal import STYLES, LegalBlock, chunk_of, legal_chunk

__all__ = ["broken", "legal"]

_PLANED = (Tag.DBX, Tag.BX, Tag.ZBX)


def _coded(tag: Tag, codes: list[tuple[PlaneCode, int]], w: int, head: int = 0) -> LegalBlock:
    """A block of the given codes; ``head``: mask or base.

    With each code comes the lowest plane of a run, the position, or the plane.
    """
    n = DEFAULT.symbols(w)
    width = {Tag.DBX: n - 1, Tag.ZBX: head.bit_count()}.get(tag, n)
    block = LegalBlock(bits_of(tag, 3) + bits_of(head, {Tag.DBX: w, Tag.ZBX: n}.get(tag, 0)))
    for code, value in codes:
        block.control += bits_of(*code.prefix)
        if code == PlaneCode.ZERO_RUN:
            block.control += bits_of(value, DEFAULT.run_bits(tag, w))
        elif code in (PlaneCode.PAIR, PlaneCode.ONE):
            block.payload += bits_of(value, log2_ceil(width))
        elif code == PlaneCode.VERBATIM:
            block.payload += bits_of(value, width)
    return block


def _zero(w: int) -> LegalBlock:
    return _coded(Tag.BX, [(PlaneCode.ZERO_RUN, 0)], w)


def _head(tag: Tag, w: int) -> int:
    return {Tag.DBX: 0x8001, Tag.ZBX: 0x5F07}.get(tag, 0)


def _every_code(tag: Tag, code: PlaneCode, w: int) -> LegalBlock:
    """One code over and over, between planes that make the result depend on each."""
    planes = DEFAULT.planes(tag, w)
    between = (PlaneCode.VERBATIM, 0x35)
    codes = []
    left = planes
    while left:
        covers = min(2 + left % 3, left) if code == PlaneCode.ZERO_RUN else 1
        if covers == 1 and code == PlaneCode.ZERO_RUN:
            codes.append(between)
        else:
            value = left - covers if code == PlaneCode.ZERO_RUN else left % 7
            codes.append((code, value))
        left -= covers
        if left:
            codes.append(between)
            left -= 1
    return _coded(tag, codes, w, _head(tag, w))


def _runs(tag: Tag, w: int) -> Iterator[LegalBlock]:
    """A zero run of every length, as high up and as low down as it can stand."""
    planes = DEFAULT.planes(tag, w)
    for length in range(2, planes + 1):
        rest = [(PlaneCode.VERBATIM, 0x5A)] * (planes - length)
        high = [(PlaneCode.ZERO_RUN, planes - length), *rest]
        low = [*rest, (PlaneCode.ZERO_RUN, 0)]
        yield from (_coded(tag, codes, w, _head(tag, w)) for codes in (high, low))


def _last_places(count: int, w: int) -> LegalBlock:
    """ZBX over ``count`` symbols: a one, and a pair, as far up as they can stand."""
    codes = [(PlaneCode.ONE, count - 1)] * (count > 0) + [(PlaneCode.PAIR, count - 2)] * (count > 1)
    return _coded(Tag.ZBX, [*codes, (PlaneCode.ZERO_RUN, 0)], w, (1 << count) - 1)


def _chunks(blocks: list[LegalBlock]) -> bytes:
    return b"".join(chunk_of(blocks[k : k + 32]) for k in range(0, len(blocks), 32))


def legal(w: int) -> Iterator[tuple[str, int, bytes]]:
    """Streams that a decoder must take; blocks in them, then the stream."""
    rng = random.Random(100 + w)
    n = DEFAULT.symbols(w)
    for tag in _PLANED:
        for code in PlaneCode:
            blocks = [_every_code(tag, code, w)] * 2 + [_zero(w)] * 2
            yield f"code-{tag.name.lower()}-{code.name.lower()}", 4, chunk_of(blocks)
        runs = list(_runs(tag, w))
        yield f"runs-{tag.name.lower()}", len(runs), _chunks(runs)
    for count in (0, 1, 2, n - 1, n):
        mask = ((1 << count) - 1) << (n - count) // 2
        codes = [(PlaneCode.VERBATIM, (1 << count) - 1 >> k % 3) for k in range(w - 3)]
        most = max(count - 1, 0)
        extra = [(PlaneCode.ONE, most), (PlaneCode.PAIR, max(most - 1, 0))]
        codes += (extra if count > 1 else [(PlaneCode.ONES, 0)] * 2) + [(PlaneCode.PRE_ZERO, 0)]
        zvc = LegalBlock(bits_of(Tag.ZVC, 3) + bits_of(mask, n), bits_of(-1, count * w))
        blocks = [_coded(Tag.ZBX, codes, w, mask)] * 2 + [zvc] + [_zero(w)] * 3
        yield f"non-zero-{count}", 6, chunk_of(blocks)
    bit = _coded(Tag.ZBX, [(PlaneCode.ONE, 1), (PlaneCode.ZERO_RUN, 0)], w, 3)
    yield "payload-of-a-bit", 4, chunk_of([bit, bit, _zero(w), _zero(w)])
    yield "widths-zbx", n + 1, _chunks([_last_places(count, w) for count in range(n + 1)])
    for style in STYLES:
        yield f"legal-{style.replace(' ', '-')}", 5, legal_chunk(rng, 5, w, style=style)


def broken(w: int) -> Iterator[tuple[str, int, bytes, tuple[ErrorCode, int, int]]]:
    """Bytes of the tensor, stream, fault; chunk 0 is fine wherever a fault can be later."""
    n = DEFAULT.symbols(w)
    zero = _zero(w)
    # Of 800 bytes: a decoder must not see them again when it reads behind the end of chunk 1.
    rng = random.Random(200 + w)
    filled = b"".join(rng.randbytes(16) + bytes(112) for _ in range(CHUNK_BYTES // 128))
    start = reference.encode_chunk(filled, w)
    two = CHUNK_BYTES + 256

    def second(*blocks: LegalBlock, more: int = 0, padding: int = 0) -> bytes:
        return start + chunk_of([*blocks], more, padding)

    yield "chunk-size", two, start + b"\x01\x01" + bytes(256), (ErrorCode.CHUNK_SIZE, 1, 0)
    yield "stream-end-header", two, start + b"\x03", (ErrorCode.STREAM_END, 1, 0)
    yield "stream-end-header-0", two, start + b"\x00", (ErrorCode.STREAM_END, 1, 0)
    yield "stream-end-body", two, second(zero, zero)[:-1], (ErrorCode.STREAM_END, 1, 0)
    yield "stream-end-raw", two, start + b"\x00\x01" + bytes(255), (ErrorCode.STREAM_END, 1, 0)
    yield "stream-end-empty", 1, b"", (ErrorCode.STREAM_END, 0, 0)
    for tag in (5, 6, 7):
        yield (
            f"tag-{tag}",
            two,
            second(zero, LegalBlock([*bits_of(tag, 3), 0])),
            (ErrorCode.TAG, 1, 1),
        )
    for tag in _PLANED:
        planes, head, low = DEFAULT.planes(tag, w), _head(tag, w), tag.name.lower()
        field = DEFAULT.run_bits(tag, w)
        first = [(PlaneCode.ONES, 0)]
        for name, value in (("self", planes - 2), ("above", planes - 1)):
            if value < 1 << field:
                block = _coded(tag, [*first, (PlaneCode.ZERO_RUN, value)], w, head)
                yield f"run-{name}-{low}", two, second(zero, block), (ErrorCode.RUN, 1, 1)
        bad = [*first, (PlaneCode.ONE, 0)] if tag == Tag.BX else first
        rest = [(PlaneCode.ZERO_RUN, 0)]
        width = {Tag.DBX: n - 1, Tag.ZBX: head.bit_count()}.get(tag, n)
        pair = _coded(tag, [*bad, (PlaneCode.PAIR, width - 1), *rest], w, head)
        yield f"position-pair-{low}", two, second(pair, zero), (ErrorCode.POSITION, 1, 0)
        if width & (width - 1):
            one = _coded(tag, [*bad, (PlaneCode.ONE, width), *rest], w, head)
            yield f"position-one-{low}", two, second(zero, one), (ErrorCode.POSITION, 1, 1)
    lone = _coded(Tag.ZBX, [(PlaneCode.PAIR, 0), (PlaneCode.ZERO_RUN, 0)], w, 1)
    yield "position-pair-of-one", two, second(zero, lone), (ErrorCode.POSITION, 1, 1)
    yield "overrun-empty", two, start + b"\x00\x00", (ErrorCode.OVERRUN, 1, 0)
    yield "overrun-tag", two, start + b"\x01\x00\x03", (ErrorCode.OVERRUN, 1, 0)
    zvc = LegalBlock(bits_of(Tag.ZVC, 3) + bits_of(7, n), bits_of(-1, 2 * w))
    yield "overrun-payload", two, second(zero, zvc), (ErrorCode.OVERRUN, 1, 1)
    yield (
        "overrun-mask",
        two,
        second(zero, LegalBlock([*bits_of(Tag.ZBX, 3), 1])),
        (ErrorCode.OVERRUN, 1, 1),
    )
    long = LegalBlock(bits_of(Tag.BX, 3) + [0, 0, 0, 0, 1] * 4)
    yield "overrun-codes", two, second(zero, long), (ErrorCode.OVERRUN, 1, 1)
    raw = LegalBlock(bits_of(Tag.RAW, 3) + [1] * 9)
    yield "overrun-raw", two, second(zero, raw), (ErrorCode.OVERRUN, 1, 1)
    yield "trailing", two, second(zero, zero, more=1), (ErrorCode.TRAILING, 1, 1)
    codes = (
        [(PlaneCode.ONES, 0)] * (k // 8) + [(PlaneCode.VERBATIM, 1)] * (k % 8) for k in range(64)
    )
    sound = [_coded(Tag.BX, [*some, (PlaneCode.ZERO_RUN, 0)], w) for some in codes]
    full = next(block for block in sound if (block.bits + 3) % 8 == 0)
    last = second(full, LegalBlock(bits_of(7, 3)))
    yield "tag-7-in-last-bits", two, last, (ErrorCode.TAG, 1, 1)
    even = next(block for block in sound if (block.bits + zero.bits) % 8 == 0)
    yield "trailing-8", two, second(even, zero, more=1), (ErrorCode.TRAILING, 1, 1)
    yield "padding", two, second(zero, zero, padding=1), (ErrorCode.PADDING, 1, 1)
    one = reference.encode_chunk(bytes(255) + b"\x01", w)
    yield "tail", two - 1, start + one, (ErrorCode.TAIL, 1, 1)
    yield "tail-raw", two - 1, start + b"\x00\x01" + bytes(255) + b"\x80", (ErrorCode.TAIL, 1, 1)
    yield "extra", two, second(zero, zero) + b"\x00", (ErrorCode.EXTRA, 1, 0)
    yield "extra-empty", 0, b"\x00", (ErrorCode.EXTRA, 0, 0)
