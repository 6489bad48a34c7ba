"""Sampling, alignment of traces, and files of measured ratios."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from planezip.sim.align import match_storages
from planezip.sim.ratios import RatiosError, load_ratios, save_ratios
from planezip.sim.record import record_trace
from planezip.sim.samples import sample_chunks, scale_bytes
from planezip.sim.shipped import DATA

SCHEMA = json.loads((DATA.parent / "schemas" / "ratios.json").read_text())
TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="NOT TESTED: needs planezip[capture]")
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="NOT TESTED: needs transformers"
)


def test_small_tensors_are_not_sampled() -> None:
    data = np.arange(10_000, dtype=np.uint32).view(np.uint8)
    assert sample_chunks(data, above_bytes=40_000) == (pytest.approx(data), 1)


@pytest.mark.parametrize("size", [40_000, 4 * 4096, 4096 * 5, 4096 * 4 + 100, 4096 * 3 + 1])
def test_every_fourth_chunk(size: int) -> None:
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    sample, every = sample_chunks(data, above_bytes=4096)
    expected = b"".join(data[k : k + 4096].tobytes() for k in range(0, size, 4 * 4096))
    assert (sample.tobytes(), every) == (expected, 4)


def test_scale() -> None:
    assert scale_bytes(77, 1000, 1000) == 77
    assert scale_bytes(100, 4096, 16384) == 400
    assert scale_bytes(1, 3, 4) == 1  # 1.33
    assert scale_bytes(1, 2, 3) == 2  # 1.5


@needs_torch
@needs_transformers
def test_gpt2_at_batch_1_leaves_4_percent_unmatched() -> None:
    from planezip.sim.shipped import shipped_trace

    full = shipped_trace("gpt2")
    matched = match_storages(record_trace("hf:gpt2", 1), full)
    missing = set(full.saved) - set(matched.values())
    share = sum(full.storages[n].bytes for n in missing)
    share /= sum(full.storages[n].bytes for n in full.saved)
    assert round(100 * share) == 4  # paper Section IV
    assert {full.ops[full.storages[n].producer].name for n in missing} == {"aten.clone"}


def test_same_trace_matches_itself() -> None:
    from planezip.sim.shipped import shipped_trace

    trace = shipped_trace("resnet50")
    assert match_storages(trace, trace) == {n: n for n in trace.saved}


@pytest.mark.parametrize("path", sorted(DATA.glob("*.ratios.json.gz")), ids=lambda p: p.name)
def test_shipped_ratios(path: Path, tmp_path: Path) -> None:
    import gzip

    jsonschema.validate(json.loads(gzip.decompress(path.read_bytes())), SCHEMA)
    ratios = load_ratios(path)
    assert f".{ratios.dtype}." in path.name
    save_ratios(ratios, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_unknown_encoding_and_iteration() -> None:
    from planezip.sim.measurements import shipped_ratios

    ratios = shipped_ratios("resnet50_random", "bfloat16")
    assert ratios is not None
    with pytest.raises(RatiosError, match="encoding must be one of BDI, ZVC"):
        ratios.ratio("LZ4")
    with pytest.raises(RatiosError, match="iteration must be below 1, not 1"):
        ratios.ratio("ZVC", 1)


@pytest.mark.parametrize("text", [b"", b"x", "[]", '{"format":"planezip-ratios","version":1}'])
def test_bad_ratios(text: bytes | str, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "r.json.gz"
    path.write_bytes(text if isinstance(text, bytes) else gzip.compress(text.encode()))
    with pytest.raises(RatiosError, match="cannot be read as ratios"):
        load_ratios(path)
