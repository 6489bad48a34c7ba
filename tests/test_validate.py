"""The validator catches a broken schedule of each kind."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from planezip.sim.build_graph import build_graph
from planezip.sim.eventlog import EventLog, event_log, load_events
from planezip.sim.plan import Decision
from planezip.sim.schedule_error import ScheduleError
from planezip.sim.simulate import Simulator
from planezip.sim.synthetic import Builder
from planezip.sim.trace import Trace
from planezip.sim.validate import main, validate
from tests.small_traces import manual_plan, platform

Log = EventLog
Events = list[dict[str, Any]]


def network() -> Trace:
    """Three saved tensors, one to keep, one to swap and one to drop; a random operator."""
    t = Builder()
    x = t.input(8)
    (a,) = t.forward(10, [x], [100])
    (b,) = t.forward(20, [a], [60], random=True)
    (c,) = t.forward(30, [b], [40])
    (d,) = t.backward(30, [b, c], [60])
    (e,) = t.backward(20, [a, d], [10])
    t.backward(5, [x, e], [4])
    return t.build()


@pytest.fixture(scope="module")
def good() -> Log:
    graph = build_graph(network(), platform(link=8, setup_ns=2, engine=100))
    sizes = graph.tensor_bytes.copy()
    sizes[1] = 72
    simulator = Simulator(graph, sizes)
    plan = manual_plan(graph, {1: Decision.SWAP, 2: Decision.DROP}, {1: 3})
    log = event_log(graph, plan, simulator, 300)
    validate(log)
    return log


def events(log: Log, name: str, **fields: object) -> Events:
    return [
        e for e in log.events if e["event"] == name and all(e[k] == v for k, v in fields.items())
    ]


def index(log: Log, event: dict[str, Any]) -> int:
    return next(i for i, e in enumerate(log.events) if e is event)


def shift(event: dict[str, Any], by: int) -> None:
    event["start"] += by
    event["end"] += by


def _less_memory(log: Log) -> None:
    log.header["budget_bytes"] = 199


def _operand_missing(log: Log) -> None:
    free = events(log, "free", storage=3)[0]  # c, freed before g2 reads it
    reader = events(log, "compute", op=3)[0]
    log.events.remove(free)
    free["time"] = reader["start"]
    log.events.insert(index(log, reader), free)


def _operand_early(log: Log) -> None:
    # the replay of b reads a while a prefetch that began later is still running
    events(log, "issue")[0]["time"] += 5
    shift(events(log, "swap_in")[0], 5)


def _order(log: Log) -> None:
    a, b = events(log, "compute", op=0)[0], events(log, "compute", op=1)[0]
    a["op"], b["op"] = 1, 0


def _overlap(log: Log) -> None:
    events(log, "compute", op=1)[0]["start"] -= 1


def _gap_out(log: Log) -> None:
    shift(events(log, "swap_out")[0], 1)


def _gap_in(log: Log) -> None:
    shift(events(log, "swap_in")[0], 1)


def _no_return(log: Log) -> None:
    log.events.remove(events(log, "swap_in")[0])


def _wrong_wire(log: Log) -> None:
    events(log, "swap_out")[0]["wire_bytes"] = 71


def _too_fast(log: Log) -> None:
    events(log, "swap_in")[0]["end"] -= 1


def _needless_bypass(log: Log) -> None:
    for e in events(log, "swap_out"):
        e.update(engine=False, wire_bytes=100, end=e["start"] + 2 + 13)


def _before_final(log: Log) -> None:
    shift(events(log, "swap_out")[0], -3)


def _freed_during_copy(log: Log) -> None:
    free = events(log, "free", storage=1, owner=-1)[0]
    log.events.remove(free)
    out = events(log, "swap_out")[0]
    free["time"] = out["start"]
    log.events.insert(index(log, out) + 1, free)


def _never_freed(log: Log) -> None:
    log.events.remove(events(log, "free", storage=6)[0])


def _freed_twice(log: Log) -> None:
    free = events(log, "free", storage=4)[0]
    log.events.insert(index(log, free), dict(free))


def _lost_time(log: Log) -> None:
    log.header["iteration_ns"] += 1


def _stall_without_cause(log: Log) -> None:
    for e in events(log, "stall"):
        e["cause"] = "weather"


def _busier_than_long(log: Log) -> None:
    # longer transfers, consistently, than the iteration has time for
    log.header["platform"]["setup_ns"] += 200
    for name in ("swap_out", "swap_in"):
        for e in events(log, name):
            e["end"] += 200


def _unguarded(log: Log) -> None:
    for e in events(log, "compute", op=1):
        e["guarded"] = False


def _replay_reads_wrong_version(log: Log) -> None:
    for e in events(log, "compute", op=1):
        if e["replay_of"] >= 0:
            e["operands"] = [[0, -1]]


def _backward_replay(log: Log) -> None:
    for e in events(log, "compute", op=1):
        if e["replay_of"] >= 0:
            log.header["forward_ops"] = 1


def _pool(log: Log) -> None:
    events(log, "swap_in")[0]["host_bytes"] += 1


@pytest.mark.parametrize(
    ("invariant", "damage"),
    [
        (1, _less_memory),
        (2, _operand_missing),
        (2, _operand_early),
        (3, _order),
        (3, _overlap),
        (4, _gap_out),
        (4, _gap_in),
        (5, _no_return),
        (5, _wrong_wire),
        (6, _too_fast),
        (6, _needless_bypass),
        (7, _before_final),
        (7, _freed_during_copy),
        (8, _never_freed),
        (8, _freed_twice),
        (9, _lost_time),
        (9, _stall_without_cause),
        (10, _busier_than_long),
        (12, _unguarded),
        (12, _replay_reads_wrong_version),
        (12, _backward_replay),
        (13, _pool),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_damage_is_caught(good: Log, invariant: int, damage: Callable[[Log], None]) -> None:
    log = deepcopy(good)
    damage(log)
    with pytest.raises(ScheduleError) as caught:
        validate(log)
    assert caught.value.invariant == invariant


def test_error_crosses_processes() -> None:
    error = pickle.loads(pickle.dumps(ScheduleError(3, "why")))
    assert (str(error), error.invariant) == ("invariant 3: why", 3)


def test_a_log_is_checked_from_its_file(
    good: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.json"
    good.save(path)
    assert load_events(path) == good
    assert main([str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == asdict(validate(good))

    def code(text: str) -> int:
        path.write_text(text)
        return main([str(path)])

    text = path.read_text()
    assert code(text.replace('"budget_bytes": 300', '"budget_bytes": 100')) == 1
    assert "invariant 1: " in capsys.readouterr().err
    wrong = (
        "[]",
        "",
        "{}",
        text[:-9],
        text.replace('"ops"', '"oops"'),
        text.replace('"op"', '"o"'),
    )
    for content in (
        *wrong,
        '{"format": "planezip-events", "version": 1, "header": 3, "events": 3}',
    ):
        assert code(content) == 2
        error = capsys.readouterr().err
        assert "planezip plan --events" in error
        assert error.count("\n") == 1
    assert main([]) == 2
