"""Independent check of the transfers in an event log: invariants 4 to 7."""

from __future__ import annotations

from typing import Any

from planezip.sim.eventlog import EventLog
from planezip.sim.schedule_error import need

__all__ = ["check_transfers"]


def check_transfers(log: EventLog) -> None:
    """Invariants 4, 5 and 6."""
    header, platform = log.header, log.header["platform"]
    outs = {e["tensor"]: e for e in log.events if e["event"] == "swap_out"}
    ins = {e["tensor"]: e for e in log.events if e["event"] == "swap_in"}
    swapped = {t for t, tensor in enumerate(header["tensors"]) if tensor["swapped"]}
    for name, found in (("swap_out", outs), ("swap_in", ins)):
        events = [e for e in log.events if e["event"] == name]
        need(set(found) == swapped and len(events) == len(found), 5, f"not one {name} per swap")
        for e in events:
            tensor = header["tensors"][e["tensor"]]
            raw = header["storages"][tensor["storage"]]["bytes"]
            wire = tensor["wire_bytes"] if e["engine"] else raw
            need((e["raw_bytes"], e["wire_bytes"]) == (raw, wire), 5, f"bytes of {name} {e}")
            need(
                e["end"] - e["start"] == platform["setup_ns"] + _transfer_ns(raw, wire, platform),
                6,
                f"duration of {name} of tensor {e['tensor']}",
            )
            if not e["engine"]:
                best = min(raw, tensor["wire_bytes"])
                need(
                    _transfer_ns(raw, best, platform) == _transfer_ns(raw, raw, platform),
                    6,
                    f"tensor {e['tensor']} bypasses an engine that would be faster",
                )
    for t in swapped:
        need(ins[t]["start"] >= outs[t]["end"], 7, f"tensor {t} comes back before it is out")
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
        need(e["start"] >= now, 7, f"tensor {e['tensor']} is swapped out before its last write")
        need(now >= ready, 4, "swap-outs are not in the order of production")
        need(e["start"] == max(free, now), 4, f"unnamed gap before swap-out at {e['start']}")
        free, ready = e["end"], now


def _in_queue(log: EventLog, outs: dict[int, dict[str, Any]]) -> None:
    """Prefetches start in the order of issue; a gap has a cause: not issued, not yet
    out, or no memory until something was freed or an operator had its share."""
    issued = {e["tensor"]: e["time"] for e in log.events if e["event"] == "issue"}
    starts = [e for e in log.events if e["event"] == "swap_in"]
    need([e["tensor"] for e in starts] == list(issued), 4, "prefetches are not in the order issued")
    causes = {e["time"] for e in log.events if e["event"] == "free"}
    causes |= {e["end"] for e in log.events if e["event"] == "stall" and e["cause"] == "memory"}
    free = 0
    for e in starts:
        t = e["tensor"]
        earliest = max(free, issued[t], outs[t]["end"])
        need(e["start"] >= earliest, 4, f"prefetch of {t} starts too early")
        need(
            e["start"] == earliest or e["start"] in causes,
            4,
            f"unnamed gap before the prefetch at {e['start']}",
        )
        free = e["end"]
