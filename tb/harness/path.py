# amaranth: UnusedElaboratable=no
"""Build the harness around an engine, run tensors over the whole path, read what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from amaranth.hdl import Shape

from planezip.hdl.engine import Engine
from planezip.hdl.engine_types import Activity, completion, engine_descriptor
from planezip.hdl.types import beat
from planezip.model.format import DEFAULT
from tb.cached import cached_verilog
from tb.harness.driven import Built, Found, build_harness, driven, seed_of
from tb.harness.lanes import COMPRESSOR, DECOMPRESSOR, lane_verilog
from tb.harness.path_records import path_files
from tb.harness.rates import worst_window
from tb.harness.tensors import Tensor
from tb.run import simulator_version

__all__ = [
    "PATH_HARNESS",
    "PathResult",
    "PathStalls",
    "Port",
    "build_path",
    "engine_files",
    "path_plusargs",
    "path_result",
    "returned_by",
    "run_path",
]

PATH_HARNESS = "path.v"
_SHOWN = 8


@dataclass(frozen=True)
class PathStalls:
    """Pause patterns by number (tb/harness/files.v), of raw input, raw output and link."""

    input: int = 0
    output: int = 0
    link: int = 0


@dataclass(frozen=True)
class Port:
    """Cycles of a raw port, from its first beat to its last one.

    ``activity``: how many of them the engine spent on what; they add up to ``cycles``.
    ``late``: the most that any row of tensors took longer than its bound; ``worst``: cycles a
    block in the worst window of 32 blocks.
    """

    cycles: int
    blocks: int
    activity: dict[str, int]
    late: int
    worst: float


@dataclass(frozen=True)
class PathResult:
    """One run; ``problems`` is empty if all is well."""

    lanes: int
    tensors: int
    input: Port
    output: Port
    first_wire_cycles: int
    first_raw_cycles: int
    problems: tuple[str, ...]
    seed: int
    simulator: str
    simulator_version: str


def build_path(lanes: int, simulator: str = "verilator") -> Built:
    """Folder and sources of the harness around an engine of ``lanes`` lanes each way."""
    return build_harness(PATH_HARNESS, engine_files(lanes), simulator)


def engine_files(lanes: int) -> dict[str, str]:
    """Verilog of an engine, and the widths of its ports as the harness calls them."""
    name = "planezip_engine"
    parts = {f"planezip_{lane.name}": lane for lane in (COMPRESSOR, DECOMPRESSOR)}
    layout = completion(DEFAULT)
    cycles = layout["cycles"]
    mask = ((1 << layout.size) - 1) ^ (((1 << cycles.width) - 1) << cycles.offset)
    defines = {
        "DESCRIPTOR_BITS": engine_descriptor().size,
        "RAW_BITS": Shape.cast(beat(32 * lanes)).width,
        "WIRE_BITS": Shape.cast(beat(64 * lanes)).width,
        "COMPLETION_BITS": layout.size,
        "COMPLETION_MASK": f"{layout.size}'h{mask:x}",
        "CYCLES_AT": cycles.offset,
    }
    return {
        "defines.v": "".join(f"`define {name} {value}\n" for name, value in defines.items()),
        **{f"{module}.v": lane_verilog(lane, module) for module, lane in parts.items()},
        f"{name}.v": cached_verilog(Engine(lanes=lanes, instances=True), name),
    }


def run_path(
    lanes: int,
    built: Built,
    simulator: str,
    tensors: Sequence[Tensor],
    name: str,
    *,
    stalls: PathStalls | None = None,
    back: Sequence[Tensor] | None = None,
    trace_cycles: int = 0,
    reset_at: int = 0,
) -> PathResult:
    """Run ``tensors`` through a built engine.

    Parameters
    ----------
    name : str
        Of the run and its folder.
    stalls : PathStalls
    back : sequence of Tensor
        What the decompressor gets; by default what the compressor writes, over the link.
    trace_cycles : int
        Cycles to be written to trace.txt.
    reset_at : int
        Cycle in which the engine is reset; everything is then sent again. 0 for never.
    """
    plusargs = path_plusargs(stalls or PathStalls(), back is None, reset_at)
    plusargs["trace"] = trace_cycles
    returned = returned_by(tensors) if back is None else back
    files = path_files(lanes, tensors, returned)
    with driven(built, simulator, name, files, plusargs) as found:
        return path_result(lanes, found, tensors, returned, simulator)


def path_plusargs(stalls: PathStalls, linked: bool, reset_at: int) -> dict[str, int]:
    """Arguments of the harness for a run."""
    return {
        "seed": seed_of(),
        "stall_in": stalls.input,
        "stall_out": stalls.output,
        "stall_link": stalls.link,
        "link": int(linked),
        "reset_at": reset_at,
        "timeout": 20_000,
    }


def returned_by(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that the compressor sends over the link."""
    return [tensor for tensor in tensors if tensor.mode != "measure"]


def path_result(
    lanes: int,
    found: Found,
    tensors: Sequence[Tensor],
    returned: Sequence[Tensor],
    simulator: str,
) -> PathResult:
    """Verdict on a run of ``tensors`` one way and ``returned`` the other."""
    work, values = found.work, found.values
    problems = [" ".join(("wrong", *line))[:400] for line in found.wrong][:_SHOWN]
    if not values["finished"]:
        problems.append(f"nothing moves after cycle {values['cycles']}: {values}")
    elif values["wrong_values"] and not problems:
        problems.append(f"{values['wrong_values']} wrong values")
    ports = {
        side: _port(lanes, work / f"{side}_stamps.txt", side, values, sent)
        for side, sent in (
            ("in", [t for t in tensors if t.data]),
            ("out", [t for t in returned if t.data and t.mode != "measure"]),
        )
    }
    problems += _cycles(work / "cycles.txt", tensors, returned, lanes)
    for side, port in ports.items():
        if sum(port.activity.values()) != port.cycles:
            problems.append(f"{side}: activities do not add up: {port}")
    return PathResult(
        lanes,
        len(tensors),
        ports["in"],
        ports["out"],
        values["first_wire"] - values["first_in"],
        values["first_out"] - values["first_in"],
        tuple(problems),
        seed_of(),
        simulator,
        simulator_version(simulator),
    )


def _port(
    lanes: int, path: Path, side: str, values: Mapping[str, int], tensors: Sequence[Tensor]
) -> Port:
    """Rates of a raw port; ``late`` over all rows of tensors, bounds as in :func:`_bound`."""
    blocks = np.array([tensor.blocks for tensor in tensors], np.int64)
    activity = {kind.name.lower(): values[f"{side}_activity_{kind.value}"] for kind in Activity}
    late, worst = 0, 0.0
    stamps = np.loadtxt(path, np.int64, ndmin=2, delimiter=" ") if path.stat().st_size else None
    if stamps is not None and len(tensors):
        starts = stamps[stamps[:, 1] & 1 == 1, 0]
        if len(starts) == blocks.sum():
            worst = worst_window(starts)
            firsts = starts[np.cumsum(blocks) - blocks]
            took = np.diff(firsts)
            over = 0
            for cycles, count in zip(took.tolist(), blocks[:-1].tolist(), strict=True):
                over = max(0, over + cycles - _bound(lanes, count))
                late = max(late, over)
    first, last = values[f"first_{side}"], values.get(f"last_{side}", 0)
    return Port(last - first + 1 if last else 0, int(blocks.sum()), activity, late, worst)


def _cycles(path: Path, there: Sequence[Tensor], back: Sequence[Tensor], lanes: int) -> list[str]:
    """Completions that say less cycles than the tensor's beats took."""
    lines = [line.split() for line in path.read_text().splitlines()]
    found = []
    for way, tensors in (("0", there), ("1", back)):
        told = [int(cycles) for side, cycles in lines if side == way]
        told = told[-len(tensors) :]  # those after a reset
        for tensor, cycles in zip(tensors, told, strict=False):
            if not -(-len(tensor.data) // (32 * lanes)) < cycles < 1 << 30:
                found.append(f"{cycles} cycles for a tensor of {len(tensor.data)} bytes")
    return found[:_SHOWN]


def _bound(lanes: int, blocks: int) -> int:
    """Cycles of a tensor: its share of the lanes, and one chunk's for its end."""
    return -(-4 * blocks // lanes) + 128 // lanes
