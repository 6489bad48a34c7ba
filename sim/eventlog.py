"""Event log of one simulated iteration, complete enough to be checked on its own.

The header has platform, budget, operators, storages and tensors; the events say what
the compute stream, the two copy queues, device memory and the host pool did, in the
order in which it happened. Times are ns, sizes bytes; storages, tensors and operators
are positions in the header's lists. Versioned JSON (``schemas/events.json``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planezip.sim.graph import (
    BIRTH,
    DEATH,
    READ_STORAGE,
    READS,
    REPLAYS,
    SIZE,
    STORAGE,
    WRITES,
    Graph,
)
from planezip.sim.machine_state import Event
from planezip.sim.plan import Plan
from planezip.sim.replay import SWAP, resident_source
from planezip.sim.simulate import Outcome, Simulator

__all__ = ["EVENTS_VERSION", "EventLog", "event_log", "host_bytes", "load_events"]

EVENTS_VERSION = 1
_STALLS = ("operand", "memory")


@dataclass(frozen=True)
class EventLog:
    """Header and events, JSON values throughout."""

    header: dict[str, Any]
    events: list[dict[str, Any]]

    def save(self, path: Path | str) -> None:
        """Write as JSON; equal logs give equal bytes."""
        data = {"format": "planezip-events", "version": EVENTS_VERSION}
        text = json.dumps({**data, "header": self.header, "events": self.events}, sort_keys=True)
        Path(path).write_text(text + "\n", "utf-8")


def load_events(path: Path | str) -> EventLog:
    """Read a log that :meth:`EventLog.save` wrote.

    Raises
    ------
    ValueError
        If the file is none.
    """
    try:
        data = json.loads(Path(path).read_text("utf-8"))
        if (data["format"], data["version"]) != ("planezip-events", EVENTS_VERSION):
            raise ValueError(f"not an event log of version {EVENTS_VERSION}")
        return EventLog(dict(data["header"]), list(data["events"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path}: cannot be read as an event log ({error}); `planezip plan --events` writes one"
        ) from error


def host_bytes(wire_bytes: int, chunk_bytes: int) -> int:
    """Bytes of the pinned pool that a tensor takes: whole chunks."""
    return -(-wire_bytes // chunk_bytes) * chunk_bytes


def event_log(graph: Graph, plan: Plan, simulator: Simulator, budget_bytes: int) -> EventLog:
    """Simulate ``plan`` and write down everything that happens.

    Raises
    ------
    ValueError
        If the plan overflows the budget.
    """
    outcome = simulator(plan, budget_bytes, log=True)
    if not outcome.ok:
        raise ValueError(
            f"the plan overflows: operator {graph.op_of[outcome.failed_op]} lacks "
            f"{outcome.missing_bytes} bytes"
        )
    return EventLog(
        _header(graph, plan, simulator, budget_bytes, outcome),
        list(_events(graph, plan, simulator, outcome)),
    )


def _header(
    graph: Graph, plan: Plan, simulator: Simulator, budget_bytes: int, outcome: Outcome
) -> dict[str, Any]:
    a, trace, platform = graph.arrays, graph.trace, graph.platform
    ops = [
        {
            "name": trace.ops[old].name,
            "phase": str(trace.ops[old].phase),
            "time_ns": int(a.start[op + 1] - a.start[op]),
            "reads": a.reads[a.ops[op, READS] : a.ops[op + 1, READS]].tolist(),
            "writes": a.writes[a.ops[op, WRITES] : a.ops[op + 1, WRITES]].tolist(),
            "random": trace.ops[old].random,
            "copy": op in graph.copy_ops,
        }
        for op, old in enumerate(graph.op_of)
    ]
    return {
        "model": trace.model,
        "plan": plan.name,
        "platform": {
            "name": platform.name,
            "link_bytes_per_s": platform.link_share_bytes_per_s,
            "engine_bytes_per_s": platform.engine.bytes_per_s,
            "setup_ns": platform.setup_ns,
            "host_chunk_bytes": platform.host_chunk_bytes,
        },
        "budget_bytes": budget_bytes,
        "iteration_ns": outcome.iteration_ns,
        "forward_ops": a.forward_ops,
        "ops": ops,
        "storages": [
            {"bytes": int(s[SIZE]), "birth": int(s[BIRTH]), "death": int(s[DEATH])}
            for s in a.storages[:-1]
        ],
        "tensors": [
            {
                "storage": int(storage),
                "wire_bytes": int(simulator.wire_bytes[t]),
                "swapped": bool(plan.state[t] == SWAP),
            }
            for t, storage in enumerate(a.tensors[:, STORAGE])
        ],
    }


def _operands(plan: Plan, op: int, target: int) -> list[list[int]]:
    """Storage and owner (-1: the resident one) of each operand that is read."""
    a = plan.arrays
    if target < 0:
        return [[s, -1] for s in a.reads[a.ops[op, READS] : a.ops[op + 1, READS]].tolist()]
    found = []
    for j in range(a.ops[op, REPLAYS], a.ops[op + 1, REPLAYS]):
        t = resident_source.py_func(a, target, plan.state, j)
        place = [a.tensors[t, STORAGE], -1] if t >= 0 else [a.replays[j, READ_STORAGE], target]
        found.append([int(x) for x in place])
    return found


def _events(
    graph: Graph, plan: Plan, simulator: Simulator, outcome: Outcome
) -> Iterator[dict[str, Any]]:
    platform, trace = graph.platform, graph.trace
    chunk = platform.host_chunk_bytes
    for kind, start, end, x, y, z in outcome.rows.tolist():
        if kind == Event.COMPUTE:
            yield {
                "event": "compute",
                "start": start,
                "end": end,
                "op": x,
                "replay_of": y,
                "operands": _operands(plan, x, y),
                "guarded": y >= 0 and trace.ops[graph.op_of[x]].random,
            }
        elif kind in (Event.ALLOCATE, Event.FREE):
            name = "allocate" if kind == Event.ALLOCATE else "free"
            yield {"event": name, "time": start, "storage": x, "owner": y, "bytes": z}
        elif kind in (Event.SWAP_OUT, Event.SWAP_IN):
            raw, wire = int(graph.tensor_bytes[x]), int(simulator.wire_bytes[x])
            bypass = platform.bypasses(raw, wire)
            on_link = raw if bypass else wire
            out = kind == Event.SWAP_OUT
            yield {
                "event": "swap_out" if out else "swap_in",
                "start": start,
                "end": end,
                "tensor": x,
                "raw_bytes": raw,
                "wire_bytes": on_link,
                "engine": not bypass,
                "host_bytes": host_bytes(on_link, chunk) * (1 if out else -1),
            }
        elif kind == Event.ISSUE:
            yield {"event": "issue", "time": start, "tensor": x, "op": y}
        else:
            yield {
                "event": "stall",
                "start": start,
                "end": end,
                "op": x,
                "tensor": y,
                "cause": _STALLS[z],
            }
