# amaranth: UnusedElaboratable=no
"""Deltas of neighbouring symbols against the software model, every width in one run."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.delta import Delta, deltas, symbol_beat, symbol_deltas
from planezip.model.format import DEFAULT, Parameters
from planezip.model.reference import split_symbols
from tb.bench import Bench
from tb.blocks import random_block
from tb.marks import sampled, sizes
from tb.pauses import PATTERNS
from tb.run import run_bench

GEOMETRIES = [
    (DEFAULT, 4),
    (Parameters(64, (4, 8, 16), 2), 4),
    (Parameters(16, (4, 8), 2), 1),
    (Parameters(8, (8,), 2), 2),
]


def block_deltas(block: bytes, width: int, p: Parameters, beats: int) -> list[dict[str, int]]:
    """Beats of deltas of one block."""
    w, narrow = p.symbol_bits[width], p.symbol_bits[0]
    size = p.block_bits // beats
    values = tops = 0
    for k, delta in enumerate(symbol_deltas(split_symbols(block, w), w)):
        values |= (delta & ((1 << w) - 1)) << (k * w)
        tops |= (delta >> w) << ((k + 1) * w // narrow - 1)
    return [
        {
            "data": values >> (k * size) & ((1 << size) - 1),
            "tops": tops >> (k * size // narrow) & ((1 << (size // narrow)) - 1),
            "width": width,
            "first": int(k == 0),
            "last": int(k == beats - 1),
        }
        for k in range(beats)
    ]


@cocotb.test()
async def neighbours(dut: Any) -> None:
    bench = Bench(dut)
    p, beats = bench.arguments["parameters"], bench.arguments["beats"]
    source = bench.source("beats", symbol_beat(p, beats), bench.arguments["pause"])
    output = bench.sink("deltas", deltas(p, beats), bench.arguments["pause"])
    await bench.reset()
    size = p.block_bits // beats // 8
    for number in range(100):
        width = bench.rng.randrange(len(p.symbol_bits))
        block = random_block(bench.rng, p.symbol_bits[width], p)
        source.extend(
            {
                "data": int.from_bytes(block[k * size : (k + 1) * size], "little"),
                "width": width,
                "first": int(k == 0),
                "last": int(k == beats - 1),
            }
            for k in range(beats)
        )
        output.extend(block_deltas(block, width, p, beats), f"block {number}")
    await bench.finish()
    if bench.arguments["pause"] == "never":
        assert bench.monitor_of(output).times == [t + 1 for t in source.times]


@pytest.mark.parametrize("pause", sampled(PATTERNS, "random"))
@sizes(GEOMETRIES)
def test_delta(parameters: Parameters, beats: int, pause: str) -> None:
    arguments = {"parameters": parameters, "beats": beats, "pause": pause}
    assert run_bench(Delta(parameters, beats), __name__, arguments=arguments) == 1


@pytest.mark.parametrize("beats", [3, 64])
def test_beats_must_fit(beats: int) -> None:
    with pytest.raises(ValueError, match=f"beats_per_block must cut .*, not {beats}"):
        Delta(DEFAULT, beats)
