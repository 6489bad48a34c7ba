"""Timing diagrams: what is drawn of a trace (tb/timing.py)."""

from __future__ import annotations

from xml.etree import ElementTree

from planezip.hdl.engine_types import Activity
from tb.timing import PORTS, draw, parse, pieces

TEXT = """\
01 11 00 01 01 01 00 01 0 1
01 10 11 01 01 01 00 01 3 1
01 10 00 01 01 01 10 01 3 2
"""


def test_trace() -> None:
    trace = parse(TEXT)
    assert trace.ports["compress raw"] == ["moves", "waits", "waits"]
    assert trace.ports["compress wire"] == ["idle", "moves", "idle"]
    assert trace.activities[0] == [Activity.MOVE, Activity.LANE, Activity.LANE]
    assert pieces(trace.ports["compress raw"]) == [("moves", 0, 1), ("waits", 1, 2)]


def test_drawing() -> None:
    """One bar for each run of equal states, labelled with the cause of a wait."""
    root = ElementTree.fromstring(draw(parse(TEXT), "three cycles", 6))
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "compress raw: waits, cycles 1 to 2 (2 LANE)" in titles
    assert len(titles) == sum(len(pieces(states)) for states in parse(TEXT).ports.values())
    assert all(any(title.startswith(name) for title in titles) for name in PORTS)
