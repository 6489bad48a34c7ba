"""The sweep's points, table, CSV and plots on made-up rows; ratios against the codec."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from planezip.model.codec import encode_bytes
from planezip.synth import sweep, variants
from tests.synth_rows import made_up_points


def testmade_up_points() -> None:
    found = made_up_points()
    assert len(found) == 3 * len(variants.VARIANTS) == 21
    one, two, four = found[3:6]
    assert (one.variant, one.encodings) == ("no_zvc", "RAW DBX BX ZBX")
    assert (one.total_um2, two.total_um2, four.total_um2) == (99.0, 198.0, 396.0)
    assert (one.gb_per_s, four.gb_per_s) == (16.0, 64.0)  # the slower lane of the two
    assert one.path_ps == 1410.0
    assert one.area_saved_percent == 1.0
    assert one.ratio_lost_percent == pytest.approx(100 * (1 - 0.9**0.5), abs=0.01)
    assert found[0].ratio_lost_percent == found[0].area_saved_percent == 0.0


def test_files(tmp_path: Path) -> None:
    found = made_up_points()
    sweep.write_csv(found, tmp_path / "new" / "sweep.csv")
    with (tmp_path / "new" / "sweep.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["variant"] for line in lines] == [point.variant for point in found]
    assert float(lines[4]["total_um2"]) == 198.0
    assert sweep.table(found).count("\n") == 1 + len(variants.VARIANTS)
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: no plots")
    paths = sweep.plot(found, tmp_path)
    assert [path.name for path in paths] == ["sweep_area.svg", "sweep_ratio.svg"]
    for path in paths:
        assert "<svg" in path.read_text()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_ratio_is_the_codecs(dtype: str) -> None:
    rng = np.random.default_rng(3)
    values = np.maximum(rng.standard_normal(8192), 0).astype(np.float32)
    raw = values.view(np.uint8)
    w = 16 if dtype == "bfloat16" else 32
    wire = encode_bytes(raw.tobytes(), w)
    found = variants.ratios({"model": {dtype: raw}}, variants.VARIANTS["all"])
    assert found[dtype] == pytest.approx(raw.size / len(wire))
    for name in ("no_zvc", "no_dbx", "no_bx", "no_zbx"):
        assert (
            variants.ratios({"model": {dtype: raw}}, variants.VARIANTS[name])[dtype]
            <= (found[dtype])
        )


def test_shipped_sample_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEZIP_SHARED", str(tmp_path))
    source, data = variants.activations()
    assert source == "tb/data/activations.npz"
    assert all(set(model) <= {"bfloat16", "float32"} for model in data.values())
    assert set(variants.ratios(data, variants.VARIANTS["all"])) == {"bfloat16", "float32"}
