"""Parameters of the format: what they say of themselves, and what they refuse."""

from __future__ import annotations

import re

import pytest

from planezip.model.format import ALL_ENCODINGS, DEFAULT, Parameters, PlaneCode, Tag, log2_ceil


def test_the_papers_geometry():
    assert (DEFAULT.block_bits, DEFAULT.chunk_bits, DEFAULT.blocks_per_chunk) == (1024, 32768, 32)
    assert [DEFAULT.symbols(w) for w in (16, 32)] == [64, 32]
    planes = [[DEFAULT.planes(tag, w) for tag in Tag] for w in (16, 32)]
    assert planes == [[0, 0, 17, 16, 16], [0, 0, 33, 32, 32]]
    runs = [[DEFAULT.run_bits(tag, w) for tag in (Tag.DBX, Tag.BX, Tag.ZBX)] for w in (16, 32)]
    assert runs == [[4, 4, 4], [5, 5, 5]]


def test_other_geometries():
    p = Parameters(4, (4,), 2)
    assert (p.block_bits, p.chunk_bits, p.symbols(4)) == (16, 32, 4)
    assert (p.planes(Tag.DBX, 4), p.run_bits(Tag.DBX, 4), p.run_bits(Tag.BX, 4)) == (5, 2, 2)
    assert Parameters(2, (2,), 2).symbols(2) == 2
    assert Parameters(16, (4, 8), 2).symbols(8) == 8
    # the largest chunk whose size fits into the header
    assert Parameters(64, (16,), 256).chunk_bits == 8 * 32768
    assert Parameters(encodings=frozenset({Tag.RAW})).encodings == {Tag.RAW}
    assert Parameters() == DEFAULT


def test_a_geometry_does_not_change():
    assert len({Parameters(), DEFAULT, Parameters(blocks_per_chunk=2)}) == 2
    with pytest.raises(AttributeError, match="cannot assign to field 'blocks_per_chunk'"):
        DEFAULT.blocks_per_chunk = 2


def test_log2_ceil():
    assert [log2_ceil(n) for n in range(10)] == [0, 0, 1, 2, 2, 3, 3, 3, 3, 4]
    assert log2_ceil(64) == 6
    assert log2_ceil(65) == 7


def test_prefixes_are_complete():
    """Every string of five bits begins with exactly one of them."""
    for bits in range(32):
        fits = [c for c in PlaneCode if bits & ((1 << c.prefix[1]) - 1) == c.prefix[0]]
        assert len(fits) == 1
    assert [code.prefix[1] for code in PlaneCode] == [2, 3, 5, 5, 5, 5, 1]


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"symbols_per_block": 64.0}, TypeError, "symbols_per_block must be an integer, not 64.0"),
        ({"symbols_per_block": 48}, ValueError, "a power of two of at least 2, not 48"),
        ({"symbols_per_block": 1}, ValueError, "symbols_per_block must be a power of two"),
        ({"blocks_per_chunk": 1}, ValueError, "blocks_per_chunk must be a power of two"),
        ({"blocks_per_chunk": 3}, ValueError, "blocks_per_chunk must be a power of two"),
        ({"blocks_per_chunk": None}, TypeError, "blocks_per_chunk must be an integer"),
        ({"symbol_bits": 16}, TypeError, "symbol_bits must be a tuple of integers, not 16"),
        ({"symbol_bits": ()}, TypeError, "symbol_bits must be a tuple of integers, not ()"),
        ({"symbol_bits": (16, 24)}, ValueError, "symbol_bits must be a power of two"),
        ({"symbol_bits": (1, 2)}, ValueError, "symbol_bits must be a power of two"),
        ({"symbol_bits": (32, 16)}, ValueError, "ascending order, not (32, 16)"),
        ({"symbol_bits": (16, 16)}, ValueError, "ascending order, not (16, 16)"),
        ({"symbols_per_block": 2, "symbol_bits": (16, 32)}, ValueError, "two symbols or more"),
        ({"encodings": {Tag.RAW}}, TypeError, "encodings must be a frozenset of Tag"),
        ({"encodings": frozenset({Tag.RAW, 5})}, TypeError, "encodings must be a frozenset of Tag"),
        ({"encodings": ALL_ENCODINGS - {Tag.RAW}}, ValueError, "must contain Tag.RAW"),
        ({"blocks_per_chunk": 512}, ValueError, "a chunk must be below 65536 bytes, not 65536"),
    ],
)
def test_arguments_that_are_refused(arguments, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        Parameters(**arguments)
