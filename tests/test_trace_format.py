"""The trace file: round trip, determinism, schema, one clear error for bad input."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import planezip.sim
from planezip.sim.trace import (
    Kind,
    Op,
    Phase,
    Storage,
    Trace,
    TraceError,
)
from planezip.sim.trace_file import load_trace, save_trace, trace_from_json

SCHEMA = json.loads((Path(planezip.sim.__file__).parent / "schemas/trace.json").read_text())


def small() -> Trace:
    """Linear, in-place ReLU, loss; backward; optimizer."""
    return Trace(
        model="small",
        batch=2,
        ops=(
            Op("linear", Phase.FORWARD, 100, 30, 0, (0, 1), (2,)),
            Op("view", Phase.FORWARD, reads=(2,), view=True),
            Op("relu_", Phase.FORWARD, 10, 20, 0, (2,), (2,)),
            Op("loss", Phase.FORWARD, 10, 12, 8, (2,), (3,), random=True),
            Op("loss_backward", Phase.BACKWARD, 10, 12, 0, (2, 3), (4,)),
            Op("linear_backward", Phase.BACKWARD, 10, 12, 0, (0, 4), (5,), time_ns=7),
            Op("optimizer", Phase.OPTIMIZER, 0, 0, 200),
        ),
        storages=(
            Storage(40, "float32", Kind.INPUT, -1, 0, 7),
            Storage(40, "float32", Kind.PARAMETER, -1, 0, 7),
            Storage(40, "float32", Kind.ACTIVATION, 0, 0, 4, "ReLU output"),
            Storage(3, "uint8", Kind.ACTIVATION, 3, 0, 4),
            Storage(40, "float32", Kind.GRADIENT, 4, 0, 5),
            Storage(40, "float32", Kind.PARAMETER_GRADIENT, 5, 0, 7),
        ),
        parameter_count=10,
        notes={"why": ["a"]},
    )


def as_json(trace: Trace, path: Path) -> dict[str, Any]:
    save_trace(trace, path)
    data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return data


def test_round_trip_is_exact_and_deterministic(tmp_path: Path) -> None:
    save_trace(small(), tmp_path / "a")
    save_trace(small(), tmp_path / "b")
    assert load_trace(tmp_path / "a") == small()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_file_follows_the_schema(tmp_path: Path) -> None:
    jsonschema.validate(as_json(small(), tmp_path / "t"), SCHEMA)


def test_derived_views_of_the_trace() -> None:
    trace = small()
    assert (trace.backward_start, trace.backward_end) == (4, 6)
    assert trace.uses == ((0, 5), (0,), (0, 2, 3, 4), (3, 4), (4, 5), (5,))
    assert trace.saved == (0, 2, 3)
    assert [s.size_bytes(2) for s in trace.storages] == [20, 20, 20, 3, 20, 20]
    assert trace.storages[0].size_bytes(None) == 40


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("version",), 2, "version must be 1"),
        (("format",), "x", "not a PlaneZip trace"),
        (("ops",), None, "ops must be a list"),
        (("ops", 0), 3, r"ops\[0\] must be an object"),
        (("ops", 0, "reads"), [9], "no storage 9"),
        (("ops", 0, "reads"), [-1], "no storage -1"),
        (("ops", 0, "reads"), [2], "which it creates"),
        (("ops", 0, "reads"), [4], "exists only from operator 4"),
        (("ops", 0, "reads"), [0, 0], "twice"),
        (("ops", 0, "flops"), -1, "negative"),
        (("ops", 0, "flops"), 1.5, "must be an integer"),
        (("ops", 0, "flops"), True, "must be an integer"),
        (("ops", 0, "flops"), 1 << 70, "must be an integer"),
        (("ops", 0, "phase"), "sideways", "must be one of"),
        (("ops", 4, "phase"), "optimizer", "comes after"),
        (("ops", 0, "shape"), 1, "unknown field 'shape'"),
        (("ops", 5, "time_ns"), "7", "must be an integer"),
        (("storages", 2, "bytes"), 41, "multiple"),
        (("storages", 2, "death"), 3, "exists only"),
        (("storages", 2, "death"), 99, "lives from"),
        (("storages", 2, "producer"), 1, "exists only"),
        (("storages", 3, "category"), "Mystery", "Table III"),
        (("storages", 3, "slot"), -1, "slot"),
        (("storages", 3, "dtype"), 8, "must be str"),
        (("batch",), -1, "batch"),
    ],
)
def test_bad_field_is_named(tmp_path: Path, path: Any, value: object, text: str) -> None:
    data = as_json(small(), tmp_path / "t")
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(TraceError, match=text):
        trace_from_json(data)


def test_missing_field_is_named(tmp_path: Path) -> None:
    data = as_json(small(), tmp_path / "t")
    del data["storages"][0]["dtype"]
    with pytest.raises(TraceError, match=r"storages\[0\] lacks .*dtype"):
        trace_from_json(data)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[1]", b"\x1f\x8bbroken", b"[" * 100_000, b"\xff\xfe", b"nan"]
)
def test_bad_file_gives_one_error_with_a_remedy(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "t").write_bytes(raw)
    with pytest.raises(TraceError, match="planezip trace"):
        load_trace(tmp_path / "t")
    with pytest.raises(TraceError, match="planezip trace"):
        load_trace(tmp_path / "absent")


def test_truncated_file(tmp_path: Path) -> None:
    save_trace(small(), tmp_path / "t")
    raw = (tmp_path / "t").read_bytes()
    for length in range(0, len(raw), 7):
        (tmp_path / "t").write_bytes(raw[:length])
        with pytest.raises(TraceError):
            load_trace(tmp_path / "t")


def test_contradicting_trace_is_refused_in_memory() -> None:
    trace = small()
    bad = replace(trace.storages[3], producer=2)
    storages = (*trace.storages[:3], bad, *trace.storages[4:])
    with pytest.raises(TraceError, match="does not write it"):
        replace(trace, storages=storages)
