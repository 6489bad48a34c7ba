"""Sizes of the code parser, and its software model."""

from __future__ import annotations

from dataclasses import dataclass

from planezip.hdl.summary import PlaneClass, plane_class
from planezip.model.format import TAG_BITS, Parameters, PlaneCode, log2_ceil

__all__ = ["LONGEST", "ParserShape", "parse_codes"]

LONGEST = 5  # bits of the longest code but the zero run


@dataclass(frozen=True)
class ParserShape:
    """Sizes of the code parser, in bits but for the first.

    Attributes
    ----------
    planes : int
        Planes parsed per cycle.
    unit : int
        Step of the window; divides every symbol width and number of symbols.
    early : int
        Plane of the cycle whose position decides how far the window moves.
    span : int
        One-hot start position.
    codes : int
        Positions where a code of a cycle can start.
    window : int
        Window at the first cycle of a block.
    run_bits : tuple of int
        Run field per symbol width.
    """

    planes: int
    unit: int
    early: int
    span: int
    codes: int
    window: int
    run_bits: tuple[int, ...]

    @classmethod
    def of(cls, parameters: Parameters, cycles: int = 4) -> ParserShape:
        """Shape for ``cycles`` cycles per block."""
        widest = parameters.symbol_bits[-1]
        if parameters.symbol_bits[0] < 4:
            raise ValueError(f"symbol_bits must be at least 4, not {parameters.symbol_bits!r}")
        run_bits = tuple(log2_ceil(w) for w in parameters.symbol_bits)
        planes = -(-widest // cycles)
        unit = min(8, parameters.symbol_bits[0], parameters.symbols(widest))
        early = max(planes - 3, 0)
        span = unit + max(LONGEST, 2 + run_bits[-1]) + LONGEST * (planes - 1 - early)
        span = max(span, unit + TAG_BITS + LONGEST)  # behind the tag and DBX's top plane
        codes = span + LONGEST * (planes - 1)
        window = max(span + LONGEST * (widest - 1), codes) + 2 + run_bits[-1]
        return cls(planes, unit, early, span, codes, -(-window // unit) * unit, run_bits)


def parse_codes(bits: int, planes: int, run_bits: int) -> tuple[list[PlaneClass], int, bool]:
    """Software model: class of each plane (top first), bits used, and whether a run is wrong.

    ``bits`` has the first bit of the codes in bit 0. Reading stops at a run that does not
    end below its first plane; the planes from there on are ZERO.
    """
    by_prefix = {code.prefix: code for code in PlaneCode}
    classes: list[PlaneClass] = []
    at = 0
    while len(classes) < planes:
        length = next(k for k in range(1, 6) if (bits >> at & ((1 << k) - 1), k) in by_prefix)
        code = by_prefix[bits >> at & ((1 << length) - 1), length]
        at += length
        covers = 1
        if code == PlaneCode.ZERO_RUN:
            covers = planes - len(classes) - (bits >> at & ((1 << run_bits) - 1))
            at += run_bits
            if covers < 2:
                classes += [plane_class(PlaneCode.ZERO)] * (planes - len(classes))
                return classes, at, True
        classes += [plane_class(code)] * covers
    return classes, at, False
