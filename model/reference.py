"""Bit-exact codec for any :class:`Parameters`, written to be read, not to be fast.

It is the specification in Python: the fast codec of this package and the hardware
are both checked against it. Bits are lists of 0 and 1, first bit first; a block is
a list of N symbols. The decoder is here, the encoder in reference_encoder.py.
"""

from __future__ import annotations

from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import (
    DEFAULT,
    HEADER_BYTES,
    TAG_BITS,
    Parameters,
    PlaneCode,
    Tag,
    log2_ceil,
)
from planezip.model.reference_encoder import (
    Bits,
    EncodedBlock,
    bits_of,
    encode_block,
    encode_chunk,
    encode_tensor,
    number_of,
    plane_code,
    select,
    split_symbols,
    transform,
)

__all__ = [
    "EncodedBlock",
    "bits_of",
    "decode_tensor",
    "encode_block",
    "encode_chunk",
    "encode_tensor",
    "number_of",
    "plane_code",
    "select",
    "split_symbols",
    "transform",
]


class _Block:
    """Reader of one block: control bits come from ``control`` one by one."""

    def __init__(self, body: Bits, f: int, g: int, odd: bool) -> None:
        self.body, self.f, self.g, self.odd = body, f, g, odd
        self.used = 0  # control bits read

    @property
    def left(self) -> int:
        return self.g - self.f

    def control(self, count: int) -> int:
        """The next ``count`` control bits; bits outside the body read as zero."""
        value = 0
        for k in range(count):
            at = self.g - 1 - self.used if self.odd else self.f + self.used
            value |= (self.body[at] if 0 <= at < len(self.body) else 0) << k
            self.used += 1
        return value

    def payload(self, count: int) -> Bits:
        start = self.g - self.used - count if self.odd else self.f + self.used
        return self.body[start : start + count]


def _read_codes(
    block: _Block, tag: Tag, w: int, p: Parameters
) -> tuple[list[tuple[PlaneCode, int]], bool]:
    """Codes as ``(code, planes covered)`` and whether a run ended above its second plane."""
    by_prefix = {code.prefix: code for code in PlaneCode}
    left = p.planes(tag, w)
    codes: list[tuple[PlaneCode, int]] = []
    while left > 0:
        value, count = 0, 0
        while (value, count) not in by_prefix:
            value |= block.control(1) << count
            count += 1
        code = by_prefix[value, count]
        covers = 1
        if code == PlaneCode.ZERO_RUN:
            covers = left - block.control(p.run_bits(tag, w))
            if covers < 2:
                return codes, True
        codes.append((code, covers))
        left -= covers
    return codes, False


def _rebuild(
    codes: list[tuple[PlaneCode, int]], payload: Bits, width: int, fail: _Fail
) -> list[int]:
    """Pre-XOR planes, top first, from codes and payload."""
    field = log2_ceil(width)
    pre: list[int] = []
    above = 0
    at = 0
    for code, covers in codes:
        if code in (PlaneCode.PAIR, PlaneCode.ONE):
            position = number_of(payload[at : at + field])
            at += field
            ones = 2 if code == PlaneCode.PAIR else 1
            if position + ones > width:
                raise fail(ErrorCode.POSITION)
            plane = ((1 << ones) - 1) << position
        elif code == PlaneCode.VERBATIM:
            plane = number_of(payload[at : at + width])
            at += width
        elif code == PlaneCode.ONES:
            plane = (1 << width) - 1
        elif code == PlaneCode.PRE_ZERO:
            plane = above
        else:
            plane = 0
        for _ in range(covers):
            above ^= plane
            pre.append(above)
    return pre


class _Fail:
    """Makes the error of a given chunk and block."""

    def __init__(self, chunk: int, block: int) -> None:
        self.chunk, self.block = chunk, block

    def __call__(self, code: ErrorCode) -> StreamError:
        return StreamError(code, self.chunk, self.block)


def _decode_block(block: _Block, w: int, p: Parameters, fail: _Fail) -> tuple[list[int], int]:
    """Symbols of a block and its length in bits."""
    count = p.symbols(w)
    if block.left < TAG_BITS:
        raise fail(ErrorCode.OVERRUN)
    value = block.control(TAG_BITS)
    if value not in p.encodings:
        raise fail(ErrorCode.TAG)
    tag = Tag(value)
    mask = (1 << count) - 1
    if tag in (Tag.ZVC, Tag.ZBX):
        mask = block.control(count)
    base = block.control(w) if tag == Tag.DBX else 0
    width = {Tag.DBX: count - 1, Tag.BX: count, Tag.ZBX: mask.bit_count()}.get(tag, 0)
    codes, bad_run = _read_codes(block, tag, w, p)
    if block.used > block.left:
        raise fail(ErrorCode.OVERRUN)
    if bad_run:
        raise fail(ErrorCode.RUN)
    position = log2_ceil(width)
    payload_bits = {
        PlaneCode.VERBATIM: width,
        PlaneCode.PAIR: position,
        PlaneCode.ONE: position,
    }
    length = sum(payload_bits.get(code, 0) for code, _ in codes)
    if tag in (Tag.RAW, Tag.ZVC):
        length = w * mask.bit_count()
    if block.used + length > block.left:
        raise fail(ErrorCode.OVERRUN)
    payload = block.payload(length)
    if tag in (Tag.RAW, Tag.ZVC):
        values = [number_of(payload[k : k + w]) for k in range(0, length, w)]
    else:
        pre = _rebuild(codes, payload, width, fail)
        values = [number_of([q >> i & 1 for q in reversed(pre)]) for i in range(width)]
    if tag == Tag.DBX:
        symbols = [base]
        for delta in values:
            symbols.append((symbols[-1] + delta) & ((1 << w) - 1))
    else:
        rest = iter(values)
        symbols = [next(rest) if mask >> i & 1 else 0 for i in range(count)]
    return symbols, block.used + length


def _decode_body(body: bytes, m: int, w: int, p: Parameters, chunk: int) -> list[list[int]]:
    bits = bits_of(int.from_bytes(body, "little"), 8 * len(body))
    f, g = 0, len(bits)
    blocks = []
    for k in range(m):
        symbols, length = _decode_block(_Block(bits, f, g, k % 2 == 1), w, p, _Fail(chunk, k))
        blocks.append(symbols)
        if k % 2:
            g -= length
        else:
            f += length
    if g - f >= 8:
        raise StreamError(ErrorCode.TRAILING, chunk, m - 1)
    if any(bits[f:g]):
        raise StreamError(ErrorCode.PADDING, chunk, m - 1)
    return blocks


def decode_tensor(stream: bytes, raw_bytes: int, w: int, p: Parameters = DEFAULT) -> bytes:
    """The tensor of ``raw_bytes`` bytes that ``stream`` holds.

    Raises
    ------
    StreamError
        With code, chunk and block of the first fault in reading order.
    """
    block_bytes = p.block_bits // 8
    blocks_left = -(-raw_bytes // block_bytes)
    out = bytearray()
    at, chunk = 0, 0
    while blocks_left:
        m = min(blocks_left, p.blocks_per_chunk)
        if len(stream) - at < HEADER_BYTES:
            raise StreamError(ErrorCode.STREAM_END, chunk, 0)
        size = int.from_bytes(stream[at : at + HEADER_BYTES], "little")
        at += HEADER_BYTES
        if size > m * block_bytes:
            raise StreamError(ErrorCode.CHUNK_SIZE, chunk, 0)
        body = stream[at : at + size]
        if len(body) < size:
            raise StreamError(ErrorCode.STREAM_END, chunk, 0)
        at += size
        if size == m * block_bytes:
            out += body
        else:
            for symbols in _decode_body(body, m, w, p, chunk):
                number = number_of([b for s in symbols for b in bits_of(s, w)])
                out += number.to_bytes(block_bytes, "little")
        blocks_left -= m
        if not blocks_left and any(out[raw_bytes:]):
            raise StreamError(ErrorCode.TAIL, chunk, m - 1)
        chunk += 1
    if at < len(stream):
        raise StreamError(ErrorCode.EXTRA, max(chunk - 1, 0), 0)
    return bytes(out[:raw_bytes])
