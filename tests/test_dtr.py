"""DTR log importer: recorded logs to the byte, small logs by hand, bad logs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from planezip.sim.dtr import import_dtr_log
from planezip.sim.trace import Kind, Trace, TraceError
from tb.shared import absent, shared


def peak_bytes(trace: Trace) -> int:
    """Peak over operators of all storages that exist."""
    change = [0] * (len(trace.ops) + 2)
    for s in trace.storages:
        change[max(s.producer, 0)] += s.bytes
        change[s.death + 1] -= s.bytes
    live = peak = 0
    for delta in change:
        live += delta
        peak = max(peak, live)
    return peak


@pytest.mark.skipif(bool(absent("traces")), reason=absent("traces"))
@pytest.mark.parametrize(
    ("log", "ops", "forward_us", "peak", "constants", "saved", "saved_bytes"),
    [
        (
            "tv_densenet121-84",
            2072,
            136_396,
            11_020_749_360,
            82_830_040,
            493,
            10_900_782_088,
        ),
        (
            "transformer-10",
            2821,
            105_337,
            9_864_405_000,
            263_197_248,
            464,
            9_069_142_728,
        ),
        ("unet-6", 247, 161_979, 8_415_764_640, 93_386_276, 86, 7_545_383_428),
    ],
)
def test_recorded_log(
    log: str,
    ops: int,
    forward_us: int,
    peak: int,
    constants: int,
    saved: int,
    saved_bytes: int,
) -> None:
    trace = import_dtr_log(shared("traces") / f"{log}.log.gz")
    assert len(trace.ops) == ops
    assert sum(op.time_ns or 0 for op in trace.ops[: trace.backward_start]) // 1000 == forward_us
    assert peak_bytes(trace) == peak
    assert trace.parameter_bytes == constants
    assert len(trace.saved) == saved
    assert sum(trace.storages[s].bytes for s in trace.saved) == saved_bytes


def write_log(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
    return path


def call(name: str, args: list[str], *results: tuple[str, int, int]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {
            "INSTRUCTION": "CALL",
            "NAME": name,
            "ARGS": args,
            "RESULT": [r[0] for r in results],
            "TIME": "5",
        }
    ]
    for result, size, alias in results:
        rows.append({"INSTRUCTION": "MEMORY", "NAME": result, "MEMORY": str(size)})
        rows.append({"INSTRUCTION": "ALIAS", "NAME": result, "ALIAS": str(alias)})
    return rows


SMALL: list[dict[str, object]] = [
    {"INSTRUCTION": "ANNOTATE", "ANNOTATION": "START"},
    {"INSTRUCTION": "CONSTANT", "NAME": "w"},
    {"INSTRUCTION": "MEMORY", "NAME": "w", "MEMORY": "8"},
    *call("mm", ["w"], ("a", 100, -1)),
    *call("view", ["a"], ("v", 0, 0)),
    {"INSTRUCTION": "RELEASE", "NAME": "a"},
    {
        "INSTRUCTION": "MUTATE",
        "NAME": "relu_",
        "ARGS": ["v"],
        "MUTATE": [0],
        "TIME": "3",
    },
    {"INSTRUCTION": "COPY", "DST": "b", "SRC": "v"},
    {"INSTRUCTION": "ANNOTATE", "ANNOTATION": "BACKWARD"},
    *call("threshold_backward", ["v"], ("g", 100, -1)),
    {"INSTRUCTION": "RELEASE", "NAME": "v"},
    *call("mm", ["g"], ("gw", 8, -1)),
    {"INSTRUCTION": "COPY_FROM", "DST": "b", "SRC": "g"},
    {"INSTRUCTION": "RELEASE", "NAME": "g"},
]


def test_references_aliases_and_mutation(tmp_path: Path) -> None:
    trace = import_dtr_log(write_log(tmp_path / "small.log.gz", SMALL), batch=3)
    w, a, g, gw = trace.storages
    assert (trace.model, trace.batch, len(trace.ops)) == ("small", 3, 5)
    assert [op.view for op in trace.ops] == [False, True, False, False, False]
    assert trace.ops[2].reads == trace.ops[2].writes == (1,)
    assert (w.kind, w.producer, w.death) == (Kind.PARAMETER, -1, 5)
    assert (a.kind, a.producer, a.death, a.category) == (
        Kind.ACTIVATION,
        0,
        4,
        "ReLU output",
    )
    assert (g.kind, g.producer, g.death) == (
        Kind.GRADIENT,
        3,
        5,
    )  # b refers to it at the end
    assert (gw.producer, gw.death) == (4, 5)
    assert trace.saved == (1,)
    assert peak_bytes(trace) == 216


@pytest.mark.parametrize(
    ("at", "row", "text"),
    [
        (0, {"INSTRUCTION": "RELEASE", "NAME": "w"}, "no ANNOTATE START"),
        (1, {"INSTRUCTION": "JUMP"}, "line 2: ValueError unknown instruction"),
        (2, {"INSTRUCTION": "ALIAS"}, "MEMORY must follow"),
        (2, {"INSTRUCTION": "MEMORY", "MEMORY": "-1"}, "negative"),
        (6, {"INSTRUCTION": "RELEASE", "NAME": "nobody"}, "line 7: KeyError"),
        (3, {"INSTRUCTION": "CALL", "NAME": "mm"}, "line 4: KeyError"),
    ],
)
def test_bad_log_names_the_line(tmp_path: Path, at: int, row: dict[str, object], text: str) -> None:
    with pytest.raises(TraceError, match=text):
        import_dtr_log(write_log(tmp_path / "bad.log.gz", [*SMALL[:at], row, *SMALL[at + 1 :]]))


def test_unreadable_log(tmp_path: Path) -> None:
    (tmp_path / "bad.log.gz").write_bytes(b"\x1f\x8bnot really")
    with pytest.raises(TraceError, match="cannot be read"):
        import_dtr_log(tmp_path / "bad.log.gz")
