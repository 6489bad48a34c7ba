"""Sizes of pass 2 that follow from the parameters: lanes, units, slots, rings.

Words of pass 2:

* a block takes ``beats_per_block`` (B) cycles, its **slots**; a slot carries one raw beat
  in and, at the other side, the payload of w / B planes (or of a beat, RAW and ZVC);
* a **lane** is a part of a beat, as wide as the narrowest symbol; a wider symbol is
  several neighbouring lanes;
* a **unit** (U bits) is the plane of the widest symbol; a plane of a narrower one is
  several units. A slot's payload is ``beat_bits / U`` units.
* in a **ring** of S bits, bit k of the stream has the place k mod S: a string that lies
  in the ring at its final place needs no further shift.
"""

from __future__ import annotations

from dataclasses import dataclass

from planezip.model.format import HEADER_BYTES, TAG_BITS, Parameters, Tag

__all__ = ["Geometry", "next_power_of_two"]


def next_power_of_two(value: int) -> int:
    """The smallest power of two that is at least ``value``."""
    return 1 << max(value - 1, 0).bit_length()


@dataclass(frozen=True)
class Geometry:
    """Sizes for ``parameters`` with ``beats_per_block`` beats.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind, or the beats do not fit the symbols.
    """

    parameters: Parameters
    beats_per_block: int = 4

    def __post_init__(self) -> None:
        p, count = self.parameters, self.beats_per_block
        if not isinstance(p, Parameters):
            raise TypeError(f"parameters must be a Parameters object, not {p!r}")
        if not isinstance(count, int):
            raise TypeError(f"beats_per_block must be an integer, not {count!r}")
        if count < 2 or count & (count - 1) or count > p.symbol_bits[0]:
            raise ValueError(
                "beats_per_block must be a power of two from 2 to the narrowest symbol's bits,"
                f" not {count!r}"
            )
        if p.block_bits % (8 * count) or self.beat_bits % p.symbol_bits[-1]:
            raise ValueError(
                f"a beat must be whole bytes and whole symbols, not {p.block_bits / count!r} bits"
            )

    @property
    def beat_bits(self) -> int:
        """Bits of a raw beat, and of the payload of a slot at most (256)."""
        return self.parameters.block_bits // self.beats_per_block

    @property
    def lane_bits(self) -> int:
        """Bits of a lane (16)."""
        return self.parameters.symbol_bits[0]

    @property
    def lanes(self) -> int:
        """Lanes of a beat (16)."""
        return self.beat_bits // self.lane_bits

    @property
    def unit_bits(self) -> int:
        """Bits of a unit (32)."""
        return self.parameters.symbols(self.parameters.symbol_bits[-1])

    @property
    def units(self) -> int:
        """Units of a slot, and planes of the widest symbol in a slot (8)."""
        return self.beat_bits // self.unit_bits

    @property
    def tile_bits(self) -> int:
        """Bits that a beat and a slot of planes have in common (64)."""
        return self.beat_bits // self.beats_per_block

    @property
    def symbols(self) -> int:
        """Symbols of a block at the narrowest width (64)."""
        return self.parameters.symbols_per_block

    def planes(self, w: int) -> int:
        """Planes of a slot at width ``w``, the extra plane of DBX left out."""
        return w // self.beats_per_block

    def head_bits(self, tag: Tag, w: int) -> int:
        """Control bits of ``tag`` before the codes: tag and mask or base."""
        mask = self.parameters.symbols(w) if tag in (Tag.ZVC, Tag.ZBX) else 0
        return TAG_BITS + mask + (w if tag == Tag.DBX else 0)

    @property
    def has_planes(self) -> bool:
        """Whether any encoding has planes."""
        return bool(self.parameters.encodings & {Tag.DBX, Tag.BX, Tag.ZBX})

    @property
    def control_bits(self) -> int:
        """Most bits of header, control and payload of the extra plane of a block (243)."""
        p = self.parameters
        most = 0
        for w in p.symbol_bits:
            for tag in p.encodings:
                codes = 5 * p.planes(tag, w)
                if tag == Tag.DBX:  # a verbatim extra plane is a code of 1 bit, and N - 1 bits
                    n = p.symbols(w)
                    codes += max((n - 2).bit_length(), n - 1 - 4)
                most = max(most, self.head_bits(tag, w) + codes)
        return 8 * HEADER_BYTES + most

    @property
    def control_ring(self) -> int:
        """Bits of the ring that collects a control string (256)."""
        return next_power_of_two(self.control_bits)

    @property
    def wire_ring(self) -> int:
        """Bits of the ring that collects a wire beat: all that one slot can bring (512)."""
        return max(2 * self.beat_bits, next_power_of_two(self.control_bits + self.beat_bits))

    @property
    def wire_bits(self) -> int:
        """Bits of a wire beat (512)."""
        return 2 * self.beat_bits

    @property
    def pointer_bits(self) -> int:
        """Bits of a stream position, modulo two rings (10)."""
        return self.wire_ring.bit_length()
