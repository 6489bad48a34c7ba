"""Independent check of an event log (invariants of a valid schedule).

Reads nothing but the log; ``python -m planezip.sim.validate FILE`` checks one that
``planezip plan --events`` wrote. Each finding names the invariant that is broken:

1 memory, 2 operands, 3 order, 4 queues, 5 transfers, 6 durations, 7 swap points,
8 allocations, 9 time, 10 bounds, 12 replays, 13 host pool.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

from planezip.sim.eventlog import EventLog, load_events
from planezip.sim.schedule_error import ScheduleError, need
from planezip.sim.validate_transfers import check_transfers

__all__ = ["Summary", "validate"]

Value = tuple[int, int]  # operator that wrote it (-1: before the iteration), storage
Place = tuple[int, int]  # storage, owner


@dataclass(frozen=True)
class Summary:
    """What the log adds up to; times in ns."""

    iteration_ns: int
    compute_ns: int
    replay_ns: int
    stall_ns: int
    peak_bytes: int
    peak_host_bytes: int
    host_fragmentation: float
    swapped_bytes: int
    wire_bytes: int


def validate(log: EventLog) -> Summary:
    """Check every invariant; raises ScheduleError at the first that is broken."""
    order = _compute_order(log)
    _timeline(log)
    check_transfers(log)
    peak = _contents_and_memory(log, order)
    host, fragmentation = _host_pool(log)
    swaps = [e for e in log.events if e["event"] == "swap_out"]
    compute = [e for e in log.events if e["event"] == "compute"]
    return Summary(
        iteration_ns=log.header["iteration_ns"],
        compute_ns=sum(e["end"] - e["start"] for e in compute if e["replay_of"] < 0),
        replay_ns=sum(e["end"] - e["start"] for e in compute if e["replay_of"] >= 0),
        stall_ns=sum(e["end"] - e["start"] for e in log.events if e["event"] == "stall"),
        peak_bytes=peak,
        peak_host_bytes=host,
        host_fragmentation=fragmentation,
        swapped_bytes=sum(e["raw_bytes"] for e in swaps),
        wire_bytes=sum(e["wire_bytes"] for e in swaps),
    )


def _compute_order(log: EventLog) -> list[dict[str, Any]]:
    """Invariants 3 and, for replays, 12."""
    ops = log.header["ops"]
    compute = [e for e in log.events if e["event"] == "compute"]
    originals = [e["op"] for e in compute if e["replay_of"] < 0]
    need(originals == list(range(len(ops))), 3, "the operators do not run once each, in order")
    last = 0
    for e in compute:
        need(e["start"] >= last, 3, f"operator {e['op']} starts while another runs")
        last = e["end"]
        need(e["end"] - e["start"] == ops[e["op"]]["time_ns"], 3, f"duration of operator {e['op']}")
        if e["replay_of"] >= 0:
            need(e["op"] < log.header["forward_ops"], 12, f"replay of backward {e['op']}")
            need(e["guarded"] or not ops[e["op"]]["random"], 12, f"unguarded random {e['op']}")
    return compute


def _timeline(log: EventLog) -> None:
    """Invariants 9 and 10: computing and named stalls fill the iteration."""
    tensors = len(log.header["tensors"])
    spans = [e for e in log.events if e["event"] in ("compute", "stall")]
    clock = 0
    for e in sorted(spans, key=lambda e: (e["start"], e["end"])):
        need(e["start"] == clock, 9, f"the compute stream is idle or busy twice at {clock}")
        clock = e["end"]
        if e["event"] == "stall":
            named = e["cause"] in ("operand", "memory") and 0 <= e["tensor"] < tensors
            need(named, 9, f"the stall at {e['start']} has no cause")
    need(clock == log.header["iteration_ns"], 9, "the parts do not add up to the iteration")
    for name in ("swap_out", "swap_in"):
        busy = sum(e["end"] - e["start"] for e in log.events if e["event"] == name)
        need(busy <= clock, 10, f"the {name} queue is busier than the iteration is long")


def _contents_and_memory(log: EventLog, compute: list[dict[str, Any]]) -> int:
    """Invariants 1, 2, 7 and 8; returns the peak.

    Follows what every buffer holds. A value is named after the operator that wrote it;
    an operator must find the values that it reads in the original order.
    """
    header = log.header
    ops, storages = header["ops"], header["storages"]
    expected, written = _values(header)
    holds: dict[Place, Value | None] = {}
    ready: dict[Place, int] = {}
    host: dict[int, Value | None] = {}
    outs = {e["tensor"]: e for e in log.events if e["event"] == "swap_out"}
    tensor_of = {t["storage"]: i for i, t in enumerate(header["tensors"])}
    last_forward = _last_forward_ends(header, compute)
    last_of = {e["replay_of"]: e for e in compute}
    final = {s: written[op, s] for op in range(header["forward_ops"]) for s in ops[op]["writes"]}
    live = peak = clock = 0
    for e in log.events:
        kind = e["event"]
        if kind == "allocate":
            place = (e["storage"], e["owner"])
            need(e["time"] >= clock, 8, f"allocation at {e['time']} after {clock}")
            clock = e["time"]
            need(place not in holds, 8, f"storage {place} is allocated twice")
            need(e["bytes"] == storages[e["storage"]]["bytes"], 8, f"size of {place}")
            before = storages[e["storage"]]["birth"] < 0 and e["time"] == 0 and e["owner"] < 0
            holds[place] = (-1, e["storage"]) if before else None
            live += e["bytes"]
            peak = max(peak, live)
            need(live <= header["budget_bytes"], 1, f"{live} bytes live at {clock}")
        elif kind == "free":
            place = (e["storage"], e["owner"])
            need(e["time"] >= clock, 8, f"free at {e['time']} after {clock}")
            clock = e["time"]
            need(place in holds, 8, f"storage {place} is freed but does not exist")
            t = tensor_of.get(e["storage"], -1)
            if e["owner"] < 0 and t in outs and t in host and ready.get(place, -1) < 0:
                need(clock >= outs[t]["end"], 7, f"tensor {t} is freed during its swap-out")
                need(clock >= last_forward[e["storage"]], 7, f"tensor {t} is freed before use")
            del holds[place]
            ready.pop(place, None)
            live -= e["bytes"]
        elif kind == "swap_out":
            host[e["tensor"]] = holds.get((header["tensors"][e["tensor"]]["storage"], -1))
        elif kind == "swap_in":
            place = (header["tensors"][e["tensor"]]["storage"], -1)
            need(place in holds, 2, f"prefetch of tensor {e['tensor']} without memory")
            holds[place] = host[e["tensor"]]
            ready[place] = e["end"]
        elif kind == "compute":
            op, owner = e["op"], e["replay_of"]
            _check_operands(e, ops[op], expected[op], holds, ready)
            for s in ops[op]["writes"]:
                place = (s, -1) if owner < 0 else (s, owner)
                need(place in holds, 2, f"operator {op} writes storage {s}, which is absent")
                holds[place] = written[op, s]
            if owner >= 0 and e is last_of[owner]:
                goal = header["tensors"][owner]["storage"]
                need(holds.get((goal, owner)) == final[goal], 12, f"replay of {owner} is not it")
                need((goal, -1) not in holds, 8, f"tensor {owner} is replayed twice")
                holds[goal, -1] = holds.pop((goal, owner))
    for s, owner in holds:
        stays = owner < 0 and storages[s]["death"] >= len(ops)
        need(stays, 8, f"storage {s} of {owner} is left at the end")
    return peak


def _values(
    header: dict[str, Any],
) -> tuple[list[dict[int, Value]], dict[tuple[int, int], Value]]:
    """For each operator the values it reads; for each operator and storage what it writes.

    The result of an operator that copies is the value that it copied.
    """
    current: dict[int, Value] = {}
    expected: list[dict[int, Value]] = []
    written: dict[tuple[int, int], Value] = {}
    for op, row in enumerate(header["ops"]):
        reads = {s: current.get(s, (-1, s)) for s in row["reads"]}
        expected.append(reads)
        for s in row["writes"]:
            written[op, s] = reads[row["reads"][0]] if row["copy"] else (op, s)
            current[s] = written[op, s]
    return expected, written


def _last_forward_ends(header: dict[str, Any], compute: list[dict[str, Any]]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for e in compute:
        if e["replay_of"] < 0 and e["op"] < header["forward_ops"]:
            for s in header["ops"][e["op"]]["reads"] + header["ops"][e["op"]]["writes"]:
                ends[s] = e["end"]
    return ends


def _check_operands(
    event: dict[str, Any],
    op: dict[str, Any],
    expected: dict[int, Value],
    holds: dict[Place, Value | None],
    ready: dict[Place, int],
) -> None:
    """Invariant 2: each operand is there, complete, with the value of the original run."""
    found = []
    for storage, owner in event["operands"]:
        place = (storage, owner)
        need(place in holds, 2, f"operator {event['op']} reads storage {storage}: absent")
        need(
            ready.get(place, 0) <= event["start"],
            2,
            f"operator {event['op']} reads storage {storage} before it has arrived",
        )
        found.append(holds[place])
    wanted = [expected[s] for s in op["reads"]]
    need(
        found == wanted,
        2 if event["replay_of"] < 0 else 12,
        f"operator {event['op']} reads {found}, not {wanted}",
    )


def _host_pool(log: EventLog) -> tuple[int, float]:
    """Invariant 13; returns peak bytes and the share of it that holds no data."""
    chunk = log.header["platform"]["host_chunk_bytes"]
    changes = []
    for e in log.events:
        if e["event"] in ("swap_out", "swap_in"):
            size = -(-e["wire_bytes"] // chunk) * chunk
            sign = 1 if e["event"] == "swap_out" else -1
            need(e["host_bytes"] == sign * size, 13, f"pool bytes of tensor {e['tensor']}")
            time = e["start"] if sign > 0 else e["end"]
            changes.append((time, sign, size, e["wire_bytes"]))
    held = used = peak = peak_used = 0
    for _, sign, size, wire in sorted(changes):
        held += sign * size
        used += sign * wire
        need(held >= 0, 13, "the host pool is negative")
        if held > peak:
            peak, peak_used = held, used
    need(held == 0, 13, "the host pool is not empty at the end")
    return peak, 1 - peak_used / peak if peak else 0.0


def main(arguments: list[str]) -> int:
    """Check one file; exit code 1 for a broken schedule, 2 for a file that is no log."""
    if len(arguments) != 1:
        print("usage: python -m planezip.sim.validate EVENTS.json", file=sys.stderr)
        return 2
    try:
        print(json.dumps(asdict(validate(load_events(arguments[0]))), indent=1))
    except ScheduleError as error:
        print(f"planezip: {arguments[0]}: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"planezip: {error}", file=sys.stderr)
        return 2
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        print(
            f"planezip: {arguments[0]} is damaged ({type(error).__name__} {error}); "
            "`planezip plan --events` writes an event log",
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
