"""Bins of functional coverage, generated from the tables of the format (docs/format.md).

A bin is a tuple: side, table, symbol width, and what the table counts. Side *written* is
what the compressor writes, *read* what the decompressor is given: of the latter there is
more, as a reader accepts codes that no writer chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from planezip.model.errors import ErrorCode
from planezip.model.format import DEFAULT, PlaneCode, Tag

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
            # ZBX without any one in its planes has only zeros: BX is then shorter.
            if side == "read" or tag != Tag.ZBX or length < planes:
                yield side, "run", w, tag.name, length
    for code in PlaneCode:
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
