"""Scaled parameters of the proofs."""

from planezip.model.format import Parameters, Tag

__all__ = ["BARE", "HALF", "PAIRED", "SMALL", "TINY"]

TINY = Parameters(4, (4,), 2)
"""4 symbols of 4 bits, 2 blocks a chunk; 2 beats a block."""
SMALL = Parameters(8, (8,), 2)
"""8 symbols of 8 bits; 4 beats a block."""
PAIRED = Parameters(16, (4, 8), 2)
"""16 symbols of 4 bits, or 8 of 8 bits; 4 beats a block."""
HALF = Parameters(32, (4, 8), 2)
"""32 symbols of 4 bits, or 16 of 8 bits."""
BARE = Parameters(64, (16, 32), 2, frozenset({Tag.RAW}))
"""Blocks as in the paper, RAW only, 2 a chunk: engines with lanes as small as they can be."""
