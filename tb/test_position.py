"""Position encoder against its software model: verbatim, positions, nothing, both widths."""

from __future__ import annotations

from typing import Any

import cocotb

from planezip.hdl.geometry import Geometry
from planezip.hdl.position import PositionEncoder, position_of
from planezip.model.format import Parameters
from tb.bench import Bench
from tb.marks import sizes
from tb.poke import GEOMETRIES, Poke
from tb.run import run_bench


@cocotb.test()
async def planes(dut: Any) -> None:
    bench = Bench(dut)
    rng, p, beats = bench.rng, bench.arguments["parameters"], bench.arguments["beats"]
    g = Geometry(p, beats)
    poke = Poke(dut, PositionEncoder(p, beats))
    for _ in range(1500):
        width = rng.randrange(len(p.symbol_bits))
        n = p.symbols(p.symbol_bits[width])
        span = n // g.unit_bits
        data = verbatim = positions = expected = 0
        for k in range(g.beat_bits // n):
            kind = rng.randrange(4)
            at = rng.randrange(n)
            plane = (rng.getrandbits(n), 1 << at, 3 << min(at, n - 2), rng.getrandbits(n))[kind]
            data |= plane << k * n
            if kind == 0:
                verbatim |= ((1 << span) - 1) << k * span
                expected |= plane << k * n
            elif kind < 3:
                positions |= 1 << k * span
                expected |= position_of(plane) << k * n
        poke.set(data=data, width=width, verbatim=verbatim, positions=positions)
        await poke.settle()
        assert poke.get("units") == expected


@sizes(GEOMETRIES)
def test_position(parameters: Parameters, beats: int) -> None:
    arguments = {"parameters": parameters, "beats": beats}
    run_bench(PositionEncoder(parameters, beats), __name__, arguments=arguments)
