"""Which encoding of a block is the smallest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag, log2_ceil

__all__ = ["Comparator", "largest_size", "size_bits", "smallest"]


def largest_size(parameters: Parameters = DEFAULT) -> int:
    """Upper bound of the bits of a block in any encoding, tag included."""
    sizes = []
    for w in parameters.symbol_bits:
        n = parameters.symbols(w)
        plane = max(1 + n, 5 + log2_ceil(n))
        sizes.append(TAG_BITS + max(n, w) + max(parameters.block_bits, (w + 1) * plane))
    return max(sizes)


def size_bits(parameters: Parameters = DEFAULT) -> int:
    """Bits of a number that holds the size of any block."""
    return largest_size(parameters).bit_length()


def smallest(sizes: Mapping[Tag, int]) -> Tag:
    """Software model: the tag with the fewest bits; ties go to the lowest one."""
    return min(sorted(sizes), key=lambda tag: sizes[tag])


class Comparator(wiring.Component):
    """Smallest of the sizes of a block, ties to the lowest tag. Combinational.

    Parameters
    ----------
    parameters : Parameters

    Attributes
    ----------
    sizes : In(struct of bits by name of the encoding)
        Only the encodings of ``parameters``; without RAW, whose size is known.
    tag : Out(3), bits : Out(size)
        The winner.
    """

    def __init__(self, parameters: Parameters = DEFAULT) -> None:
        self._parameters = parameters
        size = unsigned(size_bits(parameters))
        tags = sorted(parameters.encodings - {Tag.RAW})
        super().__init__(
            {
                "sizes": In(data.StructLayout({tag.name: size for tag in tags})),
                "tag": Out(TAG_BITS),
                "bits": Out(size),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        raw = TAG_BITS + self._parameters.block_bits
        rounds: list[tuple[Value, Value]] = []
        for tag in sorted(self._parameters.encodings - {Tag.RAW}):
            number, size = Value.cast(tag.value), self.sizes[tag.name]
            if not rounds:  # plays against RAW, a constant, before the others
                number, size = Mux(size < raw, number, Tag.RAW.value), Mux(size < raw, size, raw)
            rounds.append((number, size))
        rounds = rounds or [(Value.cast(Tag.RAW.value), Value.cast(raw))]
        while len(rounds) > 1:  # neighbours play; the one with the lower tag wins a tie
            winners: list[tuple[Value, Any]] = []
            for (tag_a, a), (tag_b, b) in zip(rounds[::2], rounds[1::2], strict=False):
                name = f"{len(rounds)}_{len(winners)}"
                tag, size = (
                    Signal(TAG_BITS, name=f"tag_{name}"),
                    Signal.like(self.bits, name=f"size_{name}"),
                )
                m.d.comb += [tag.eq(Mux(b < a, tag_b, tag_a)), size.eq(Mux(b < a, b, a))]
                winners.append((tag, size))
            rounds = winners + rounds[len(rounds) // 2 * 2 :]
        m.d.comb += [self.tag.eq(rounds[0][0]), self.bits.eq(rounds[0][1])]
        return m
