"""Size model, encoder, decoder and reference agree block for block; figures of the paper."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

import planezip.model as pz
from planezip.model import generate, reference
from planezip.model.format import DEFAULT, PlaneCode, Tag
from planezip.model.measure import measure, wire_bytes
from tb.shared import absent, shared
from tests.agreement import assert_agreement

INDICES = "activations/resnet50_init/005_max_pool2d_with_indices.1.npy"
WIDTHS = (16, 32)


@pytest.mark.parametrize("w", WIDTHS)
def test_one_hundred_thousand_distinct_blocks(w):
    """Per width: 200,000 in all, no block twice."""
    blocks = np.unique(generate.mixed(140_000, w, 1), axis=0)
    blocks = np.random.default_rng(w).permutation(blocks)[:100_000]
    assert len(blocks) == 100_000
    assert_agreement(blocks, w)
    wire = pz.encode_bytes(blocks.reshape(-1), w)  # all kinds in one chunk, too
    assert pz.decode_bytes(wire, blocks.nbytes, w) == blocks.tobytes()
    assert len(wire) == wire_bytes(blocks, w) == measure(blocks, w).wire_bytes


@pytest.mark.parametrize("w", WIDTHS)
def test_reference_agrees_on_a_sample(w):
    blocks = generate.mixed(1500, w, 2)
    sizes = measure(blocks, w)
    for k, block in enumerate(blocks):
        symbols = reference.split_symbols(block.tobytes(), w)
        bits = [reference.encode_block(tag, symbols, w).bits for tag in Tag]
        assert sizes.bits[k].tolist() == bits
    part = blocks[: 8 * 32 + 5].tobytes()[:-9]
    wire = reference.encode_tensor(part, w)
    assert pz.encode_bytes(part, w) == wire
    assert pz.decode_bytes(wire, len(part), w) == part
    assert reference.decode_tensor(wire, len(part), w) == part


def codes_of(block: np.ndarray, w: int, seen: Counter) -> None:
    """Counts (tag, code, top plane) and (tag, length of a zero run) of a block's winner."""
    symbols = reference.split_symbols(block.tobytes(), w)
    tag = reference.select(symbols, w).tag
    if tag < Tag.DBX:
        return
    planes, pre, width = reference.transform(tag, symbols, w)
    k = 0
    while k < len(planes):
        code, run = reference.plane_code(planes[k], pre[k], width), 1
        while code == PlaneCode.ZERO and planes[k + run : k + run + 1] == [0]:
            run += 1
        code = PlaneCode.ZERO_RUN if run > 1 else code
        seen[tag, code, k] += 1
        if code <= PlaneCode.ZERO:
            seen[tag, run] += 1
        k += run


@pytest.mark.parametrize("w", WIDTHS)
def test_generator_reaches_every_code_plane_and_run(w):
    seen: Counter = Counter()
    kinds = [k for k in generate.KINDS if k.startswith(("codes", "runs", "edge", "const", "max"))]
    for kind in kinds:
        for block in generate.blocks(kind, 250, w, 3):
            codes_of(block, w, seen)
    for tag in (Tag.DBX, Tag.BX, Tag.ZBX):
        planes = DEFAULT.planes(tag, w)
        # ZBX never has n = 0 and loses to BX if one plane is left: two runs cannot win
        longest = planes if tag != Tag.ZBX else w - 2
        assert [run for run in range(1, longest + 1) if not seen[tag, run]] == []
        for code in PlaneCode:
            first = 1 if code == PlaneCode.PRE_ZERO else 0
            last = planes - 1 if code == PlaneCode.ZERO_RUN else planes
            missing = [k for k in range(first, last) if not seen[tag, code, k]]
            assert missing == [], (tag, code)


@pytest.mark.parametrize("w", WIDTHS)
def test_generator_reaches_every_tie_that_exists(w):
    blocks = generate.blocks("ties", 300, w, 4)
    sizes = measure(blocks, w)
    least = sizes.bits == sizes.best_bits[:, None]
    assert least.sum(axis=1).min() >= 2
    possible = set(combinations(Tag, 2)) - {(Tag.RAW, tag) for tag in Tag if tag >= Tag.DBX}
    if w == 32:
        possible.remove((Tag.ZVC, Tag.DBX))
    assert possible == {(a, b) for a, b in possible if (least[:, a] & least[:, b]).any()}


def test_generator_is_deterministic():
    for kind in generate.KINDS:
        first = generate.blocks(kind, 20, 16, 5)
        np.testing.assert_array_equal(first, generate.blocks(kind, 20, 16, 5))
        assert (first != generate.blocks(kind, 20, 16, 6)).any()
    with pytest.raises(ValueError, match="kind must be"):
        generate.blocks("zeros", 1, 16, 1)
    with pytest.raises(ValueError, match="w must be"):
        generate.blocks("relu", 1, 8, 1)


# --- the paper's figures that need no weights -------------------------------------------


def ratio_of(data: np.ndarray, tag: Tag | None) -> float:
    """Ratio at w = 32; of one encoding: the smaller of it and RAW, without the tag."""
    sizes = measure(data.reshape(-1).view(np.uint8), 32)
    if tag is None:
        return sizes.ratio
    bits = np.minimum(sizes.bits[:, tag].astype(np.int64) - 3, 1024)
    starts = np.arange(0, len(bits), 32)
    bodies = (np.add.reduceat(bits, starts) + 7) // 8
    raw = 128 * np.diff(np.append(starts, len(bits)))
    return data.nbytes / (np.minimum(bodies, raw).sum() + 2 * len(starts))


def test_paper_dropout_mask():
    mask = np.random.default_rng(0).random(8_000_000) >= 0.1
    assert ratio_of(mask, Tag.BX) == pytest.approx(5.96, rel=0.005)
    assert pz.ratio(mask) == pytest.approx(5.86, rel=0.005)


@pytest.mark.skipif(bool(absent(INDICES)), reason=absent(INDICES))
def test_paper_max_pool_indices():
    indices = np.load(shared(INDICES))
    assert ratio_of(indices, Tag.ZVC) == pytest.approx(1.88, rel=0.002)
    assert ratio_of(indices, Tag.BX) == pytest.approx(3.01, rel=0.002)
    assert pz.ratio(indices) == pytest.approx(5.26, rel=0.002)
