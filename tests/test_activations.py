"""The shipped sample of activations is what tb/data/README.md says."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from tb import activations
from tb.shared import absent

README = Path(activations.FILE).with_name("README.md").read_text()


def distinct_blocks(w: int) -> int:
    return len(
        {s.data[k : k + 128] for s in activations.samples(w) for k in range(0, len(s.data), 128)}
    )


def test_readme_counts_and_size() -> None:
    counts = [distinct_blocks(w) for w in (16, 32)]
    assert min(counts) >= 20_000
    assert f"{counts[0]:,} distinct 128-byte blocks" in README
    assert f"and {counts[1]:,} of 32-bit" in README
    assert activations.FILE.stat().st_size <= 4_000_000


def test_readme_lists_every_array() -> None:
    seen = list(activations.samples())
    assert {s.dtype for s in seen} == {"bfloat16", "float32", "uint8", "int64"}
    with np.load(activations.FILE, allow_pickle=False) as arrays:
        for sample in seen:
            assert len(sample.data) % 4096 == 0
            stored = arrays[sample.name]
            line = f"| {sample.name} | {stored.dtype} | {stored.size} | {len(sample.data)} |"
            assert line in README


@pytest.mark.skipif(bool(absent("activations")), reason=absent("activations"))
def test_sample_is_what_the_script_chooses() -> None:
    chosen = runpy.run_path(str(activations.FILE.with_name("choose.py")))["choose"]()
    assert {s.name: s.data for s in activations.samples()} == {
        k: v.tobytes() for k, v in chosen.items()
    }
