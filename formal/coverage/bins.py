"""Bins of functional coverage, generated from the tables of the format (docs/format.md).

A bin is a tuple: side, table, symbol width, and what the table counts. Side *written* is
what the compressor writes, *read* what the decompressor is given: of the latter there is
more, as a reader accepts codes that no writer chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from planezip.model.errors import ErrorCode
from planezip.model.format import DEFAULT, TAG_BITS, PlaneCode, Tag, log2_ceil

__all__ = ["SIDES", "STALLS", "Bin", "bins"]

Bin = tuple[str | int, ...]
SIDES = ("written", "read")
STALLS = ("none", "half", "bursts", "most", "cyclic")
"""Pause patterns of the bulk harness, by number."""
_WIDTHS = DEFAULT.symbol_bits
_PLANED = (Tag.DBX, Tag.BX, Tag.ZBX)
_STREAM_ERRORS = tuple(code for code in ErrorCode if code < ErrorCode.FILE_HEADER)


def bins() -> Iterator[Bin]:
    """All bins, each once."""
    for w in _WIDTHS:
        for tag in Tag:
            yield "written", "winner", w, tag.name
        for low, high in combinations(Tag, 2):
            if low != Tag.RAW or high not in _PLANED or _meets_raw(high, w):
                yield "written", "tie", w, low.name, high.name
        for side in SIDES:
            yield from _codes(side, w)
            yield from _chunks(side, w)
            for tag in Tag:
                for stall in STALLS:
                    yield side, "stall", w, tag.name, stall
            for mode in ("stream", "bypass", "measure"):
                yield side, "mode", w, mode
        for code in _STREAM_ERRORS:
            for place in ("first chunk", "later chunk"):
                yield "read", "error", w, code.name, place


def _codes(side: str, w: int) -> Iterator[Bin]:
    count = DEFAULT.symbols(w)
    for tag in _PLANED:
        planes = DEFAULT.planes(tag, w)
        for code in PlaneCode:
            yield side, "code", w, tag.name, code.name
        for length in range(2, planes + 1):
            # ZBX with ones in one plane or none is longer than BX, which needs no mask.
            if side == "read" or tag != Tag.ZBX or length < planes - 1:
                yield side, "run", w, tag.name, length
    for code in PlaneCode:
        # The top plane is its own pre-XOR plane: zero before any other code.
        if side == "read" or code != PlaneCode.PRE_ZERO:
            yield side, "top plane of DBX", w, code.name
    for code in (PlaneCode.ONE, PlaneCode.PAIR):
        for place in range(count - (code == PlaneCode.PAIR)):
            yield side, "position", w, code.name, place
    if side == "read":
        for n in range(count + 1):
            yield side, "non-zero symbols of ZBX", w, n


def _chunks(side: str, w: int) -> Iterator[Bin]:
    for form in ("coded", "raw"):
        for blocks in range(1, DEFAULT.blocks_per_chunk + 1):
            yield side, "blocks of a chunk", w, form, blocks
    for residue in range(64):
        yield side, "bytes of a body modulo 64", w, residue
    for padding in range(8):
        yield side, "padding", w, padding
    for extreme in ("a byte below raw", "a byte a block or less more than the least"):
        yield side, "extreme size", w, extreme
    for tail in range(128):
        yield side, "bytes of a tensor modulo 128", w, tail


def _meets_raw(tag: Tag, w: int) -> bool:
    """Whether ``tag`` can have the size of RAW in a block that RAW wins.

    Sums of any codes of its planes, whether or not they occur together: a no is certain.
    """
    count, planes = DEFAULT.symbols(w), DEFAULT.planes(tag, w)
    raw = TAG_BITS + DEFAULT.block_bits
    head = TAG_BITS + {Tag.DBX: w, Tag.BX: 0, Tag.ZBX: count}[tag]
    # RAW wins only if ZVC is not smaller.
    widths = [n for n in range(count + 1) if TAG_BITS + count + n * w >= raw]
    for n in {Tag.DBX: [count - 1], Tag.BX: [count], Tag.ZBX: widths}[tag]:
        sums: list[set[int]] = [{0}]
        for k in range(1, planes + 1):
            one = {s + c for s in sums[k - 1] for c in (1 + n, 3, 5, 5 + log2_ceil(n))}
            runs = {s + 2 + DEFAULT.run_bits(tag, w) for j in range(k - 1) for s in sums[j]}
            sums.append({s for s in one | runs if s <= raw})
        if raw - head in sums[planes]:
            return True
    return False
