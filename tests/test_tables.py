"""Tables III and IV and Fig. 3 from made-up ratios, checked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from planezip.sim.measurements import shipped_ratios
from planezip.sim.ratios import Ratios, TensorSizes
from planezip.sim.tables import fig3, geometric_mean, table3, table4


def tensor(position: int, category: str, raw: int, wire: Sequence[int], tag: int) -> TensorSizes:
    columns = {
        name: list(wire) for name in ("BDI", "ZVC", "BPC", "BX", "ZBX", "PlaneZip", "PlaneZip-32")
    }
    columns["ZVC"] = [raw] * len(wire)
    tags = [0] * 5
    tags[tag] = raw // 128
    return TensorSizes(position, 0, "op", category, "bfloat16", raw, columns, tags, -1)


def ratios(*tensors: TensorSizes) -> Ratios:
    return Ratios("model", "random", "bfloat16", 8, 3, tensors)


MODELS = {
    "resnet50": ratios(
        tensor(0, "Conv output", 12800, (6400, 6400, 6300), 3),
        tensor(1, "Conv output", 12800, (12800, 12600, 12600), 0),
        tensor(2, "ReLU output", 25600, (6400, 6000, 6400), 4),
    ),
    "gpt2": ratios(tensor(0, "Softmax", 1280, (640, 640, 640), 3)),
}


def test_table3() -> None:
    rows = {row["producer"]: row for row in table3(MODELS)}
    assert list(rows) == ["Conv output", "ReLU output", "Softmax"]
    conv = rows["Conv output"]
    assert conv["share_percent"]["ours"] == [52, 52]  # of the trace
    assert conv["PlaneZip"]["ours"] == pytest.approx(25600 / 19200)
    assert conv["ZVC"]["ours"] == 1
    assert conv["PlaneZip"]["difference_percent"] == round(100 * (25600 / 19200 / 1.45 - 1), 2)
    assert conv["top"] == {"ours": ["RAW", 50], "paper": ["BX", 74]}
    assert rows["ReLU output"]["top"]["ours"] == ["ZBX", 100]


def test_table4() -> None:
    row = table4({"resnet50": MODELS["resnet50"]}, {"resnet50": MODELS["resnet50"]})[0]
    assert row["ratio_per_iteration"]["ours"] == pytest.approx([2, 2.048, 51200 / 25300])
    # iteration 1 from 0: 200 and 400 of 25,000; 2 from 1: 100 and 400 of 25,300
    errors = row["error_percent"]
    assert errors["tensor"]["ours"] == pytest.approx(50 * (600 / 25000 + 500 / 25300))
    # a convolution is predicted as 9,600 and then 9,500, and a ReLU output by itself
    expected = 50 * ((3200 + 3000 + 400) / 25000 + (3200 + 3100 + 400) / 25300)
    assert errors["op_type"]["ours"] == pytest.approx(expected)
    assert errors["global"]["ours"] > errors["op_type"]["ours"]
    assert row["random"]["difference_percent"] == round(100 * (2 / 1.78 - 1), 2)
    assert [p["platform"] for p in row["profiling"]] == ["A", "B"]
    # 11.0 GB in FP32 through 64 GB/s
    assert row["profiling"][0]["engine_ns"] == pytest.approx(10.997e9 / 64, rel=1e-3)


def test_fig3() -> None:
    found = fig3({"bfloat16": MODELS})["bfloat16"]
    assert [row["codecs"]["PlaneZip"] for row in found["models"]] == [2, 2]
    assert found["geometric_means"] == {}  # of all five models or none
    five = dict.fromkeys(
        ("resnet50", "densenet121", "efficientnet_b0", "vit_b16", "gpt2"), MODELS["gpt2"]
    )
    assert fig3({"bfloat16": five})["bfloat16"]["geometric_means"]["PlaneZip"]["ours"] == (
        pytest.approx(2)
    )


@pytest.mark.parametrize(("name", "ratio"), [("resnet50", 1.78), ("vit_b16", 1.41), ("gpt2", 2.22)])
def test_random_initialisation_agrees(name: str, ratio: float) -> None:
    measured = shipped_ratios(f"{name}_random", "bfloat16")
    assert measured is not None
    assert measured.ratio() == pytest.approx(ratio, rel=0.015)


def test_mask_and_indices_agree() -> None:
    names = ("resnet50", "densenet121", "efficientnet_b0", "vit_b16", "gpt2")
    measured = {name: shipped_ratios(f"{name}_random", "bfloat16") for name in names}
    rows = {row["producer"]: row for row in table3({k: v for k, v in measured.items() if v})}
    assert rows["Dropout mask"]["PlaneZip"]["ours"] == pytest.approx(5.86, rel=0.015)
    assert rows["Indices"]["PlaneZip"]["ours"] == pytest.approx(5.25, rel=0.015)


def test_trained_gpt2_is_predictable() -> None:
    measured = shipped_ratios("gpt2_trained", "bfloat16")
    assert measured is not None
    errors = table4({"gpt2": measured}, {})[0]["error_percent"]
    assert errors["tensor"]["ours"] < 0.5
    assert errors["tensor"]["ours"] < errors["op_type"]["ours"] < errors["global"]["ours"]


def test_geometric_mean() -> None:
    assert geometric_mean([2, 8]) == pytest.approx(4)
    with pytest.raises(ValueError, match="values must not be empty"):
        geometric_mean([])
