"""Constants and parameters of the PlaneZip stream format (docs/format.md, version 1).

One object, :class:`Parameters`, is shared by the software model and the hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "ALL_ENCODINGS",
    "BLOCKS_PER_CHUNK",
    "BLOCK_BYTES",
    "CHUNK_BYTES",
    "DEFAULT",
    "FORMAT_VERSION",
    "HEADER_BYTES",
    "TAG_BITS",
    "Parameters",
    "PlaneCode",
    "Tag",
    "log2_ceil",
]

FORMAT_VERSION = 1
BLOCK_BYTES = 128
BLOCKS_PER_CHUNK = 32
CHUNK_BYTES = BLOCK_BYTES * BLOCKS_PER_CHUNK
HEADER_BYTES = 2
TAG_BITS = 3


class Tag(IntEnum):
    """Encoding of a block (paper Section III-A); ties go to the lowest value."""

    RAW = 0  # the symbols as they are
    ZVC = 1  # zero mask, then the non-zero symbols
    DBX = 2  # base, then XORed bit-planes of the deltas
    BX = 3  # XORed bit-planes of the symbols
    ZBX = 4  # zero mask, then BX over the non-zero symbols


class PlaneCode(IntEnum):
    """Code of a plane, in order of precedence (docs/format.md, Plane codes)."""

    ZERO_RUN = 0  # 2 + R bits: two or more all-zero planes
    ZERO = 1  # 3 bits: one all-zero plane
    ONES = 2  # 5 bits: all ones
    PRE_ZERO = 3  # 5 bits: the plane before the XOR is all zero
    PAIR = 4  # 5 bits, position in the payload: two adjacent ones
    ONE = 5  # 5 bits, position in the payload: a single one
    VERBATIM = 6  # 1 bit, plane in the payload: anything else

    @property
    def prefix(self) -> tuple[int, int]:
        """``(value, bits)`` of the prefix, first bit in bit 0 (run field excluded)."""
        return _PREFIX[self]


_PREFIX = {
    PlaneCode.ZERO_RUN: (0b10, 2),
    PlaneCode.ZERO: (0b100, 3),
    PlaneCode.ONES: (0b00000, 5),
    PlaneCode.PRE_ZERO: (0b10000, 5),
    PlaneCode.PAIR: (0b01000, 5),
    PlaneCode.ONE: (0b11000, 5),
    PlaneCode.VERBATIM: (0b1, 1),
}

ALL_ENCODINGS = frozenset(Tag)


def log2_ceil(value: int) -> int:
    """``ceil(log2(value))``; 0 for values of 1 and less."""
    return max(value - 1, 0).bit_length()


@dataclass(frozen=True)
class Parameters:
    """Geometry of the codec; the defaults are the paper's.

    Parameters
    ----------
    symbols_per_block : int
        Symbols of a block at the narrowest width; a power of two.
    symbol_bits : tuple of int
        Supported symbol widths in ascending order; powers of two. A block has the
        same number of bits at every width.
    blocks_per_chunk : int
        Blocks of a full chunk; a power of two.
    encodings : frozenset of Tag
        Encodings that a writer chooses from; RAW is always among them.

    Raises
    ------
    TypeError, ValueError
        For an argument of the wrong kind or outside its range.
    """

    symbols_per_block: int = 64
    symbol_bits: tuple[int, ...] = (16, 32)
    blocks_per_chunk: int = BLOCKS_PER_CHUNK
    encodings: frozenset[Tag] = ALL_ENCODINGS

    def __post_init__(self) -> None:
        for name in ("symbols_per_block", "blocks_per_chunk"):
            _check_power_of_two(name, getattr(self, name), minimum=2)
        if not isinstance(self.symbol_bits, tuple) or not self.symbol_bits:
            raise TypeError(f"symbol_bits must be a tuple of integers, not {self.symbol_bits!r}")
        for bits in self.symbol_bits:
            _check_power_of_two("symbol_bits", bits, minimum=2)
        if list(self.symbol_bits) != sorted(set(self.symbol_bits)):
            raise ValueError(f"symbol_bits must be in ascending order, not {self.symbol_bits!r}")
        if self.symbols(self.symbol_bits[-1]) < 2:
            raise ValueError(
                f"a block must have two symbols or more, not {self.symbols(self.symbol_bits[-1])!r}"
            )
        if not isinstance(self.encodings, frozenset) or not self.encodings <= ALL_ENCODINGS:
            raise TypeError(f"encodings must be a frozenset of Tag, not {self.encodings!r}")
        if Tag.RAW not in self.encodings:
            raise ValueError("encodings must contain Tag.RAW")
        if self.chunk_bits // 8 >= 1 << (8 * HEADER_BYTES):
            raise ValueError(f"a chunk must be below 65536 bytes, not {self.chunk_bits // 8!r}")

    @property
    def block_bits(self) -> int:
        """Bits of a raw block (1024)."""
        return self.symbols_per_block * self.symbol_bits[0]

    @property
    def chunk_bits(self) -> int:
        """Bits of a full raw chunk (32768)."""
        return self.block_bits * self.blocks_per_chunk

    def symbols(self, w: int) -> int:
        """Symbols of a block at width ``w``: N."""
        return self.block_bits // w

    def planes(self, tag: Tag, w: int) -> int:
        """Planes of ``tag`` at width ``w``: w, or w + 1 for DBX."""
        return {Tag.DBX: w + 1, Tag.BX: w, Tag.ZBX: w}.get(tag, 0)

    def run_bits(self, tag: Tag, w: int) -> int:
        """Bits of the run field of ``tag`` at width ``w``: R."""
        return log2_ceil(self.planes(tag, w) - 1)


def _check_power_of_two(name: str, value: object, *, minimum: int) -> None:
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < minimum or value & (value - 1):
        raise ValueError(f"{name} must be a power of two of at least {minimum}, not {value!r}")


DEFAULT = Parameters()
