"""Timeline of an event log for Perfetto (Chrome trace format, https://ui.perfetto.dev)."""

from __future__ import annotations

from typing import Any

from planezip.sim.eventlog import EventLog

__all__ = ["timeline"]

_TRACKS = ("compute", "device to host", "host to device", "engine, out", "engine, in")


def timeline(log: EventLog) -> dict[str, Any]:
    """Tracks of compute, both links and the engine; counters of device memory and host
    pool; arrows from each swap-out to its prefetch and on to the first use."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": k, "name": "thread_name", "args": {"name": name}}
        for k, name in enumerate(_TRACKS)
    ]
    ops = log.header["ops"]
    live = host = 0
    first_use = _first_uses(log)
    pool = []
    for e in log.events:
        kind = e["event"]
        if kind == "compute":
            name = ops[e["op"]]["name"]
            replay = e["replay_of"] >= 0
            events.append(
                _slice(0, f"replay {name}" if replay else name, e, op=e["op"], replay=replay)
            )
        elif kind == "stall":
            events.append(_slice(0, f"stall ({e['cause']})", e, tensor=e["tensor"]))
        elif kind in ("allocate", "free"):
            live += e["bytes"] if kind == "allocate" else -e["bytes"]
            events.append(_counter("device memory", e["time"], live))
        elif kind in ("swap_out", "swap_in"):
            out = kind == "swap_out"
            label = f"tensor {e['tensor']}"
            events.append(
                _slice(1 if out else 2, label, e, raw=e["raw_bytes"], wire=e["wire_bytes"])
            )
            if e["engine"]:
                events.append(_slice(3 if out else 4, label, e))
            pool.append((e["start"] if out else e["end"], e["host_bytes"]))
            events.append(_flow("s" if out else "t", 1 if out else 2, e["tensor"], e["start"]))
            if not out and e["tensor"] in first_use:
                events.append(_flow("f", 0, e["tensor"], first_use[e["tensor"]]))
    for time, change in sorted(pool):
        host += change
        events.append(_counter("host pool", time, host))
    return {"displayTimeUnit": "ns", "traceEvents": events}


def _first_uses(log: EventLog) -> dict[int, int]:
    """Start of the first operator that reads a tensor after its prefetch has ended."""
    back = {e["tensor"]: e["end"] for e in log.events if e["event"] == "swap_in"}
    tensor_of = {t["storage"]: k for k, t in enumerate(log.header["tensors"])}
    found: dict[int, int] = {}
    for e in log.events:
        if e["event"] == "compute":
            for storage, owner in e["operands"]:
                t = tensor_of.get(storage, -1)
                if owner < 0 and t in back and e["start"] >= back[t]:
                    found.setdefault(t, e["start"])
    return found


def _slice(track: int, name: str, e: dict[str, Any], **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": 1,
        "tid": track,
        "name": name,
        "ts": e["start"] / 1000,
        "dur": (e["end"] - e["start"]) / 1000,
        "args": args,
    }


def _counter(name: str, time_ns: int, value: int) -> dict[str, Any]:
    return {"ph": "C", "pid": 1, "name": name, "ts": time_ns / 1000, "args": {"bytes": value}}


def _flow(phase: str, track: int, tensor: int, time_ns: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "ph": phase,
        "pid": 1,
        "tid": track,
        "cat": "swap",
        "name": "swap",
        "id": tensor,
        "ts": time_ns / 1000,
    }
    return {**row, "bp": "e"} if phase == "f" else row
