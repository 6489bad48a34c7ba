"""Places of units and the payload packer against their software models."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import PayloadPacker, PayloadPlaces, packed, places
from planezip.model.format import Parameters, log2_ceil
from tb.bench import Bench
from tb.marks import sizes
from tb.poke import GEOMETRIES, Poke
from tb.run import run_bench


@cocotb.test()
async def packer(dut: Any) -> None:
    bench = Bench(dut)
    rng, g = bench.rng, Geometry(bench.arguments["parameters"], bench.arguments["beats"])
    poke = Poke(dut, PayloadPacker(g.parameters, g.beats_per_block))
    await poke.reset()
    bits = g.beat_bits.bit_length() - 1
    for _ in range(1000):
        low = rng.randrange(g.unit_bits + 1)
        lengths = [rng.choice((0, low, g.unit_bits)) for _ in range(g.units)]
        units = [rng.getrandbits(length) if length else 0 for length in lengths]
        starts = places(rng.randrange(g.beat_bits), lengths, g.beat_bits)[:-1]
        poke.set(
            enable=1,
            units=sum(u << g.unit_bits * k for k, u in enumerate(units)),
            places=sum(s << bits * k for k, s in enumerate(starts)),
        )
        await poke.tick()
        poke.set(enable=0, units=0, places=0)
        await poke.tick()
        assert poke.get("ring") == packed(units, starts, g.unit_bits, g.beat_bits)


@cocotb.test()
async def starts(dut: Any) -> None:
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    g = Geometry(p, bench.arguments["beats"])
    poke = Poke(dut, PayloadPlaces(p, g.beats_per_block))
    await poke.reset()
    bits, pointer = g.beat_bits.bit_length() - 1, 1 << g.pointer_bits
    for _ in range(1000):
        width = rng.randrange(len(p.symbol_bits))
        w = p.symbol_bits[width]
        n = rng.randrange(p.symbols(w) + 1)
        span = p.symbols(w) // g.unit_bits
        kinds = [rng.randrange(3) for _ in range(g.planes(w))]
        start = rng.randrange(pointer)
        verbatim = sum(((1 << span) - 1) << k * span for k, kind in enumerate(kinds) if kind == 0)
        positions = sum(1 << k * span for k, kind in enumerate(kinds) if kind == 1)
        symbol_bits = rng.randrange(g.beat_bits + 1)
        transposed = rng.randrange(2)
        poke.set(
            enable=1,
            width=width,
            planes=transposed,
            verbatim=verbatim,
            positions=positions,
            shares=sum(
                min(max(n - at * g.unit_bits, 0), g.unit_bits) << at * g.unit_bits.bit_length()
                for at in range(g.symbols // g.unit_bits)
            ),
            position_bits=log2_ceil(n),
            symbol_bits=symbol_bits,
        )
        await poke.tick()
        poke.set(enable=0, start=start, planes=1 - transposed, verbatim=0, symbol_bits=0)
        await poke.tick()
        value = poke.get("places")
        got = [value >> bits * k & g.beat_bits - 1 for k in range(g.units)]
        if not transposed:
            units = [g.unit_bits] * g.units
            assert poke.get("end") == (start + symbol_bits) % pointer
            assert got == places(start, units, g.beat_bits)[:-1]
            continue
        lengths = [(n, log2_ceil(n), 0)[kind] for kind in kinds]
        assert poke.get("end") == places(start, lengths, pointer)[-1]
        assert got[::span] == places(start, lengths, g.beat_bits)[:-1]
        for k, kind in enumerate(kinds):  # units of a verbatim plane, as far as it goes
            for j in range(span):
                if kind == 0 and j * g.unit_bits < n:
                    expected = (got[k * span] + j * g.unit_bits) % g.beat_bits
                    assert got[k * span + j] == expected


@sizes(GEOMETRIES)
@pytest.mark.parametrize(
    ("component", "testcase"), [(PayloadPacker, "packer"), (PayloadPlaces, "starts")]
)
def test_payload(component: Any, testcase: str, parameters: Parameters, beats: int) -> None:
    arguments = {"parameters": parameters, "beats": beats}
    run_bench(component(parameters, beats), __name__, arguments=arguments, testcase=testcase)
