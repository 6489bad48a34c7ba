"""Compaction of beats and of blocks against the software model."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from planezip.hdl.compaction import Append, BeatCompaction, nonzero_symbols, row
from planezip.model.format import DEFAULT, Parameters

from tb.bench import Bench
from tb.blocks import random_block
from tb.pauses import PATTERNS
from tb.run import run_bench

GEOMETRIES = [
    (DEFAULT, 4),
    (Parameters(16, (4, 8), 2), 4),
    (Parameters(16, (4, 8), 2), 1),
    (Parameters(8, (8,), 2), 2),
]
IDS = [f"{p.symbols_per_block}x{'-'.join(map(str, p.symbol_bits))}-{b}" for p, b in GEOMETRIES]


def _beats(block: bytes, count: int) -> list[bytes]:
    size = len(block) // count
    return [block[k : k + size] for k in range(0, len(block), size)]


def _rows(block: bytes, w: int, narrow: int, beats: int) -> list[dict[str, int]]:
    """Rows of one block that :class:`Append` gives."""
    symbols = sum(any(_symbol(block, w, k)) for k in range(8 * len(block) // w))
    left = symbols * w // narrow
    size = 8 * len(block) // narrow // beats
    rows = []
    for part in _beats(nonzero_symbols(block, w), beats):
        count = min(left, size)
        left -= count
        rows.append({"data": int.from_bytes(part, "little"), "parts": count, "last": left == 0})
        if not left:
            break
    return rows


def _symbol(block: bytes, w: int, k: int) -> list[int]:
    number = int.from_bytes(block, "little") >> (k * w)
    return [number >> b & 1 for b in range(w)]


@cocotb.test()
async def beat_by_beat(dut: Any) -> None:
    bench = Bench(dut)
    p, count = bench.arguments["parameters"], bench.arguments["beats"]
    component = BeatCompaction(p, count)
    source = bench.source("beats", component.beats.payload.shape(), bench.arguments["pauses"][0])
    output = bench.sink("rows", row(p, count), bench.arguments["pauses"][1])
    await bench.reset()
    for _ in range(bench.arguments["blocks"]):
        width = bench.rng.randrange(len(p.symbol_bits))
        w = p.symbol_bits[width]
        for k, beat in enumerate(_beats(random_block(bench.rng, w, p), count)):
            number = int.from_bytes(beat, "little")
            source.extend([{"data": number, "width": width, "last": k == count - 1}])
            (made,) = _rows(beat, w, p.symbol_bits[0], 1)
            output.expect({**made, "last": k == count - 1})
    await bench.finish()
    if bench.arguments["pauses"] == ["never", "never"]:
        assert bench.monitor_of(output).times == [t + 1 for t in source.times]


@cocotb.test()
async def block_by_block(dut: Any) -> None:
    bench = Bench(dut)
    p, count = bench.arguments["parameters"], bench.arguments["beats"]
    source = bench.source("beats", row(p, count), bench.arguments["pauses"][0])
    output = bench.sink("rows", row(p, count), bench.arguments["pauses"][1])
    await bench.reset()
    for _ in range(bench.arguments["blocks"]):
        w = bench.rng.choice(p.symbol_bits)
        block = random_block(bench.rng, w, p)
        for k, beat in enumerate(_beats(block, count)):
            (made,) = _rows(beat, w, p.symbol_bits[0], 1)
            source.extend([{**made, "last": k == count - 1}])
        output.extend(_rows(block, w, p.symbol_bits[0], count))
    await bench.finish()
    if bench.arguments["pauses"] == ["never", "never"]:
        assert source.times == list(range(source.times[0], source.times[0] + len(source.times)))


@pytest.mark.parametrize("pause", PATTERNS)
@pytest.mark.parametrize(("parameters", "beats"), GEOMETRIES, ids=IDS)
@pytest.mark.parametrize(
    ("component", "testcase"), [(BeatCompaction, "beat_by_beat"), (Append, "block_by_block")]
)
def test_compaction(
    component: Any, testcase: str, parameters: Parameters, beats: int, pause: str
) -> None:
    arguments = {"parameters": parameters, "beats": beats, "blocks": 60, "pauses": [pause, pause]}
    assert (
        run_bench(component(parameters, beats), __name__, arguments=arguments, testcase=testcase)
        == 1
    )
