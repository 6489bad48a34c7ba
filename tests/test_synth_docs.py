"""docs/synth.md: its tables have the form that the command writes."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from planezip.synth import docs, report
from tests.synth_rows import made_up_points, made_up_row

PAGE = Path(__file__).resolve().parent.parent / "docs" / "synth.md"


def test_tables_fill_the_page() -> None:
    rows = [
        made_up_row("compressor", 70_000.0, 1400.0, 0.5),
        made_up_row("decompressor", 60_000.0, 1500.0, 0.25),
        replace(
            made_up_row("engine_x2", 140_000.0, 1500.0, 0.5),
            parts={"compressor": 2},
            own_um2=70_000.0,
        ),
    ]
    document = report.document(rows, [])
    sweep = [{k: str(v) for k, v in asdict(point).items()} for point in made_up_points()]
    kinds = {"lut": 20_000, "lut_ram": 3, "carry": 4, "ff": 5, "bram_18k": 6}
    fpga = {"family": "xcup", "lanes": 2, "modules": {"a": kinds}, "whole": {"b": kinds}}
    found = docs.tables(document, sweep, fpga)
    page = docs.replaced(PAGE.read_text(), found)
    for name, text in found.items():
        assert f"<!-- {name} -->\n{text}\n<!-- end -->" in page
    assert "| area without SRAM, um2 | 70,000 |" in page
    assert "| made_up, typical 1 V 25 C | 0.2600 | 0.2600 | 0.0315% | 16.0 | - |" in page
    assert "| b, with all instances | 20,000 | 3 | 4 | 5 | 6 |" in page
    assert "| engine_x2, made_up | 2 compressor | 70,000 | 140,000 |" in page
    assert "| no_zvc | made_up | 59 | 40 | 1.0% | 1410 |" in page
    assert docs.replaced(page, found) == page  # writing it again changes nothing
    assert docs.replaced("no tables\n", found) == "no tables\n"


def test_rows_of_several_reports() -> None:
    first = report.document([made_up_row("compressor", 70_000.0, 1400.0, 0.5)], [])
    again = made_up_row("compressor", 71_000.0, 1400.0, 0.5)
    second = report.document([again, made_up_row("delta", 10.0, 100.0, 0.5)], [])
    whole = docs.together([first, second])
    assert [row["name"] for row in whole["modules"]] == ["compressor", "delta"]
    assert whole["modules"][0]["area_um2"] == 70_000.0


def test_missing_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main([str(tmp_path / "report.json")]) == 2
    assert "run make synth" in capsys.readouterr().err
