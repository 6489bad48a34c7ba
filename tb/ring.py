"""The decompressor's ring for benches of parts that read it."""

from __future__ import annotations

import random

from planezip.hdl.decoder_types import DecoderGeometry

__all__ = ["Ring"]


class Ring:
    """Bits of a ring, read bank by bank as the hardware's memories are."""

    def __init__(self, geometry: DecoderGeometry, bits: int = 0) -> None:
        self._geometry = geometry
        self.size = geometry.rows * geometry.wire
        self.bits = bits

    def banks(self, word: int) -> int:
        """The banks as they are: bank k has the first word from ``word`` on that is its own."""
        g = self._geometry
        result = 0
        for at in range(word, word + g.banks):
            place = at * g.bank % self.size
            result |= (self.bits >> place & ((1 << g.bank) - 1)) << at % g.banks * g.bank
        return result

    def put(self, data: bytes, at: int) -> None:
        """Write ``data`` from byte ``at`` on."""
        ring = bytearray(self.bits.to_bytes(self.size // 8, "little"))
        for k, byte in enumerate(data):
            ring[(at + k) % len(ring)] = byte
        self.bits = int.from_bytes(ring, "little")

    def clear_half(self, rng: random.Random) -> None:
        """Zeros in half of the bytes."""
        kept = b"".join(rng.choice((b"\0", b"\xff")) for _ in range(self.size // 8))
        self.bits &= int.from_bytes(kept, "little")
