"""Table of the engine's memories in docs/hardware.md."""

from __future__ import annotations

from pathlib import Path

from planezip.hdl.buffers import buffers, table

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_table_is_in_the_docs() -> None:
    assert table() in (DOCS / "hardware.md").read_text()


def test_a_lane_alone_needs_no_share_of_others() -> None:
    """With one lane rows only pass; with more a chunk's other shares wait."""
    one, two, four = (
        {(b.direction, b.name): b.bytes for b in buffers(lanes)} for lanes in (1, 2, 4)
    )
    key = ("compress", "intake")
    assert one[key] < two[key] < four[key] < 4096
