"""Coverage of the lanes' Verilog: how it is read and judged, and that it is enough."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from formal.coverage import rtl
from formal.coverage.__main__ import main
from formal.coverage.points import Exclusion, Point, exclusions, points, signals, split
from tb.harness.lanes import LANES, Lane

SCHEMA = json.loads(
    (Path(__file__).parents[1] / "formal" / "coverage" / "rtl.schema.json").read_text()
)
LEAST = json.loads(rtl.THRESHOLDS.read_text())["rtl"]
CODED = [lane for lane in LANES if lane.name in LEAST]
VERILOG = "module lane(x);\n  wire \\$1 ;\n  wire \\$2 ;\n  wire \\a.b ;\n  assign y = c ? d : e;\n"
POINT = Point("branch", "part", 5, 3, "cond_else", "assign y = c ? d : e;", 0)
RULE = Exclusion("lane", "branch", "part", "cond_.*", "assign y = .*", "c is 1")


def entry(hits: int, **fields: str) -> str:
    text = "".join(f"\1{key}\2{value}" for key, value in fields.items())
    return f"C '{text}' {hits}\n"


def row(hit: int) -> dict[str, Any]:
    kinds = {kind: {"points": 1000, "hit": hit, "percent": hit / 10} for kind in rtl.KINDS}
    return {
        "name": "compressor",
        "cycles": 9,
        "kinds": kinds,
        "nets_without_a_name": 2,
        "excluded": [],
        "wrong_exclusions": [],
        "missed": [],
        "missed_toggles": [],
    }


@pytest.mark.parametrize("lane", CODED, ids=[lane.name for lane in CODED])
def test_lanes_are_covered(lane: Lane) -> None:
    """As much of a lane as the figures in the repository say, 98% of lines and branches or more."""
    found = rtl.measured(lane)
    jsonschema.validate(found, {**SCHEMA, **SCHEMA["$defs"]["lane"]})
    assert not list(rtl.shortfalls(found, LEAST[lane.name]))
    assert LEAST[lane.name].keys() == set(rtl.KINDS) == found["kinds"].keys()
    assert min(LEAST[lane.name][kind] for kind in ("line", "branch")) >= 98
    assert found["kinds"]["branch"]["points"] > 4000  # conditions of expressions are branches
    for kind in ("line", "branch"):
        count = found["kinds"][kind]
        missed = [point for point in found["missed"] if point["kind"] == kind]
        assert count["points"] - count["hit"] == len(missed)


def test_points_of_coverage_dat(tmp_path: Path) -> None:
    """Names as in the Verilog, paths from the lane on, other files left out."""
    path = tmp_path / "coverage.dat"
    place = {"f": "lane.v", "n": "3", "h": "TOP.harness.lane.part__0241"}
    path.write_text(
        "# SystemC::Coverage-3\n"
        + entry(7, page="v_toggle/part", l="4", o="a__02eb[2]:0->1", **place)
        + entry(0, page="v_branch/part", l="5", o="cond_else", **place)
        + entry(5, page="v_line/top", l="1", o="block", f="harness.v", n="1", h="TOP")
    )
    assert list(points(path, "lane.v", VERILOG, "TOP.harness.lane")) == [
        Point("toggle", "part$1", 4, 3, "a.b[2]:0->1", "wire \\a.b ;", 7),
        Point("branch", "part$1", 5, 3, "cond_else", "assign y = c ? d : e;", 0),
    ]


def test_exclusions() -> None:
    """They leave points out; one that is hit is an error, and one without a point."""
    other = replace(POINT, module="other", hits=3)
    assert split("lane", [POINT, other], [RULE]) == ([other], [(RULE, 1)], [])
    kept, excluded, wrong = split("lane", [replace(POINT, hits=1)], [RULE])
    assert (kept, excluded) == ([], [(RULE, 1)])
    assert wrong == ["lane: excluded, but hit: branch part cond_else"]
    assert split("lane", [other], [RULE])[2] == [
        "lane: excludes nothing: branch part assign y = .*"
    ]
    assert split("another", [POINT], [RULE]) == ([POINT], [], [])
    assert list(rtl.shortfalls({**row(1000), "wrong_exclusions": wrong}, {})) == wrong


def test_every_exclusion_has_a_reason() -> None:
    for rule in exclusions():
        assert rule.lane in LEAST
        assert rule.kind in rtl.KINDS
        assert len(rule.reason.split()) > 5


def test_missed_toggles_by_signal() -> None:
    missed = [replace(POINT, kind="toggle", what=f"s[{k}]:0->1") for k in (7, 0, 1, 2)]
    missed += [replace(POINT, kind="toggle", what="s[7]:1->0")]
    missed += [replace(POINT, kind="toggle", what="bit:1->0")]
    assert [(s["signal"], s["never_rose"], s["never_fell"]) for s in signals(missed)] == [
        ("bit", "", "0"),
        ("s", "0-2 7", "7"),
    ]
    with pytest.raises(ValueError, match="no toggle"):
        list(signals([POINT]))


def test_nets_without_a_name_are_left_out() -> None:
    configuration, nets = rtl.named_only({"lane.v": VERILOG, "harness.v": ""})
    assert nets == 2
    assert configuration.splitlines()[1:] == [
        'coverage_off -file "harness.v"',
        'coverage_off -file "lane.v" -lines 2-3',
    ]


def test_report_and_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command writes what its schema says, and fails below the figures of the repository."""
    report = tmp_path / "rtl.json"
    for hit, code in ((1000, 0), (979, 1)):
        monkeypatch.setattr(rtl, "measured", lambda lane, hit=hit: {**row(hit), "name": lane.name})
        monkeypatch.setattr(rtl, "REPORT", report)
        assert main(["rtl"]) == code
        jsonschema.validate(json.loads(report.read_text()), SCHEMA)
    assert "compressor: 97.9% of line, less than" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["nothing"])


def test_percent_is_never_rounded_up() -> None:
    assert rtl.floor_percent(9999, 10000) == 99.9
    assert rtl.floor_percent(0, 0) == 100
