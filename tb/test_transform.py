"""Transform of pass 2 against its software model: all tags, both widths, bubbles."""

from __future__ import annotations

from typing import Any

import cocotb

from planezip.hdl.geometry import Geometry
from planezip.hdl.transform import Transform, transformed
from planezip.model.format import Parameters
from planezip.model.reference import bits_of, number_of, split_symbols
from tb.bench import Bench
from tb.blocks import random_block
from tb.marks import sizes
from tb.poke import GEOMETRIES, Poke
from tb.run import run_bench


@cocotb.test()
async def blocks(dut: Any) -> None:
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    g = Geometry(p, bench.arguments["beats"])
    poke = Poke(dut, Transform(p, g.beats_per_block))
    await poke.reset()
    for _ in range(bench.arguments["blocks"]):
        width = rng.randrange(len(p.symbol_bits))
        w = p.symbol_bits[width]
        tag = rng.choice(sorted(p.encodings))
        block = random_block(rng, w, p)
        number = int.from_bytes(block, "little")
        beats = [
            number >> k & (1 << g.beat_bits) - 1 for k in range(0, 8 * len(block), g.beat_bits)
        ]
        lines: list[dict[int, int]] = [{} for _ in beats]
        tops: list[int] = []
        for k, beat in enumerate(beats):
            poke.set(load=1, step=0, beat=beat, beat_width=width)
            await poke.tick()
            for _ in range(rng.choice((0, 0, 1, 2))):
                poke.set(load=0, beat=rng.getrandbits(g.beat_bits), beat_width=0)
                await poke.tick()
            poke.set(load=0, step=1, tag=tag, width=width, first=k == 0)
            await poke.settle()
            assert poke.get("held") == beat
            symbols = split_symbols(beat.to_bytes(g.beat_bits // 8, "little"), w)
            group = w // g.lane_bits
            assert bits_of(poke.get("flags"), g.lanes)[::group] == [int(s != 0) for s in symbols]
            await poke.tick()
            poke.set(step=0)
            await poke.settle()
            _collect(poke, g, lines)
            tops += bits_of(poke.get("tops"), len(symbols))
        values, expected_tops = transformed(tag, split_symbols(block, w), w)
        lanes = [
            number_of(bits_of(v, w)[k : k + g.lane_bits])
            for v in values
            for k in range(0, w, g.lane_bits)
        ]
        got = [line.get(lane, 0) for line in lines for lane in range(g.lanes)]
        assert got == lanes + [0] * (len(got) - len(lanes)), (tag, w)
        assert not tops.pop(0)  # of the first symbol
        assert tops == expected_tops + [0] * (len(tops) - len(expected_tops))


def _collect(poke: Poke, g: Geometry, lines: list[dict[int, int]]) -> None:
    """Write the lanes to their lines, none twice."""
    row, written, places = poke.get("row"), poke.get("written"), poke.get("line")
    bits = g.beats_per_block.bit_length() - 1
    for lane in range(g.lanes):
        if written >> lane & 1:
            line = lines[places >> bits * lane & g.beats_per_block - 1]
            assert lane not in line
            line[lane] = row >> g.lane_bits * lane & (1 << g.lane_bits) - 1


@sizes(GEOMETRIES)
def test_transform(parameters: Parameters, beats: int) -> None:
    arguments = {"parameters": parameters, "beats": beats, "blocks": 150}
    run_bench(Transform(parameters, beats), __name__, arguments=arguments)
