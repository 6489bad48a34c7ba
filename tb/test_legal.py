"""The generators of streams: what they call legal is accepted; the slowest; broken ones."""

from __future__ import annotations

import random

import pytest

from planezip.model import decode_bytes
from planezip.model.format import BLOCK_BYTES, Tag
from tb.harness.faults import broken_tensors, legal_tensors
from tb.harness.golden import first_fault, tags_of
from tb.legal import STYLES, forms, legal_block, legal_chunk, slowest_forms


@pytest.mark.parametrize("w", [16, 32])
@pytest.mark.parametrize("style", STYLES)
def test_legal_streams_are_accepted(w: int, style: str) -> None:
    rng = random.Random(w)
    for blocks in (1, 2, 7, 32):
        stream = legal_chunk(rng, blocks, w, style=style)
        assert len(decode_bytes(stream, blocks * BLOCK_BYTES, w)) == blocks * BLOCK_BYTES


@pytest.mark.parametrize(("w", "codes", "control_bits"), [(16, 17, 104), (32, 33, 200)])
def test_slowest_form(w: int, codes: int, control_bits: int) -> None:
    """No block has more codes, none of these has less payload (docs/hardware.md)."""
    found = slowest_forms(w)
    assert {(f.tag, f.codes, f.payload_bits, f.control_bits) for f in found} == {
        (Tag.DBX, codes, 0, control_bits)
    }
    assert max(form.codes for form in forms(w)) == codes
    rng = random.Random(w)
    for _ in range(20):
        block = legal_block(rng, w, style="slowest")
        assert (len(block.control), block.payload) == (control_bits, [])


@pytest.mark.parametrize("w", [16, 32])
def test_broken_streams(w: int) -> None:
    """As many faults as asked for, all kinds of them, reproducible."""
    tensors = broken_tensors(3, w, 400)
    assert tensors == broken_tensors(3, w, 400)
    faults = [first_fault(t.stream or b"", len(t.data), w) for t in tensors if t.mode != "bypass"]
    codes = {fault[0] for fault in faults if fault}
    bypassed = sum(len(t.stream or b"") != len(t.data) for t in tensors if t.mode == "bypass")
    assert sum(fault is not None for fault in faults) + bypassed == 400
    assert codes >= {1, 2, 3, 4, 5, 6, 7, 8, 10}


@pytest.mark.parametrize("w", [16, 32])
def test_tags(w: int) -> None:
    """Tags are found without decoding: a chunk of all tags, each block after the one before."""
    rng = random.Random(w)
    for _ in range(20):
        stream = legal_chunk(rng, 6, w, style="any")
        tags = tags_of(stream[2:], 6, w)
        assert len(tags) == 6
        assert set(tags) <= set(Tag)
    for tensor in legal_tensors(1, w, 50, ("slowest",)):
        size = int.from_bytes((tensor.stream or b"")[:2], "little")
        body = (tensor.stream or b"")[2 : 2 + size]
        assert set(tags_of(body, tensor.chunks[0], w)) == {Tag.DBX}
