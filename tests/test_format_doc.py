"""docs/format.md shows what the code does."""

from __future__ import annotations

from pathlib import Path

from tests import worked_example

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "format.md").read_text()


def test_worked_example_is_that_of_the_command():
    assert "\n".join(worked_example.lines()) in PAGE
