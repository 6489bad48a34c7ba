"""The beginning of tensors too large to be simulated: each bit of a length decides.

A descriptor promises 2**k bytes and more, the input ends after some chunks; what must have come
out by then is what the same bytes at the beginning of any longer tensor give.
"""

from __future__ import annotations

import random
from dataclasses import replace

from planezip.hdl.types import descriptor
from planezip.model import encode_bytes
from planezip.model.format import BLOCK_BYTES, BLOCKS_PER_CHUNK, CHUNK_BYTES
from tb.harness.expected import Records
from tb.harness.lanes import Lane
from tb.harness.tensors import DTYPES, Tensor

__all__ = ["LENGTH_BITS", "beginning"]

_CHUNKS = 3
_WIRE_BYTES = 64
_RAW_BYTES = 32
_FIELD = descriptor()["raw_bytes"]
LENGTH_BITS = _FIELD.width


def beginning(lane: Lane, seed: int, bit: int, mode: str) -> tuple[Tensor, Records]:
    """Bytes that are sent and seen, and files for a tensor of 2**bit bytes and those."""
    rng = random.Random(f"{seed} {bit} {mode}")
    w = rng.choice((16, 32))
    values = b"".join(rng.getrandbits(w - 3).to_bytes(w // 8, "little") for _ in range(512))
    data = (values * (_CHUNKS * CHUNK_BYTES // len(values) + 1))[: _CHUNKS * CHUNK_BYTES]
    whole = Tensor(rng.choice(DTYPES[w]), data + bytes(BLOCK_BYTES), mode)
    sent = data if mode == "bypass" else encode_bytes(data, w)
    records = lane.records([whole])
    wire = whole.data if mode == "bypass" else encode_bytes(whole.data, w)
    raw_beats, wire_beats = -(-len(whole.data) // _RAW_BYTES), -(-len(wire) // _WIRE_BYTES)
    if lane.raw_side == "in":  # a full wire beat waits for a byte behind it: it may be the last
        taken, given, chunks = len(data) // _RAW_BYTES, (len(sent) - 1) // _WIRE_BYTES, _CHUNKS
        beats_in, beats_out = raw_beats, wire_beats
    else:  # the last chunk lacks its end
        chunks = _CHUNKS - (len(sent) % _WIRE_BYTES > 0)
        taken, given = len(sent) // _WIRE_BYTES, chunks * CHUNK_BYTES // _RAW_BYTES
        beats_in, beats_out = wire_beats, raw_beats
    length = int.from_bytes(records.descriptors, "big")
    length += ((1 << bit) - BLOCK_BYTES) << _FIELD.offset
    seen = replace(whole, data=data[: chunks * BLOCKS_PER_CHUNK * BLOCK_BYTES])
    return seen, replace(
        records,
        descriptors=length.to_bytes(len(records.descriptors), "big"),
        input=records.input[: len(records.input) // beats_in * taken],
        output=records.output[: len(records.output) // beats_out * given],
        reports=records.reports[: len(records.reports) // (_CHUNKS + 1) * chunks],
        arrivals=(),
    )
