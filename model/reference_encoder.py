"""Encoder of the reference codec (reference.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from planezip.model.format import (
    DEFAULT,
    HEADER_BYTES,
    TAG_BITS,
    Parameters,
    PlaneCode,
    Tag,
    log2_ceil,
)

__all__ = [
    "EncodedBlock",
    "bits_of",
    "encode_block",
    "encode_chunk",
    "encode_tensor",
    "number_of",
    "plane_code",
    "select",
    "split_symbols",
    "transform",
]

Bits = list[int]


@dataclass(frozen=True)
class EncodedBlock:
    """One encoding of a block: its tag and its two bit strings, tag included in control."""

    tag: Tag
    control: tuple[int, ...]
    payload: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Length of the block in the stream, tag included."""
        return len(self.control) + len(self.payload)


def bits_of(value: int, count: int) -> Bits:
    """The low ``count`` bits of ``value``, least significant first."""
    return [value >> k & 1 for k in range(count)]


def number_of(bits: Sequence[int]) -> int:
    """Inverse of :func:`bits_of`."""
    return sum(bit << k for k, bit in enumerate(bits))


def split_symbols(data: bytes, w: int) -> list[int]:
    """Little-endian symbols of ``w`` bits; ``len(data) * 8`` must be a multiple of w."""
    number = int.from_bytes(data, "little")
    return [number >> k & ((1 << w) - 1) for k in range(0, 8 * len(data), w)]


# --- transforms -----------------------------------------------------------------------


def transform(tag: Tag, symbols: Sequence[int], w: int) -> tuple[list[int], list[int], int]:
    """Planes of DBX, BX or ZBX from the top down: ``(planes, pre_xor_planes, width)``."""
    if tag == Tag.DBX:
        mask = (1 << (w + 1)) - 1
        values = [(b - a) & mask for a, b in pairwise(symbols)]
        count = w + 1
    else:
        values = [s for s in symbols if s] if tag == Tag.ZBX else list(symbols)
        count = w
    order = range(count - 1, -1, -1)
    pre = [number_of([v >> p & 1 for v in values]) for p in order]
    planes = [number_of([(v ^ v >> 1) >> p & 1 for v in values]) for p in order]
    return planes, pre, len(values)


def plane_code(plane: int, pre: int, width: int) -> PlaneCode:
    """Code of one plane; an all-zero plane is ZERO here, runs are formed by the caller."""
    if plane == 0:
        return PlaneCode.ZERO
    if plane == (1 << width) - 1:
        return PlaneCode.ONES
    if pre == 0:
        return PlaneCode.PRE_ZERO
    lowest = plane & -plane
    if plane == 3 * lowest:
        return PlaneCode.PAIR
    if plane == lowest:
        return PlaneCode.ONE
    return PlaneCode.VERBATIM


def _encode_planes(tag: Tag, symbols: Sequence[int], w: int, p: Parameters) -> tuple[Bits, Bits]:
    planes, pre, width = transform(tag, symbols, w)
    codes: Bits = []
    payload: Bits = []
    k = 0
    while k < len(planes):
        code = plane_code(planes[k], pre[k], width)
        run = 1
        if code == PlaneCode.ZERO:
            while k + run < len(planes) and planes[k + run] == 0:
                run += 1
        if run >= 2:
            code = PlaneCode.ZERO_RUN
        codes += bits_of(*code.prefix)
        if code == PlaneCode.ZERO_RUN:
            codes += bits_of(len(planes) - k - run, p.run_bits(tag, w))
        elif code in (PlaneCode.PAIR, PlaneCode.ONE):
            position = (planes[k] & -planes[k]).bit_length() - 1
            payload += bits_of(position, log2_ceil(width))
        elif code == PlaneCode.VERBATIM:
            payload += bits_of(planes[k], width)
        k += run
    return codes, payload


# --- encoder --------------------------------------------------------------------------


def encode_block(tag: Tag, symbols: Sequence[int], w: int, p: Parameters = DEFAULT) -> EncodedBlock:
    """``symbols`` in the encoding ``tag``."""
    control = bits_of(tag, TAG_BITS)
    payload: Bits = []
    if tag in (Tag.ZVC, Tag.ZBX):
        control += [int(s != 0) for s in symbols]
    if tag == Tag.DBX:
        control += bits_of(symbols[0], w)
    if tag in (Tag.RAW, Tag.ZVC):
        for s in symbols:
            if s or tag == Tag.RAW:
                payload += bits_of(s, w)
    else:
        codes, payload = _encode_planes(tag, symbols, w, p)
        control += codes
    return EncodedBlock(tag, tuple(control), tuple(payload))


def select(symbols: Sequence[int], w: int, p: Parameters = DEFAULT) -> EncodedBlock:
    """The smallest encoding of a block; ties go to the lowest tag."""
    encoded = (encode_block(tag, symbols, w, p) for tag in sorted(p.encodings))
    return min(encoded, key=lambda e: e.bits)


def encode_chunk(data: bytes, w: int, p: Parameters = DEFAULT) -> bytes:
    """Header and body of one chunk; ``data`` is a whole number of blocks."""
    block_bytes = p.block_bits // 8
    blocks = [
        select(split_symbols(data[k : k + block_bytes], w), w, p)
        for k in range(0, len(data), block_bytes)
    ]
    size = (sum(b.bits for b in blocks) + 7) // 8
    if size >= len(data):
        return len(data).to_bytes(HEADER_BYTES, "little") + data
    front: Bits = []
    back: Bits = []  # the end of the body, built downwards: last bit of the body first
    for k, block in enumerate(blocks):
        if k % 2 == 0:
            front += [*block.control, *block.payload]
        else:
            back += [*block.control, *reversed(block.payload)]
    padding = [0] * (8 * size - len(front) - len(back))
    body = number_of([*front, *padding, *reversed(back)])
    return size.to_bytes(HEADER_BYTES, "little") + body.to_bytes(size, "little")


def encode_tensor(data: bytes, w: int, p: Parameters = DEFAULT) -> bytes:
    """Chunks of a tensor, one after the other; the last block is padded with zeros."""
    block_bytes, chunk_bytes = p.block_bits // 8, p.chunk_bits // 8
    padded = data + bytes(-len(data) % block_bytes)
    return b"".join(
        encode_chunk(padded[k : k + chunk_bytes], w, p) for k in range(0, len(padded), chunk_bytes)
    )
