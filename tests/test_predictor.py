"""Predictor of compressed sizes: table, variants, error, file."""

from __future__ import annotations

from pathlib import Path

import pytest

from planezip.sim.predictor import (
    Predictor,
    PredictorError,
    Report,
    Signature,
    Variant,
    load_predictor,
    profiling_cost_ns,
    save_predictor,
    wire_error,
)

CONV = Signature(3, 0, "Conv output")
CONV_2 = Signature(9, 0, "Conv output")
MASK = Signature(4, 1, "Dropout mask")
REPORTS = [Report(CONV, 1000, 500), Report(CONV_2, 1000, 800), Report(MASK, 400, 100)]


def test_ratio_one_until_measured() -> None:
    predictor = Predictor()
    assert predictor.predict(CONV, 12345) == 12345
    predictor.report([Report(MASK, 8, 4)])
    assert predictor.predict(CONV, 12345) == 12345
    assert predictor.predict(MASK, 101) == 51  # rounded up


def test_report_overwrites_and_others_stay() -> None:
    predictor = Predictor()
    predictor.report(REPORTS)
    assert predictor.predict(CONV, 1000) == 500
    predictor.report([Report(CONV, 2000, 1800)])
    assert predictor.predict(CONV, 1000) == 900
    assert predictor.predict(CONV_2, 1000) == 800


def test_slot_is_part_of_the_signature() -> None:
    predictor = Predictor()
    predictor.report([Report(Signature(4, 0, "Dropout output"), 100, 50), Report(MASK, 100, 10)])
    assert predictor.predict(MASK, 100) == 10


def test_variants_share_entries() -> None:
    by_type = Predictor(Variant.OP_TYPE)
    by_type.report(REPORTS)
    assert by_type.predict(CONV, 1000) == by_type.predict(CONV_2, 1000) == 650
    assert by_type.predict(MASK, 1000) == 250
    assert by_type.predict(Signature(77, 0, "Conv output"), 1000) == 650
    overall = Predictor(Variant.GLOBAL)
    overall.report(REPORTS)
    assert overall.predict(MASK, 2400) == 1400
    assert len(overall.table) == 1


def test_error_by_hand() -> None:
    # |500 - 500| + |650 - ...|: op type predicts 650 for both convolutions
    by_type = Predictor(Variant.OP_TYPE)
    by_type.report(REPORTS)
    assert wire_error(by_type, REPORTS) == pytest.approx((150 + 150 + 0) / 1400)
    per_tensor = Predictor()
    per_tensor.report(REPORTS)
    assert wire_error(per_tensor, REPORTS) == 0
    changed = [Report(CONV, 1000, 520), Report(CONV_2, 1000, 790), Report(MASK, 400, 100)]
    assert wire_error(per_tensor, changed) == pytest.approx(30 / 1410)
    assert wire_error(per_tensor, []) == 0


def test_profiling_cost() -> None:
    # 96 GB of activations through an engine of 64 GB/s: 1.5 s
    assert profiling_cost_ns({CONV: 90 * 10**9, MASK: 6 * 10**9}, 64 * 10**9) == 1_500_000_000


@pytest.mark.parametrize("variant", Variant)
def test_round_trip(variant: Variant, tmp_path: Path) -> None:
    predictor = Predictor(variant)
    predictor.report(REPORTS)
    save_predictor(predictor, tmp_path / "a.json.gz")
    assert load_predictor(tmp_path / "a.json.gz") == predictor
    other = Predictor(variant)
    other.report(reversed(REPORTS))
    save_predictor(other, tmp_path / "b.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no gzip",
        "[]",
        "{}",
        '{"format":"planezip-predictor","version":2}',
        '{"format":"planezip-predictor","version":1,"variant":"x","table":{}}',
        '{"format":"planezip-predictor","version":1,"variant":"tensor","table":{"a":[0,1]}}',
        '{"format":"planezip-predictor","version":1,"variant":"tensor","table":{"a":[1]}}',
        '{"format":"planezip-predictor","version":1,"variant":"tensor","table":[1]}',
    ],
)
def test_bad_files(text: bytes | str, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "table"
    path.write_bytes(text if isinstance(text, bytes) else gzip.compress(text.encode()))
    with pytest.raises(PredictorError, match="cannot be read as a predictor table"):
        load_predictor(path)


def test_bad_sizes() -> None:
    with pytest.raises(ValueError, match="sizes must be positive, not 0, 5"):
        Predictor().report([Report(CONV, 0, 5)])
