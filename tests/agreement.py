"""Agreement of size model, encoder and decoder on single blocks."""

from __future__ import annotations

import numpy as np

import planezip.model as pz
from planezip.model.measure import measure, wire_bytes


def assert_agreement(blocks: np.ndarray, w: int) -> None:
    """The encoder writes each block in the tag and the bits that the size model has for it.

    A chunk of 32 copies of a block has 4 bytes for each bit of it; its first three bits
    are the tag. The decoder returns all of them.
    """
    sizes = measure(blocks, w)
    np.testing.assert_array_equal(sizes.best_bits, sizes.bits.min(axis=1))
    np.testing.assert_array_equal(sizes.tag, sizes.bits.argmin(axis=1))
    for at in range(0, len(blocks), 4000):
        rows = slice(at, at + 4000)
        copies = np.repeat(blocks[rows], 32, axis=0)
        wire = pz.encode_bytes(copies.reshape(-1), w)
        assert pz.decode_bytes(wire, copies.nbytes, w) == copies.tobytes()
        assert len(wire) == wire_bytes(copies, w)
        index = pz.Stream("uint8", copies.shape, wire).chunk_index()
        size = np.diff(index) - 2
        np.testing.assert_array_equal(size, np.minimum(4 * sizes.best_bits[rows], 4096))
        tag = np.frombuffer(wire, np.uint8)[index[:-1] + 2] & 7
        coded = size < 4096
        np.testing.assert_array_equal(tag[coded], sizes.tag[rows][coded])
