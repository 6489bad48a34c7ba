"""Bins of functional coverage, and the walk that says which a stream hits."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from formal.coverage.__main__ import functional
from formal.coverage.bins import Bin, bins
from formal.coverage.walk import choices, tensor_bins
from planezip.model import encode_bytes, sizes
from planezip.model.format import BLOCK_BYTES, PlaneCode, Tag
from planezip.model.generate import mixed
from planezip.model.reference import encode_block, split_symbols
from tb.legal import legal_chunk

THRESHOLDS = json.loads(
    (Path(__file__).parents[1] / "formal" / "coverage" / "thresholds.json").read_text()
)
WIDTHS = (16, 32)


def test_bins_are_many_and_distinct() -> None:
    every = list(bins())
    assert len(every) == len(set(every)) == THRESHOLDS["bins"] >= 500
    assert THRESHOLDS["hit"] <= THRESHOLDS["bins"]


def test_sizes_that_no_block_has_are_no_bins() -> None:
    ties = {bin_[2:] for bin_ in bins() if bin_[1] == "tie"}
    for w in WIDTHS:
        assert (w, "RAW", "ZVC") in ties
        assert (w, "DBX", "BX") in ties
        assert (w, "RAW", "BX") not in ties  # 1024 bits are no sum of its planes' codes


def test_what_make_sim_runs_hits_every_bin() -> None:
    assert THRESHOLDS["hit"] == THRESHOLDS["bins"]
    assert functional() == []


@pytest.mark.parametrize("w", WIDTHS)
def test_walk_agrees_with_the_reference(w: int) -> None:
    data = mixed(200, w, 7).tobytes()
    found: Counter[Bin] = Counter(tensor_bins(encode_bytes(data, w), len(data), w, "written",
                                              "half", "stream"))  # fmt: skip
    found.update(choices(data, w))
    expected: Counter[Bin] = Counter()
    measured = sizes(np.frombuffer(data, np.uint8), w)
    for k, tag in enumerate(map(Tag, measured.tag.tolist())):
        expected["written", "winner", w, tag.name] += 1
        block = encode_block(tag, split_symbols(data[k * BLOCK_BYTES :][:BLOCK_BYTES], w), w)
        assert block.bits == measured.best_bits[k]
    for bin_, count in expected.items():
        assert found[bin_] == count
    assert set(found) <= set(bins())


@pytest.mark.parametrize("w", WIDTHS)
def test_codes_of_one_block(w: int) -> None:
    """1, 1, ... in BX: a run of all planes but the lowest, which is all ones."""
    n = 1024 // w
    data = (1).to_bytes(w // 8, "little") * n
    found = Counter(tensor_bins(encode_bytes(data, w), len(data), w, "written", "none", "stream"))
    assert found["written", "code", w, "BX", PlaneCode.ZERO_RUN.name] == 1
    assert found["written", "run", w, "BX", w - 1] == 1
    assert found["written", "code", w, "BX", PlaneCode.ONES.name] == 1
    assert found["written", "blocks of a chunk", w, "coded", 1] == 1


@pytest.mark.parametrize("w", WIDTHS)
def test_legal_streams_end_in_their_padding(w: int) -> None:
    """The walk reads what no writer chooses to the last bit: 0 to 7 bits of padding are left."""
    rng = random.Random(w)
    for _ in range(3):
        blocks = rng.randint(1, 32)
        stream = legal_chunk(rng, blocks, w)
        found = set(tensor_bins(stream, blocks * BLOCK_BYTES, w, "read", "none", "stream"))
        assert found <= set(bins())
