"""Transposition against its software model: planes and symbol order mixed, back to back."""

from __future__ import annotations

from typing import Any

import cocotb

from planezip.hdl.geometry import Geometry
from planezip.hdl.transpose import Transpose, slots
from planezip.model.format import Parameters
from planezip.model.reference import bits_of, number_of
from tb.bench import Bench
from tb.marks import sizes
from tb.poke import GEOMETRIES, Poke
from tb.run import run_bench


@cocotb.test()
async def blocks(dut: Any) -> None:
    """Block k + 1 is written while block k is read; lanes as they are gathered."""
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    g = Geometry(p, bench.arguments["beats"])
    poke = Poke(dut, Transpose(p, g.beats_per_block))
    await poke.reset()
    before: tuple[list[int], int, int] | None = None
    for _ in range(bench.arguments["blocks"]):
        width, planes = rng.randrange(len(p.symbol_bits)), rng.randrange(2)
        w = p.symbol_bits[width]
        n = p.symbols(w)
        kept = sorted(rng.sample(range(n), rng.choice((0, rng.randrange(n + 1), n))))
        values = [rng.getrandbits(w) for _ in kept]
        group = w // g.lane_bits
        lanes = [
            bits_of(v, w)[k : k + g.lane_bits] for v in values for k in range(0, w, g.lane_bits)
        ]
        times = [at * g.beats_per_block // n for at in kept for _ in range(group)]
        for slot in range(g.beats_per_block):
            row = written = line = 0
            for k, lane in enumerate(lanes):
                if times[k] == slot:
                    at = k % g.lanes
                    row |= number_of(lane) << g.lane_bits * at
                    written |= 1 << at
                    line |= k // g.lanes << (g.beats_per_block.bit_length() - 1) * at
            poke.set(write=1, write_slot=slot, row=row, written=written, line=line)
            poke.set(width=width, planes=planes, start=slot == g.beats_per_block - 1)
            await _read(poke, before, slot)
            await poke.tick()
        before = slots(values, w, p, g.beats_per_block, bool(planes)), width, planes
    poke.set(write=0, start=0)
    for slot in range(g.beats_per_block):
        await _read(poke, before, slot)
        await poke.tick()


async def _read(poke: Poke, before: tuple[list[int], int, int] | None, slot: int) -> None:
    if before is not None:
        data, width, planes = before
        poke.set(read_slot=slot, read_width=width, read_planes=planes)
        await poke.settle()
        assert poke.get("data") == data[slot]


@sizes(GEOMETRIES)
def test_transpose(parameters: Parameters, beats: int) -> None:
    arguments = {"parameters": parameters, "beats": beats, "blocks": 150}
    run_bench(Transpose(parameters, beats), __name__, arguments=arguments)
