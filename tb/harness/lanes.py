# amaranth: UnusedElaboratable=no
"""The lanes that the bulk harness drives, and what the golden codec expects of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import LATENCY_CYCLES, DecompressorLane
from planezip.model.format import DEFAULT, Parameters
from tb.cached import cached_verilog
from tb.harness.expected import Records, compressor_records, decompressor_records
from tb.harness.pair import LanePair, pair_records
from tb.harness.tensors import Tensor

__all__ = ["COMPRESSOR", "DECOMPRESSOR", "LANES", "Lane", "lane_verilog"]


@dataclass(frozen=True)
class Lane:
    """A component with the ports of a lane (docs/architecture.md).

    Attributes
    ----------
    name : str
        Of the component in the report, and of its Verilog module; no other component has it.
    make : callable
        The component, from :class:`Parameters`.
    input, output : str
        Names of the two data ports.
    raw_side : str
        "in" or "out": the port of the raw tensor, on which rates are counted.
    records : callable
        Contents of the harness' files, from tensors.
    cycles_per_block : int
        That a block may take at most, without stalls.
    latency_cycles : int
        From the arrival of a chunk (tb/harness/arrival.py) to its first block, at most.
    simulators : tuple of str
        That run it.
    parts : tuple of Lane
        Of whose Verilog modules it has instances.
    """

    name: str
    make: Callable[[Parameters], Any]
    input: str
    output: str
    raw_side: str
    records: Callable[[Sequence[Tensor]], Records]
    cycles_per_block: int = 4
    latency_cycles: int = 0
    simulators: tuple[str, ...] = ("verilator", "icarus")
    parameters: Parameters = DEFAULT
    parts: tuple[Lane, ...] = ()


COMPRESSOR = Lane("compressor", CompressorLane, "raw", "wire", "in", compressor_records)
DECOMPRESSOR = Lane(
    "decompressor",
    DecompressorLane,
    "wire",
    "raw",
    "out",
    decompressor_records,
    latency_cycles=LATENCY_CYCLES,
)
_PARTS = (COMPRESSOR, DECOMPRESSOR)
_PAIR = Lane(
    "pair", LanePair, "raw", "decoded", "in", pair_records, simulators=("verilator",), parts=_PARTS
)
LANES = (COMPRESSOR, DECOMPRESSOR, _PAIR)


def lane_verilog(lane: Lane, module: str = "") -> str:
    """The lane as one module, called ``module`` or as the lane is; those of its parts follow."""
    text = cached_verilog(lane.make(lane.parameters), lane.name)
    named = text.replace(f"module {lane.name}(", f"module {module or lane.name}(", 1)
    return "\n".join([named, *map(lane_verilog, lane.parts)])
