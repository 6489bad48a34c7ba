"""Which bins a tensor and its stream hit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from formal.coverage.bins import Bin
from planezip.model import encode_bytes, sizes
from planezip.model.errors import ErrorCode
from planezip.model.format import (
    DEFAULT,
    HEADER_BYTES,
    TAG_BITS,
    PlaneCode,
    Tag,
    log2_ceil,
)
from tb.harness.golden import first_fault
from tb.harness.tensors import Tensor

__all__ = ["choices", "hits", "tensor_bins"]

_BLOCK_BYTES = DEFAULT.block_bits // 8
_CODES = [
    next((c, c.prefix[1]) for c in PlaneCode if bits & ((1 << c.prefix[1]) - 1) == c.prefix[0])
    for bits in range(32)
]
_PAYLOAD = {PlaneCode.VERBATIM, PlaneCode.PAIR, PlaneCode.ONE}


def hits(tensor: Tensor, side: str, stall: str) -> Iterator[Bin]:
    """Bins of a tensor, written or read, with the pause pattern ``stall``."""
    w, size = tensor.symbol_bits, len(tensor.data)
    if side == "written" and tensor.mode != "bypass":
        yield from choices(tensor.data, w)
    stream = tensor.stream
    if stream is None:
        stream = tensor.data if tensor.mode == "bypass" else encode_bytes(tensor.data, w)
    elif tensor.mode != "bypass":
        fault = first_fault(stream, size, w)
        if fault:
            place = "later chunk" if fault[1] else "first chunk"
            yield "read", "error", w, ErrorCode(fault[0]).name, place
            return
    elif len(stream) != size:
        return
    yield from tensor_bins(stream, size, w, side, stall, tensor.mode)


def choices(data: bytes, w: int) -> Iterator[Bin]:
    """Winners and ties of the blocks of a tensor."""
    if not data:
        return
    found = sizes(np.frombuffer(data, np.uint8), w)
    for tag, bits, best in zip(found.tag, found.bits, found.best_bits, strict=True):
        winner = Tag(int(tag))
        yield "written", "winner", w, winner.name
        for other in Tag:
            if other > winner and bits[other] == best:
                yield "written", "tie", w, winner.name, other.name


def tensor_bins(
    stream: bytes, raw_bytes: int, w: int, side: str, stall: str, mode: str
) -> Iterator[Bin]:
    """Bins of a tensor whose stream has no fault."""
    yield side, "mode", w, mode
    yield side, "bytes of a tensor modulo 128", w, raw_bytes % _BLOCK_BYTES
    if mode != "stream" and side == "written":
        return
    at, left = 0, -(-raw_bytes // _BLOCK_BYTES)
    while left and mode != "bypass":
        m = min(left, DEFAULT.blocks_per_chunk)
        size = int.from_bytes(stream[at : at + HEADER_BYTES], "little")
        at += HEADER_BYTES
        yield from _chunk(stream[at : at + size], m, w, side, stall)
        at += size
        left -= m


def _chunk(body: bytes, m: int, w: int, side: str, stall: str) -> Iterator[Bin]:
    size, raw = len(body), m * _BLOCK_BYTES
    yield side, "blocks of a chunk", w, "raw" if size == raw else "coded", m
    yield side, "bytes of a body modulo 64", w, size % 64
    if size == raw:
        yield side, "stall", w, Tag.RAW.name, stall
        return
    if size == raw - 1:
        yield side, "extreme size", w, "a byte below raw"
    if size <= (9 * m + 7) // 8 + m:
        yield side, "extreme size", w, "a byte a block or less more than the least"
    total = 8 * size
    bits = int.from_bytes(body, "little")
    turned = int(format(bits, f"0{total}b"), 2) if not total else int(
        format(bits, f"0{total}b")[::-1], 2
    )  # fmt: skip
    f, g = 0, total
    for k in range(m):
        control = turned >> (total - g) if k % 2 else bits >> f
        found, used, payload = _control(control, w, side)
        yield from found
        start = g - used - payload if k % 2 else f + used
        yield from _positions(bits >> start, control, w, side)
        yield side, "stall", w, Tag(control & 7).name, stall
        if k % 2:
            g -= used + payload
        else:
            f += used + payload
    yield side, "padding", w, g - f


def _parsed(control: int, w: int) -> tuple[Tag, int, list[tuple[PlaneCode, int]], int]:
    """Tag, plane width (or symbols), codes with the planes they cover, control bits."""
    tag, count = Tag(control & 7), DEFAULT.symbols(w)
    at, n = TAG_BITS, count
    if tag in (Tag.ZVC, Tag.ZBX):
        n = (control >> at & ((1 << count) - 1)).bit_count()
        at += count
    elif tag == Tag.DBX:
        n = count - 1
        at += w
    codes: list[tuple[PlaneCode, int]] = []
    left = DEFAULT.planes(tag, w)
    run_bits = DEFAULT.run_bits(tag, w) if left else 0
    while left:
        code, length = _CODES[control >> at & 31]
        at += length
        covers = 1
        if code == PlaneCode.ZERO_RUN:
            covers = left - (control >> at & ((1 << run_bits) - 1))
            at += run_bits
        codes.append((code, covers))
        left -= covers
    return tag, n, codes, at


def _length(code: PlaneCode, n: int) -> int:
    return n if code == PlaneCode.VERBATIM else log2_ceil(n) if code in _PAYLOAD else 0


def _control(control: int, w: int, side: str) -> tuple[list[Bin], int, int]:
    """Bins of the control string, its bits, and those of the payload."""
    tag, n, codes, used = _parsed(control, w)
    if not codes:
        return [], used, n * w
    found: list[Bin] = []
    if tag == Tag.ZBX and side == "read":
        found.append((side, "non-zero symbols of ZBX", w, n))
    if tag == Tag.DBX:
        found.append((side, "top plane of DBX", w, codes[0][0].name))
    for code, covers in codes:
        found.append((side, "code", w, tag.name, code.name))
        if code == PlaneCode.ZERO_RUN:
            found.append((side, "run", w, tag.name, covers))
    return found, used, sum(_length(code, n) for code, _ in codes)


def _positions(payload: int, control: int, w: int, side: str) -> Iterator[Bin]:
    _, n, codes, _ = _parsed(control, w)
    at = 0
    for code, _ in codes:
        length = _length(code, n)
        if code in (PlaneCode.PAIR, PlaneCode.ONE):
            place = payload >> at & ((1 << length) - 1)
            yield side, "position", w, code.name, place
        at += length
