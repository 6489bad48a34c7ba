"""Where the engine keeps data: its memories and their sizes.

``python -m planezip.hdl.buffers`` prints the table of docs/hardware.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from planezip.hdl.chunk_buffer import ring_blocks
from planezip.hdl.decoder_types import BLOCKS_IN_FLIGHT, DecoderGeometry
from planezip.hdl.engine_types import EngineGeometry
from planezip.model.format import DEFAULT, Parameters

__all__ = ["Buffer", "buffers", "table"]


@dataclass(frozen=True)
class Buffer:
    """A memory of each lane: bytes of data, without flags."""

    direction: str
    name: str
    holds: str
    bytes: int


def buffers(lanes: int, parameters: Parameters = DEFAULT) -> list[Buffer]:
    """The memories of one lane of an engine of ``lanes`` lanes, in the order of the data."""
    g, decoder = EngineGeometry(parameters, lanes), DecoderGeometry(parameters)
    ring = ring_blocks(parameters) * g.block
    return [
        Buffer("compress", "intake", "raw rows that the lane has not taken", g.raw_rows * g.raw),
        Buffer("compress", "chunk ring (lane)", "raw blocks until they are coded", ring),
        Buffer("compress", "outlet", "coded rows that wait for their turn", g.wire_rows * g.wire),
        Buffer("decompress", "intake", "coded rows for the lane", g.intake_rows * g.wire),
        Buffer(
            "decompress",
            "chunk ring (lane)",
            "bodies of two chunks",
            decoder.rows * decoder.wire // 8,
        ),
        Buffer(
            "decompress",
            "output (lane)",
            "blocks until their faults are known",
            BLOCKS_IN_FLIGHT * g.block,
        ),
        Buffer("decompress", "outlet", "raw rows that wait for their turn", g.raw_rows * g.raw),
    ]


def table() -> str:
    """All memories, bytes per lane, and the sum of both directions of an engine."""
    numbers = (1, 2, 4)
    columns = [buffers(lanes) for lanes in numbers]
    heads = " | ".join(f"L = {lanes}" for lanes in numbers)
    lines = [f"| direction | buffer | holds | {heads} |", "|---|---|---|" + "---|" * len(numbers)]
    for row in zip(*columns, strict=True):
        first = row[0]
        sizes = " | ".join(f"{buffer.bytes:,}" for buffer in row)
        lines.append(f"| {first.direction} | {first.name} | {first.holds} | {sizes} |")
    sums = [
        lanes * sum(buffer.bytes for buffer in column)
        for lanes, column in zip(numbers, columns, strict=True)
    ]
    total = " | ".join(f"**{size:,}**" for size in sums)
    lines.append(f"| both | all lanes together | | {total} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
