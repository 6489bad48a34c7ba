"""The lanes that the bulk harness drives, and what the golden codec expects of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import LATENCY_CYCLES, DecompressorLane
from planezip.model.format import DEFAULT, Parameters
from tb.harness.expected import Records, compressor_records, decompressor_records
from tb.harness.pair import LanePair, pair_records
from tb.harness.tensors import Tensor

__all__ = ["LANES", "Lane"]


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


LANES = (
    Lane("compressor", CompressorLane, "raw", "wire", "in", compressor_records),
    Lane(
        "decompressor",
        DecompressorLane,
        "wire",
        "raw",
        "out",
        decompressor_records,
        latency_cycles=LATENCY_CYCLES,
    ),
    Lane("pair", LanePair, "raw", "decoded", "in", pair_records, simulators=("verilator",)),
)
