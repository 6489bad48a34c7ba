"""Small modules against synth/data/qor.json, and the shipped library against its generator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planezip.synth import make_library, qor

pytest.importorskip("pyosys", reason="pyosys is not installed: nothing can be synthesised")

BUILD = Path(__file__).resolve().parent.parent / "build" / "synth"


def test_area_and_path_are_those_of_the_file() -> None:
    kept = json.loads(qor.FILE.read_text())["modules"]
    now = qor.figures(qor.measured(BUILD))
    assert set(kept) == set(now) == set(qor.SMALL)
    other = qor.changed(kept, now)
    assert not other, f"{other}: if that is meant, run python -m planezip.synth.qor and commit it"


def test_changes_are_found() -> None:
    kept = {"a": {"area_um2": 100.0, "path_ps": 500.0}}
    assert qor.changed(kept, {"a": {"area_um2": 101.9, "path_ps": 509.0}}) == []
    assert qor.changed(kept, {"a": {"area_um2": 102.1, "path_ps": 491.0}}) == [
        "a: area_um2 was 100, is 102.1"
    ]
    assert qor.changed(kept, {"a": {"area_um2": 97.9}}) == ["a: area_um2 was 100, is 97.9"]
    assert qor.changed(kept, {"a": {"path_ps": 511.0}}) == ["a: path_ps was 500, is 511"]
    assert qor.changed(kept, {"b": {"area_um2": 1.0}}) == ["b is not in qor.json"]


def test_shipped_library_is_what_its_generator_writes() -> None:
    assert make_library.FILE.read_text() == make_library.liberty()
