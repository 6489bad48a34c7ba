# amaranth: UnusedElaboratable=no
"""Build the bulk harness around a lane, run tensors through it, read what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from amaranth.hdl import Shape

from tb.harness.driven import Built, Found, build_harness, driven, seed_of
from tb.harness.expected import RAW_BYTES, Records
from tb.harness.lanes import Lane, lane_verilog
from tb.harness.rates import Rates, rates_of
from tb.harness.tensors import Tensor
from tb.harness.where import raw_place, wire_place
from tb.run import simulator_version

__all__ = [
    "HARNESS",
    "Result",
    "Stalls",
    "build_lane",
    "judged",
    "lane_files",
    "lane_plusargs",
    "run_lane",
]

HARNESS = "harness.v"

_HEXDIGITS_SHOWN = 160


@dataclass(frozen=True)
class Stalls:
    """Pause patterns by number (tb/harness/harness.v): 0 never to 4."""

    input: int = 0
    output: int = 0


_NONE = Stalls()


@dataclass(frozen=True)
class Result:
    """One run. Cycles are counted on the raw side, from the first beat to the last one.

    ``cycles_per_block_max`` is that of the worst window of 32 blocks; ``latency_cycles``
    runs from the first beat accepted to the first one valid at the output. Both only
    mean something without stalls.
    """

    blocks: int
    cycles: int
    cycles_per_block_mean: float
    cycles_per_block_max: float
    latency_cycles: int
    mismatches: int
    problems: tuple[str, ...]
    seed: int
    simulator: str
    simulator_version: str
    errors_injected: int
    errors_agreed: int


def build_lane(lane: Lane, simulator: str = "verilator") -> Built:
    """Folder and sources of the harness around ``lane``."""
    files = lane_files(lane, lane_verilog(lane), lane.make(lane.parameters))
    return build_harness(HARNESS, files, simulator)


def lane_files(
    lane: Lane, verilog: str, component: Any, select: Mapping[str, int] | None = None
) -> dict[str, str]:
    """Verilog of a lane, and a module that gives its ports the names that the harness uses.

    ``select``: further inputs of the lane, with their bits, which plusargs of the same name set.
    """
    ports = {"descriptor": "descriptor", "in": lane.input, "out": lane.output, "report": "report"}
    widths = {
        name: Shape.cast(getattr(component, port).payload.shape()).width
        for name, port in ports.items()
    }
    lines = [f"`define {name.upper()}_BITS {width}" for name, width in widths.items()]
    lines += ["module adapter (", "    input wire clk, rst,"]
    for name in ports:
        there, back = ("input", "output") if name in ("descriptor", "in") else ("output", "input")
        lines += [
            f"    {there} wire {name}_valid,",
            f"    {back} wire {name}_ready,",
            f"    {there} wire [{widths[name] - 1}:0] {name}_payload,",
        ]
    lines[-1] = lines[-1].rstrip(",") + ");"
    for name, bits in (select or {}).items():
        lines += [f"  reg [{bits - 1}:0] {name};"]
        lines += [f'  initial if (!$value$plusargs("{name}=%d", {name})) {name} = 0;']
    lines += [f"  {lane.name} lane (", "    .clk(clk), .rst(rst),"]
    lines += [f"    .{name}({name})," for name in select or {}]
    for name, port in ports.items():
        lines += [f"    .{port}__{part}({name}_{part})," for part in ("valid", "ready", "payload")]
    lines[-1] = lines[-1].rstrip(",") + ");"
    return {"lane.v": verilog, "adapter.v": "\n".join([*lines, "endmodule", ""])}


def run_lane(
    lane: Lane,
    built: Built,
    simulator: str,
    tensors: Sequence[Tensor],
    name: str,
    *,
    stalls: Stalls = _NONE,
    reset_at: int = 0,
) -> Result:
    """Run ``tensors`` through a built lane.

    Parameters
    ----------
    name : str
        Of the run and its folder.
    stalls : Stalls
    reset_at : int
        Cycle in which the lane is reset; all tensors are then sent again. 0 for never.

    Returns
    -------
    Result
        ``problems`` is empty if the lane did what the golden codec does.
    """
    records = lane.records(tensors)
    plusargs = lane_plusargs(stalls, reset_at)
    with driven(built, simulator, name, records.files(), plusargs) as found:
        return judged(lane, found, tensors, records, simulator, stalls, reset_at)


def lane_plusargs(stalls: Stalls, reset_at: int) -> dict[str, int]:
    """Arguments of the harness for a run."""
    return {
        "seed": seed_of(),
        "stall_in": stalls.input,
        "stall_out": stalls.output,
        "reset_at": reset_at,
        "timeout": 20_000,
    }


def judged(
    lane: Lane,
    found: Found,
    tensors: Sequence[Tensor],
    records: Records,
    simulator: str,
    stalls: Stalls,
    reset_at: int,
) -> Result:
    """Verdict on a run of ``tensors``, whose files are ``records``."""
    timed = not reset_at
    full_rate = timed and stalls == _NONE
    values, wrong, seed = found.values, found.wrong, seed_of()
    problems = [_explain(line, seed, lane, tensors) for line in wrong]
    mismatches = values["out_wrong"] + values["reports_wrong"]
    if not values["finished"]:
        problems.append(
            f"too much is wrong: stopped after cycle {values['cycles']} (seed {seed})"
            if mismatches > 1000
            else f"nothing moves after cycle {values['cycles']}: {values['out_taken']} output"
            f" beats and {values['reports_taken']} reports came (seed {seed})"
        )
    blocks = sum(tensor.blocks for tensor in tensors)
    rates = Rates()
    if timed:
        stamps = found.work / f"{lane.raw_side}_stamps.txt"
        rates = rates_of(lane, stamps, tensors, records.arrivals, values["first_in"])
    if full_rate:
        problems += rates.slow
    return Result(
        blocks=blocks,
        cycles=rates.cycles,
        cycles_per_block_mean=rates.mean,
        cycles_per_block_max=rates.worst,
        latency_cycles=values["first_out"] - values["first_in"] if timed else 0,
        mismatches=mismatches + (not values["finished"]),
        problems=tuple(problems),
        seed=seed,
        simulator=simulator,
        simulator_version=simulator_version(simulator),
        errors_injected=len(records.faulty),
        errors_agreed=len(set(records.faulty) - _disagreed(lane, tensors, wrong, values)),
    )


def _disagreed(
    lane: Lane,
    tensors: Sequence[Tensor],
    wrong: Sequence[Sequence[str]],
    values: Mapping[str, int],
) -> set[int]:
    """Numbers of the tensors with a beat or report that is wrong or missing."""
    found: set[int] = set()
    for port, per_tensor in (
        ("out", [0 if t.mode == "measure" else -(-len(t.data) // RAW_BYTES) for t in tensors]),
        ("report", [len(t.chunks) for t in tensors]),
    ):
        ends = np.cumsum(per_tensor)
        at = [int(line[2]) for line in wrong if line[0] == port]
        found |= set(np.searchsorted(ends, at, side="right").tolist())
        missing = values["out_taken" if port == "out" else "reports_taken"]
        found |= set(range(int(np.searchsorted(ends, missing, side="right")), len(tensors)))
    return found


def _explain(line: Sequence[str], seed: int, lane: Lane, tensors: Sequence[Tensor]) -> str:
    port, kind, number, *values = line
    where = f"{port} beat {number} (seed {seed})"
    if kind == "value":
        expected, actual = (bin(int(v, 16))[2:] if _known(v) else v for v in values)
        width = max(len(expected), len(actual))
        expected, actual = (v.rjust(width, "0")[::-1] for v in (expected, actual))
        first = next(k for k in range(width) if expected[k] != actual[k])
        place = ""
        if port == "out":
            place = (wire_place if lane.output == "wire" else raw_place)(
                tensors, int(number), first
            )
        return (
            f"{where}{place and f', {place}'}: wrong from bit {first} on; bit 0 first:\n"
            f"  expected {expected}\n  actual   {actual}\n           {' ' * first}^"
        )
    return (
        where
        + {
            "unstable": ": valid or payload changed before ready rose",
            "x": ": valid is X",
            "extra": f": one too many: {values[0][:_HEXDIGITS_SHOWN] if values else ''}",
        }[kind]
    )


def _known(text: str) -> bool:
    return not set(text.lower()) - set("0123456789abcdef")
