"""Independent check of an event log (invariants of a valid schedule).

Reads nothing but the log. Each finding names the invariant that is broken:

1 memory, 2 operands, 3 order, 4 queues, 5 transfers, 6 durations, 7 swap points,
8 allocations, 9 time, 10 bounds, 12 replays, 13 host pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planezip.sim.eventlog import EventLog

__all__ = ["ScheduleError", "Summary", "validate"]

Value = tuple[int, int]  # operator that wrote it (-1: before the iteration), storage
Place = tuple[int, int]  # storage, owner


class ScheduleError(ValueError):
    """A schedule breaks an invariant, ``invariant`` by number."""

    def __init__(self, invariant: int, text: str) -> None:
        self.invariant = invariant
        super().__init__(invariant, text)

    def __str__(self) -> str:
        return f"invariant {self.invariant}: {self.args[1]}"


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
    _transfers(log)
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


def _need(condition: bool, invariant: int, text: str) -> None:
    if not condition:
        raise ScheduleError(invariant, text)


def _compute_order(log: EventLog) -> list[dict[str, Any]]:
    """Invariants 3 and, for replays, 12."""
    ops = log.header["ops"]
    compute = [e for e in log.events if e["event"] == "compute"]
    originals = [e["op"] for e in compute if e["replay_of"] < 0]
    _need(originals == list(range(len(ops))), 3, "the operators do not run once each, in order")
    last = 0
    for e in compute:
        _need(e["start"] >= last, 3, f"operator {e['op']} starts while another runs")
        last = e["end"]
        _need(
            e["end"] - e["start"] == ops[e["op"]]["time_ns"], 3, f"duration of operator {e['op']}"
        )
        if e["replay_of"] >= 0:
            _need(e["op"] < log.header["forward_ops"], 12, f"replay of backward {e['op']}")
            _need(e["guarded"] or not ops[e["op"]]["random"], 12, f"unguarded random {e['op']}")
    return compute


def _timeline(log: EventLog) -> None:
    """Invariants 9 and 10: computing and named stalls fill the iteration."""
    tensors = len(log.header["tensors"])
    spans = [e for e in log.events if e["event"] in ("compute", "stall")]
    clock = 0
    for e in sorted(spans, key=lambda e: (e["start"], e["end"])):
        _need(e["start"] == clock, 9, f"the compute stream is idle or busy twice at {clock}")
        clock = e["end"]
        if e["event"] == "stall":
            named = e["cause"] in ("operand", "memory") and 0 <= e["tensor"] < tensors
            _need(named, 9, f"the stall at {e['start']} has no cause")
    _need(clock == log.header["iteration_ns"], 9, "the parts do not add up to the iteration")
    for name in ("swap_out", "swap_in"):
        busy = sum(e["end"] - e["start"] for e in log.events if e["event"] == name)
        _need(busy <= clock, 10, f"the {name} queue is busier than the iteration is long")


def _transfers(log: EventLog) -> None:
    """Invariants 4, 5 and 6."""
    header, platform = log.header, log.header["platform"]
    outs = {e["tensor"]: e for e in log.events if e["event"] == "swap_out"}
    ins = {e["tensor"]: e for e in log.events if e["event"] == "swap_in"}
    swapped = {t for t, tensor in enumerate(header["tensors"]) if tensor["swapped"]}
    for name, found in (("swap_out", outs), ("swap_in", ins)):
        events = [e for e in log.events if e["event"] == name]
        _need(set(found) == swapped and len(events) == len(found), 5, f"not one {name} per swap")
        for e in events:
            tensor = header["tensors"][e["tensor"]]
            raw = header["storages"][tensor["storage"]]["bytes"]
            wire = tensor["wire_bytes"] if e["engine"] else raw
            _need((e["raw_bytes"], e["wire_bytes"]) == (raw, wire), 5, f"bytes of {name} {e}")
            _need(
                e["end"] - e["start"] == platform["setup_ns"] + _transfer_ns(raw, wire, platform),
                6,
                f"duration of {name} of tensor {e['tensor']}",
            )
            if not e["engine"]:
                best = min(raw, tensor["wire_bytes"])
                _need(
                    _transfer_ns(raw, best, platform) == _transfer_ns(raw, raw, platform),
                    6,
                    f"tensor {e['tensor']} bypasses an engine that would be faster",
                )
    for t in swapped:
        _need(ins[t]["start"] >= outs[t]["end"], 7, f"tensor {t} comes back before it is out")
    _out_queue(log, outs)
    _in_queue(log, outs)


def _transfer_ns(raw: int, wire: int, platform: dict[str, Any]) -> int:
    """Equation 2 for one direction, rounded up."""

    def over(amount: int, rate: int) -> int:
        return (amount * 10**9 + rate - 1) // rate

    plain = over(raw, platform["link_bytes_per_s"])
    if wire >= raw or platform["engine_bytes_per_s"] == 0:
        return plain
    coded = max(over(wire, platform["link_bytes_per_s"]), over(raw, platform["engine_bytes_per_s"]))
    return min(plain, coded)


def _out_queue(log: EventLog, outs: dict[int, dict[str, Any]]) -> None:
    """Swap-outs start when their tensor is final or the one before has ended."""
    header = log.header
    ends = {e["op"]: e["end"] for e in log.events if e["event"] == "compute" and e["replay_of"] < 0}
    final = dict.fromkeys(range(len(header["storages"])), 0)
    for op in range(header["forward_ops"]):
        for s in header["ops"][op]["writes"]:
            final[s] = ends[op]
    free = ready = 0
    for e in outs.values():
        now = final[header["tensors"][e["tensor"]]["storage"]]
        _need(e["start"] >= now, 7, f"tensor {e['tensor']} is swapped out before its last write")
        _need(now >= ready, 4, "swap-outs are not in the order of production")
        _need(e["start"] == max(free, now), 4, f"unnamed gap before swap-out at {e['start']}")
        free, ready = e["end"], now


def _in_queue(log: EventLog, outs: dict[int, dict[str, Any]]) -> None:
    """Prefetches start in the order of issue; a gap has a cause: not issued, not yet
    out, or no memory until something was freed or an operator had its share."""
    issued = {e["tensor"]: e["time"] for e in log.events if e["event"] == "issue"}
    starts = [e for e in log.events if e["event"] == "swap_in"]
    _need(
        [e["tensor"] for e in starts] == list(issued), 4, "prefetches are not in the order issued"
    )
    causes = {e["time"] for e in log.events if e["event"] == "free"}
    causes |= {e["end"] for e in log.events if e["event"] == "stall" and e["cause"] == "memory"}
    free = 0
    for e in starts:
        t = e["tensor"]
        earliest = max(free, issued[t], outs[t]["end"])
        _need(e["start"] >= earliest, 4, f"prefetch of {t} starts too early")
        _need(
            e["start"] == earliest or e["start"] in causes,
            4,
            f"unnamed gap before the prefetch at {e['start']}",
        )
        free = e["end"]


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
            _need(e["time"] >= clock, 8, f"allocation at {e['time']} after {clock}")
            clock = e["time"]
            _need(place not in holds, 8, f"storage {place} is allocated twice")
            _need(e["bytes"] == storages[e["storage"]]["bytes"], 8, f"size of {place}")
            before = storages[e["storage"]]["birth"] < 0 and e["time"] == 0 and e["owner"] < 0
            holds[place] = (-1, e["storage"]) if before else None
            live += e["bytes"]
            peak = max(peak, live)
            _need(live <= header["budget_bytes"], 1, f"{live} bytes live at {clock}")
        elif kind == "free":
            place = (e["storage"], e["owner"])
            _need(e["time"] >= clock, 8, f"free at {e['time']} after {clock}")
            clock = e["time"]
            _need(place in holds, 8, f"storage {place} is freed but does not exist")
            t = tensor_of.get(e["storage"], -1)
            if e["owner"] < 0 and t in outs and t in host and ready.get(place, -1) < 0:
                _need(clock >= outs[t]["end"], 7, f"tensor {t} is freed during its swap-out")
                _need(clock >= last_forward[e["storage"]], 7, f"tensor {t} is freed before use")
            del holds[place]
            ready.pop(place, None)
            live -= e["bytes"]
        elif kind == "swap_out":
            host[e["tensor"]] = holds.get((header["tensors"][e["tensor"]]["storage"], -1))
        elif kind == "swap_in":
            place = (header["tensors"][e["tensor"]]["storage"], -1)
            _need(place in holds, 2, f"prefetch of tensor {e['tensor']} without memory")
            holds[place] = host[e["tensor"]]
            ready[place] = e["end"]
        elif kind == "compute":
            op, owner = e["op"], e["replay_of"]
            _check_operands(e, ops[op], expected[op], holds, ready)
            for s in ops[op]["writes"]:
                place = (s, -1) if owner < 0 else (s, owner)
                _need(place in holds, 2, f"operator {op} writes storage {s}, which is absent")
                holds[place] = written[op, s]
            if owner >= 0 and e is last_of[owner]:
                goal = header["tensors"][owner]["storage"]
                _need(holds.get((goal, owner)) == final[goal], 12, f"replay of {owner} is not it")
                _need((goal, -1) not in holds, 8, f"tensor {owner} is replayed twice")
                holds[goal, -1] = holds.pop((goal, owner))
    for s, owner in holds:
        stays = owner < 0 and storages[s]["death"] >= len(ops)
        _need(stays, 8, f"storage {s} of {owner} is left at the end")
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
        _need(place in holds, 2, f"operator {event['op']} reads storage {storage}: absent")
        _need(
            ready.get(place, 0) <= event["start"],
            2,
            f"operator {event['op']} reads storage {storage} before it has arrived",
        )
        found.append(holds[place])
    wanted = [expected[s] for s in op["reads"]]
    _need(
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
            _need(e["host_bytes"] == sign * size, 13, f"pool bytes of tensor {e['tensor']}")
            time = e["start"] if sign > 0 else e["end"]
            changes.append((time, sign, size, e["wire_bytes"]))
    held = used = peak = peak_used = 0
    for _, sign, size, wire in sorted(changes):
        held += sign * size
        used += sign * wire
        _need(held >= 0, 13, "the host pool is negative")
        if held > peak:
            peak, peak_used = held, used
    _need(held == 0, 13, "the host pool is not empty at the end")
    return peak, 1 - peak_used / peak if peak else 0.0
