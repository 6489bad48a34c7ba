"""Gather network against its software model: every keep mask for few lanes, random for many."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.gather import destinations, gather, gathered
from tb.bench import Bench
from tb.marks import sampled
from tb.poke import Poke
from tb.run import run_bench

_BITS = 3


class Network(wiring.Component):
    """Destinations and network in one."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        super().__init__(
            {
                "lanes": In(lanes * _BITS),
                "keep": In(lanes),
                "offset": In(max(lanes.bit_length() - 1, 1)),
                "out": Out(lanes * _BITS),
                "arrived": Out(lanes),
                "count": Out(lanes.bit_length()),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        lanes = [self.lanes[k * _BITS : (k + 1) * _BITS] for k in range(self._lanes)]
        places, count = destinations(m, self.keep, self.offset)
        out, arrived = gather(m, lanes, self.keep, places)
        m.d.comb += [self.out.eq(Cat(out)), self.arrived.eq(arrived), self.count.eq(count)]
        return m


@cocotb.test()
async def masks(dut: Any) -> None:
    bench = Bench(dut)
    rng, lanes = bench.rng, bench.arguments["lanes"]
    poke = Poke(dut, Network(lanes))
    cases = [(keep, at) for keep in range(1 << min(lanes, 8)) for at in range(min(lanes, 8))]
    if lanes > 8:
        cases = [(rng.getrandbits(lanes), rng.randrange(lanes)) for _ in range(3000)]
    for keep, offset in cases:
        values = [rng.getrandbits(_BITS) for _ in range(lanes)]
        poke.set(lanes=sum(v << _BITS * k for k, v in enumerate(values)), keep=keep, offset=offset)
        await poke.settle()
        flags = [keep >> k & 1 for k in range(lanes)]
        expected = gathered(values, flags, offset)
        out, arrived = poke.get("out"), poke.get("arrived")
        got = [out >> _BITS * k & 7 if arrived >> k & 1 else None for k in range(lanes)]
        assert got == expected, (keep, offset)
        assert poke.get("count") == sum(flags)


@pytest.mark.parametrize("lanes", sampled([1, 2, 4, 8, 16], 1, 4, 8))
def test_gather(lanes: int) -> None:
    run_bench(Network(lanes), __name__, arguments={"lanes": lanes})
