"""Control strings against the reference codec: even and odd blocks, headers, all tags."""

from __future__ import annotations

from typing import Any

import cocotb

from planezip.hdl.control import ControlBuilder, in_ring
from planezip.hdl.geometry import Geometry
from planezip.hdl.summary import PlaneClass
from planezip.model.format import Parameters, Tag
from planezip.model.reference import bits_of, encode_block, number_of, split_symbols
from tb.bench import Bench
from tb.blocks import random_block
from tb.marks import sizes
from tb.pass_two import classes
from tb.poke import GEOMETRIES, Poke
from tb.run import run_bench


@cocotb.test()
async def strings(dut: Any) -> None:
    """Blocks back to back or with bubbles; end and string in the stated cycles."""
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    g = Geometry(p, bench.arguments["beats"])
    poke = Poke(dut, ControlBuilder(p, g.beats_per_block))
    await poke.reset()
    cycle = 0  # with enable
    ends: dict[int, int] = {}
    strings: dict[int, int] = {}
    waiting: list[dict[str, Any]] = []  # what is `held` once the slot has its beat

    async def tick(take: bool = False, **values: Any) -> None:
        nonlocal cycle
        for _ in range(rng.choice((0, 0, 0, 1))):
            poke.set(enable=0, take=0, front=0)
            await poke.tick()
        poke.set(**{"enable": 1, "take": int(take), "front": 0, **values})
        await poke.settle()
        if cycle in ends:
            assert poke.get("end") == ends.pop(cycle)
        if cycle in strings:
            assert poke.get("string") == strings.pop(cycle)
        await poke.tick()
        cycle += 1
        if take:
            poke.set(**waiting.pop())

    for _ in range(bench.arguments["blocks"]):
        width = rng.randrange(len(p.symbol_bits))
        w = p.symbol_bits[width]
        symbols = split_symbols(random_block(rng, w, p), w)
        tag = rng.choice(sorted(p.encodings))
        odd, coded = rng.randrange(2), rng.randrange(6) > 0
        header = not odd and rng.randrange(2)
        size = rng.getrandbits(16)
        origin = rng.randrange(1 << g.pointer_bits)
        string = bits_of(size, 16) if header else []
        string += encode_block(tag, symbols, w, p).control if coded else []
        kinds = [PlaneClass(c) for c in classes(tag, symbols, w)]
        extra = kinds.pop(0) if tag == Tag.DBX else PlaneClass.ZERO
        kinds += [PlaneClass.ONE] * (w - len(kinds))
        for slot in range(g.beats_per_block):
            beat = symbols[slot * len(symbols) // g.beats_per_block :]
            after = kinds[(slot + 1) * g.planes(w) :]
            flags = [int(s != 0) for s in beat[: len(symbols) // g.beats_per_block]]
            place = {
                "slot": slot,
                "tag": tag if coded else Tag.RAW,
                "width": width,
                "coded": coded,
                "header": header,
                "odd": odd,
                "origin": origin,
            }
            front = {
                "front": 1,
                "place": place | {"origin": rng.getrandbits(g.pointer_bits)},
                "classes": {
                    "classes": kinds[slot * g.planes(w) : (slot + 1) * g.planes(w)],
                    "extra": extra,
                    "next_zero": bool(after) and after[0] == PlaneClass.ZERO,
                },
            }
            if waiting and rng.randrange(4) == 0:  # a bubble between two slots
                await tick(take=True)
                for _ in range(rng.choice((0, 2))):
                    await tick()
            await tick(take=bool(waiting), **front)
            number = number_of([b for s in beat for b in bits_of(s, w)])
            waiting.append(
                {
                    "held": place,
                    "beat": number & (1 << p.symbol_bits[-1]) - 1,
                    "flags": number_of([f for f in flags for _ in range(w // g.lane_bits)]),
                    "body_bytes": size,
                }
            )
        for _ in range(rng.choice((0, 0, 3))):
            await tick()
        end = origin - len(string) if odd else origin + len(string)
        ends[cycle + 1] = end % (1 << g.pointer_bits)
        strings[cycle + 5] = in_ring(string, origin, bool(odd), g.control_ring)
        if rng.randrange(3) == 0:
            await tick(take=True)
            for _ in range(rng.choice((0, 5))):
                await tick()
    if waiting:
        await tick(take=True)
    for _ in range(6):
        await tick()
    assert not ends
    assert not strings


@sizes(GEOMETRIES)
def test_control(parameters: Parameters, beats: int) -> None:
    arguments = {"parameters": parameters, "beats": beats, "blocks": 200}
    run_bench(ControlBuilder(parameters, beats), __name__, arguments=arguments)
