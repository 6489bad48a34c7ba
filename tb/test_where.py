"""The place that a failure names is the one whose bits differ."""

from __future__ import annotations

import random

import pytest

from planezip.model import encode_bytes
from planezip.model.format import BLOCK_BYTES
from tb.harness.tensors import Tensor
from tb.harness.where import raw_place, wire_place


def tensors(w: int, seed: int) -> list[Tensor]:
    """Streams with incompressible blocks between empty ones, one of them bypassed, one empty."""
    rng = random.Random(seed)
    dtype = {16: "bfloat16", 32: "float32"}[w]
    made = []
    for blocks in (1, 5, 33, 70):
        parts = [rng.choice((bytes(128), rng.randbytes(128))) for _ in range(blocks)]
        mode = "bypass" if blocks == 33 else "stream"
        made += [Tensor(dtype, b"".join(parts), mode), Tensor(dtype, bytes(64), "measure")]
    return made


@pytest.mark.parametrize("w", [16, 32])
@pytest.mark.parametrize("seed", range(4))
def test_bit_of_an_incompressible_block(w: int, seed: int) -> None:
    """One bit of such a block is one bit of the wire."""
    made = tensors(w, seed)
    rng = random.Random(seed)
    for number, tensor in enumerate(made):
        block = rng.randrange(tensor.blocks)
        if tensor.mode == "measure" or not any(tensor.data[block * 128 : block * 128 + 128]):
            continue
        at = block * 128 + rng.randrange(128)
        data = bytearray(tensor.data)
        data[at] ^= 1 << rng.randrange(8)
        before = [t.data if t.mode == "bypass" else encode_bytes(t.data, w) for t in made]
        after = bytes(data) if tensor.mode == "bypass" else encode_bytes(bytes(data), w)
        changed = int.from_bytes(before[number], "little") ^ int.from_bytes(after, "little")
        bit = changed.bit_length() - 1
        assert changed == 1 << bit
        sent = [len(b) for t, b in zip(made, before, strict=True) if t.mode != "measure"]
        place = sum(t.mode != "measure" for t in made[:number])
        beat = sum(-(-length // 64) for length in sent[:place]) + bit // 512
        told = f"tensor {number} ({tensor.dtype}, {len(tensor.data)} bytes), chunk {block // 32}"
        assert wire_place(made, beat, bit % 512) == f"{told}, block {block}"
        raw = sum(-(-len(t.data) // 32) for t in made[:number] if t.mode != "measure")
        assert raw_place(made, raw + at // 32, 8 * (at % 32)) == f"{told}, block {block}"


def test_header_padding_and_no_beat() -> None:
    noise = random.Random(0).randbytes(BLOCK_BYTES)
    made = [Tensor("float32", bytes(BLOCK_BYTES)), Tensor("float32", noise)]
    assert wire_place(made, 0, 3).endswith("chunk 0, header or padding")
    assert wire_place(made, 0, 16).endswith("chunk 0, block 0")
    assert wire_place(made, 1, 16) == "tensor 1 (float32, 128 bytes), chunk 0, block 0"
    assert wire_place(made, 99) == raw_place(made, 99) == ""
