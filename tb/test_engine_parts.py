"""Parts of the engine that move bytes: rows and packer, against their software models."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.engine_types import chunk_order
from planezip.hdl.merger import Packer, packed
from planezip.hdl.rows import BeatsToRows, RowsToBeats, beats_of_rows
from planezip.hdl.types import beat
from tb.bench import Bench
from tb.marks import sampled
from tb.rows import rows_of
from tb.run import run_bench

LANES = (1, 2, 4)
PAUSES = ("never", "random", "cyclic")


@cocotb.test()
async def rows_become_beats(dut: Any) -> None:
    """Every beat of every row, an empty row too."""
    for pause in PAUSES:
        bench = Bench(dut)
        size, lanes = bench.arguments["size"], bench.arguments["lanes"]
        source = bench.source("rows", beat(lanes * size), pause)
        beats = bench.sink("beats", beat(size), pause)
        await bench.reset()
        rng = bench.rng
        chunks = [rng.randbytes(rng.choice((0, 1, size, rng.randrange(600)))) for _ in range(60)]
        rows = [row for chunk in chunks for row in rows_of(rng, chunk, lanes * size, noise=True)]
        source.extend(rows)
        beats.extend(beats_of_rows(rows, size))
        await bench.finish()


@pytest.mark.parametrize("lanes", sampled(LANES, 2))
def test_rows_to_beats(lanes: int) -> None:
    arguments = {"size": 8, "lanes": lanes}
    component = RowsToBeats(8, lanes, 5)
    run_bench(component, __name__, arguments=arguments, testcase="rows_become_beats")


@cocotb.test()
async def beats_become_rows(dut: Any) -> None:
    """Chunks of beats, cut to rows."""
    for pause in PAUSES:
        bench = Bench(dut)
        size, lanes = bench.arguments["size"], bench.arguments["lanes"]
        source = bench.source("beats", beat(size), pause)
        rows = bench.sink("rows", beat(lanes * size), pause)
        await bench.reset()
        rng = bench.rng
        for _ in range(60):
            chunk = rng.randbytes(rng.choice((1, size, lanes * size, rng.randint(1, 600))))
            source.extend(rows_of(rng, chunk, size))
            rows.extend(rows_of(rng, chunk, lanes * size))
        await bench.finish()


@pytest.mark.parametrize("lanes", sampled(LANES, 2))
def test_beats_to_rows(lanes: int) -> None:
    arguments = {"size": 8, "lanes": lanes}
    component = BeatsToRows(8, lanes, 5)
    run_bench(component, __name__, arguments=arguments, testcase="beats_become_rows")


@cocotb.test()
async def chunks_are_packed(dut: Any) -> None:
    """Tensors of chunks of any length, from lanes in any order."""
    for pause in PAUSES:
        bench = Bench(dut)
        size, lanes = bench.arguments["size"], bench.arguments["lanes"]
        orders = bench.source("merge", chunk_order(lanes), pause)
        rows = [bench.source(f"rows__{k}", beat(size), pause) for k in range(lanes)]
        output = bench.sink("output", beat(size), pause)
        await bench.reset()
        rng = bench.rng
        for _ in range(50):
            lengths = (1, size, size - 1, size + 1, rng.randint(1, 5 * size))
            count = rng.randint(1, 5)
            chunks = [rng.randbytes(rng.choice(lengths)) for _ in range(count)]
            for k, chunk in enumerate(chunks):
                lane = rng.randrange(lanes)
                orders.send({"lane": lane, "last": int(k == count - 1)})
                rows[lane].extend(rows_of(rng, chunk, size))
            output.extend(packed(chunks, size))
        await bench.finish()


@pytest.mark.parametrize("lanes", sampled(LANES, 2))
def test_packer(lanes: int) -> None:
    arguments = {"size": 16, "lanes": lanes}
    run_bench(Packer(16, lanes), __name__, arguments=arguments, testcase="chunks_are_packed")
