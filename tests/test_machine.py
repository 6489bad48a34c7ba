"""Schedules worked out by hand, one per mechanism of the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planezip.sim.build_graph import build_graph
from planezip.sim.eventlog import event_log
from planezip.sim.graph import Graph
from planezip.sim.plan import Decision, Plan
from planezip.sim.platform import Platform
from planezip.sim.simulate import Outcome, Simulator
from planezip.sim.synthetic import Builder
from planezip.sim.trace import Trace, TraceError
from planezip.sim.validate import validate
from tests.small_traces import chain_of, keep_everything, manual_plan, platform, three_layers

KEEP, SWAP, DROP = Decision
X, A, B, C = range(4)  # tensors of three_layers


def run(
    trace: Trace,
    where: Platform,
    decisions: dict[int, Decision],
    arrives: dict[int, int] | None = None,
    budget: int = 10**6,
    wire: dict[int, int] | None = None,
) -> tuple[Outcome, list[dict[str, Any]]]:
    """Simulate a plan made by hand, check its log, return outcome and events."""
    graph = build_graph(trace, where)
    sizes = graph.tensor_bytes.copy()
    for t, size in (wire or {}).items():
        sizes[t] = size
    simulator = Simulator(graph, sizes)
    plan = manual_plan(graph, decisions, arrives)
    outcome = simulator(plan, budget)
    if not outcome.ok:
        return outcome, []
    log = event_log(graph, plan, simulator, budget)
    summary = validate(log)
    assert summary.iteration_ns == outcome.iteration_ns
    assert summary.peak_bytes == outcome.peak_bytes
    return outcome, log.events


def spans(events: list[dict[str, Any]], name: str) -> list[tuple[int, int]]:
    return [(e["start"], e["end"]) for e in events if e["event"] == name]


def test_everything_kept() -> None:
    outcome, events = run(three_layers(), platform(), {})
    assert outcome.iteration_ns == outcome.compute_ns == 110
    assert outcome.peak_bytes == 260
    assert spans(events, "compute") == [(0, 10), (10, 30), (30, 60), (60, 90), (90, 110)]


def test_swap_that_hides_behind_compute() -> None:
    outcome, events = run(three_layers(), platform(link=10), {A: SWAP}, {A: 3})
    assert outcome.iteration_ns == 110
    assert spans(events, "swap_out") == [(10, 20)]  # final at 10
    assert spans(events, "swap_in") == [(60, 70)]  # issued when g2 starts
    freed = [e["time"] for e in events if e["event"] == "free" and e["storage"] == 1]
    assert freed == [30, 110]  # not before f1, its last forward use


def test_setup_delays_every_transfer() -> None:
    outcome, events = run(three_layers(), platform(link=10, setup_ns=5), {A: SWAP}, {A: 3})
    assert spans(events, "swap_out") == [(10, 25)]
    assert spans(events, "swap_in") == [(60, 75)]
    assert outcome.iteration_ns == 110


def test_late_prefetch_stalls_the_operator() -> None:
    outcome, events = run(three_layers(), platform(link=10), {A: SWAP}, {A: 4})
    assert spans(events, "swap_in") == [(90, 100)]
    assert (outcome.operand_stall_ns, outcome.memory_stall_ns) == (10, 0)
    assert outcome.iteration_ns == 120
    assert outcome.peak_bytes == 170  # a is away during g2


def test_slow_swap_out_delays_the_prefetch() -> None:
    outcome, events = run(three_layers(), platform(link=1), {A: SWAP}, {A: 3})
    assert spans(events, "swap_out") == [(10, 110)]
    assert spans(events, "swap_in") == [(110, 210)]
    assert outcome.operand_stall_ns == 120
    assert outcome.iteration_ns == 230


def test_allocation_waits_for_the_swap_out() -> None:
    outcome, events = run(three_layers(), platform(link=2), {A: SWAP}, {A: 4}, budget=199)
    # f2 needs 100 + 60 + 40 at 30: waits for a to be out at 60
    assert spans(events, "stall") == [(30, 60), (120, 170)]
    assert [e["cause"] for e in events if e["event"] == "stall"] == ["memory", "operand"]
    assert (outcome.memory_stall_ns, outcome.operand_stall_ns) == (30, 50)
    assert outcome.iteration_ns == 190


def test_overflow_names_operator_and_missing_bytes() -> None:
    outcome, _ = run(three_layers(), platform(), {}, budget=255)
    assert (outcome.failed_op, outcome.missing_bytes) == (3, 5)
    outcome, _ = run(three_layers(), platform(), {}, budget=7)
    assert (outcome.failed_op, outcome.missing_bytes) == (0, 1)


def test_prefetch_that_does_not_fit_blocks_until_memory_is_freed() -> None:
    # issued at g2 (60 ns), but 60 + 40 + 60 live leave 99: starts when g2 frees b and c
    outcome, events = run(three_layers(), platform(link=10), {A: SWAP}, {A: 3}, budget=259)
    assert spans(events, "swap_in") == [(90, 100)]
    assert outcome.operand_stall_ns == 10
    assert outcome.peak_bytes == 170


def test_queues_are_first_in_first_out() -> None:
    outcome, events = run(three_layers(), platform(link=2), {A: SWAP, B: SWAP}, {B: 3, A: 3})
    assert spans(events, "swap_out") == [(10, 60), (60, 90)]  # b is final at 30
    # g2 waits for b: out at 90, in by 120; a follows
    assert spans(events, "swap_in") == [(90, 120), (120, 170)]
    assert outcome.operand_stall_ns == 60 + 20
    assert outcome.iteration_ns == 190


@pytest.mark.parametrize(
    ("engine", "wire", "duration", "uses"),
    [
        (4, 50, 50, True),  # link bound
        (1.6, 50, 63, True),  # engine bound: 62.5 rounded up
        (0.5, 50, 100, False),  # bypassed: compression would not shorten it
        (4, 100, 100, False),  # incompressible
        (0, 50, 100, False),  # no engine
    ],
)
def test_transfer_time_is_equation_2(engine: float, wire: int, duration: int, uses: bool) -> None:
    _, events = run(
        three_layers(), platform(link=1, engine=engine), {A: SWAP}, {A: 3}, wire={A: wire}
    )
    out = next(e for e in events if e["event"] == "swap_out")
    assert out["end"] - out["start"] == duration
    assert out["engine"] == uses
    assert out["wire_bytes"] == (wire if uses else 100)


def test_replay_before_the_first_use() -> None:
    outcome, events = run(three_layers(), platform(), {A: DROP})
    assert outcome.replay_ns == 10
    assert outcome.iteration_ns == 120
    assert spans(events, "compute")[-2:] == [(90, 100), (100, 120)]
    assert outcome.peak_bytes == 178  # x lives until the replay: 8 + 100 + 60 + 10


def hidden_layer() -> Trace:
    """x -f0 3-> t(30), not saved, -f1 4-> a(50), -f2 5-> b(20); backwards g2 6 reads b,
    g1 7 reads a, g0 8 reads x."""
    t = Builder()
    x = t.input(8)
    (hidden,) = t.forward(3, [x], [30])
    (a,) = t.forward(4, [hidden], [50])
    (b,) = t.forward(5, [a], [20])
    (d,) = t.backward(6, [b], [10])
    (e,) = t.backward(7, [a, d], [10])
    t.backward(8, [x, e], [10])
    return t.build()


def test_replay_goes_through_what_was_never_saved() -> None:
    outcome, events = run(hidden_layer(), platform(), {1: DROP})
    assert outcome.replay_ns == 3 + 4
    owned = [(e["event"], e["storage"], e["time"]) for e in events if e.get("owner", -1) >= 0]
    # during its own replay: hidden at 18, a at 21, hidden freed at 25
    assert owned == [("allocate", 1, 18), ("allocate", 2, 21), ("free", 1, 25)]


def test_dropped_input_is_replayed_again() -> None:
    # b's replay (before g2) makes a for itself; a's own replay follows before g1
    outcome, events = run(hidden_layer(), platform(), {1: DROP, 2: DROP})
    assert outcome.replay_ns == (3 + 4 + 5) + (3 + 4)
    replays = [(e["op"], e["replay_of"]) for e in events if e.get("replay_of", -1) >= 0]
    assert replays == [(0, 2), (1, 2), (2, 2), (0, 1), (1, 1)]


def test_replay_waits_for_a_swapped_input() -> None:
    t = Builder()
    x = t.input(4)
    (a,) = t.forward(10, [x], [40])
    (b,) = t.forward(10, [a], [30])
    (c,) = t.forward(100, [b], [5])
    (d,) = t.backward(10, [b, c], [5])
    t.backward(10, [a, d], [5])
    outcome, events = run(t.build(), platform(), {1: SWAP, 2: DROP}, {1: 3})
    # b is replayed from a before g at 120: a comes in from 120 to 160
    assert spans(events, "swap_in") == [(120, 160)]
    assert outcome.operand_stall_ns == 40
    assert outcome.replay_ns == 10


def in_place(clone: bool) -> Trace:
    """norm 9 makes s(50) from y(20); maybe clone 2 makes k; silu_ 4 changes s; g0 reads
    s, g1 reads the clone or y."""
    t = Builder()
    (y,) = t.forward(1, [t.input(4)], [20])
    (s,) = t.forward(9, [y], [50])
    copy = t.forward(2, [s], [50], name="aten.clone") if clone else [y]
    t.forward(4, [], changes=[s], name="silu_")
    (loss,) = t.forward(5, [s], [1])
    (g,) = t.backward(5, [s, loss], [3])
    (h,) = t.backward(5, [copy[0], g], [3])
    t.backward(5, [y, h], [3])
    return t.build()


def chain(trace: Trace, tensor: int, dropped: list[int]) -> Any:
    graph: Graph = build_graph(trace, platform())
    state = np.zeros(graph.tensors, np.int64)
    state[dropped] = DROP
    return chain_of(graph, tensor, state)


def test_in_place_change_is_replayed_with_what_it_changed() -> None:
    found = chain(in_place(clone=False), 2, [])
    assert (found.ops, found.leaves, found.cost_ns) == ((1, 2), (1,), 13)


def test_in_place_change_reads_the_copy_that_was_saved() -> None:
    found = chain(in_place(clone=True), 2, [])  # s, with the clone resident
    assert (found.ops, found.leaves, found.cost_ns) == ((3,), (3,), 4)
    found = chain(in_place(clone=True), 2, [3])  # the clone is dropped, and replayed later
    assert (found.ops, found.leaves, found.cost_ns) == ((1, 3), (1,), 13)
    found = chain(in_place(clone=True), 3, [2])  # the clone needs s as it was before
    assert (found.ops, found.leaves, found.cost_ns) == ((1, 2), (1,), 11)
    outcome, _ = run(in_place(clone=True), platform(), {2: DROP, 3: DROP})
    assert outcome.replay_ns == 13 + 11


def test_input_cannot_be_replayed_and_changed_ones_stay() -> None:
    assert chain(three_layers(), X, []) is None
    t = Builder()
    (a,) = t.forward(1, [t.input(4)], [20])
    (g,) = t.backward(1, [a], [5])
    t.backward(1, [g], changes=[a])
    graph = build_graph(t.build(), platform())
    assert graph.arrays.tensors[1, 4:6].tolist() == [0, 0]  # neither swapped nor dropped


def test_keep_plan_is_free_at_the_peak_and_fails_below() -> None:
    graph = build_graph(three_layers(), platform())
    simulator = Simulator(graph, graph.tensor_bytes)
    plan: Plan = keep_everything(graph)
    outcome = simulator(plan, graph.peak_bytes)
    assert (outcome.overhead, outcome.swap_out_ns, outcome.replay_ns) == (0, 0, 0)
    assert not simulator(plan, graph.peak_bytes - 1).ok


def test_trace_without_work_is_refused() -> None:
    with pytest.raises(TraceError, match="no operator that takes time"):
        build_graph(Trace("empty", 1, (), ()), platform())


def test_host_pool_counts_whole_chunks() -> None:
    graph = build_graph(three_layers(), platform(link=10, engine=100, chunk=64))
    sizes = graph.tensor_bytes.copy()
    sizes[A] = 70
    simulator = Simulator(graph, sizes)
    summary = validate(event_log(graph, manual_plan(graph, {A: SWAP}, {A: 3}), simulator, 10**6))
    assert summary.peak_host_bytes == 128
    assert summary.host_fragmentation == pytest.approx(1 - 70 / 128)


def test_storage_of_a_view_gets_its_memory_with_the_first_use() -> None:
    t = Builder()
    x = t.input(4)
    (e,) = t.forward(0, [], [50], name="aten.empty")
    t.ops[0] = replace(t.ops[0], view=True)
    t.forward(3, [x], changes=[e], name="fill_")
    (y,) = t.forward(5, [e], [10])
    (unused,) = t.forward(0, [], [70], name="aten.empty")
    t.ops[3] = replace(t.ops[3], view=True)
    t.backward(4, [e, y], [1])
    assert unused == 3
    outcome, events = run(t.build(), platform(), {1: DROP})
    assert outcome.iteration_ns == 3 + 5 + 3 + 4
    assert [e["storage"] for e in events if e["event"] == "allocate"] == [0, 1, 2, 1, 3]
