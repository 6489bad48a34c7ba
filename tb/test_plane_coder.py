"""Plane coder and code packer against the software models, over the slots of blocks."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.geometry import Geometry
from planezip.hdl.plane_coder import CodePacker, PlaneCoder, code_string, codes, packed_codes
from planezip.hdl.summary import PlaneClass, plane_class
from planezip.model.format import Parameters, PlaneCode, Tag
from planezip.model.reference import bits_of
from tb.bench import Bench
from tb.marks import sizes
from tb.poke import GEOMETRIES, Poke
from tb.run import run_bench

_KINDS: list[PlaneCode] = [code for code in PlaneCode if code != PlaneCode.ZERO_RUN]


@cocotb.test()
async def coder(dut: Any) -> None:
    """Each run length at each place, then random classes."""
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    g = Geometry(p, bench.arguments["beats"])
    poke = Poke(dut, PlaneCoder(p, g.beats_per_block))
    for width, w in enumerate(p.symbol_bits):
        for tag in (Tag.BX, Tag.DBX):
            count = p.planes(tag, w)
            blocks: list[list[PlaneCode]] = []
            for start in range(count):
                for run in range(1, count - start + 1):
                    block = [rng.choice(_KINDS[1:]) for _ in range(count)]
                    block[start : start + run] = [PlaneCode.ZERO] * run
                    blocks.append(block)
            for _ in range(300):
                zeros = rng.random()
                blocks.append(
                    [
                        rng.choice([PlaneCode.ZERO] if rng.random() < zeros else _KINDS)
                        for _ in range(count)
                    ]
                )
            for block in blocks:
                await _check(poke, rng, g, tag, width, block)


async def _check(
    poke: Poke, rng: Any, g: Geometry, tag: Tag, width: int, block: list[PlaneCode]
) -> None:
    p = g.parameters
    w = p.symbol_bits[width]
    classes = [plane_class(code) for code in block]
    extra = classes.pop(0) if tag == Tag.DBX else rng.choice(list(PlaneClass))
    bits: list[int] = []
    run = 0
    for slot in range(g.beats_per_block):
        size = g.planes(w)
        here, after = classes[slot * size : (slot + 1) * size], classes[(slot + 1) * size :]
        noise = [rng.choice(list(PlaneClass)) for _ in range(g.units - size)]
        poke.set(
            tag=tag,
            width=width,
            extra=extra,
            planes=here + noise,
            has_extra=tag == Tag.DBX and slot == 0,
            next_zero=bool(after) and after[0] == PlaneClass.ZERO,
            slot=slot,
            run_in=run,
        )
        await poke.settle()
        run = poke.get("run_out")
        for code in poke.get("codes"):
            assert code["bits"] >> code["length"] == 0
            bits += bits_of(code["bits"], code["length"])
    assert bits == code_string(block, p.run_bits(tag, w)), (tag, w, block)


@cocotb.test()
async def packer(dut: Any) -> None:
    bench = Bench(dut)
    rng, g = bench.rng, Geometry(bench.arguments["parameters"], bench.arguments["beats"])
    poke = Poke(dut, CodePacker(g.parameters, g.beats_per_block))
    most = codes(g).elem_shape["bits"].width
    for _ in range(2000):
        pieces: list[tuple[int, int]] = []
        for _ in range(g.units + 1):
            # Before a run's code there is a plane without one, if the run began in the slot.
            longest = 5 if pieces and pieces[-1][1] else most
            length = rng.choice([n for n in (0, 1, 3, 5, most) if n <= longest])
            pieces.append((rng.getrandbits(length) if length else 0, length))
        poke.set(codes=[{"bits": value, "length": length} for value, length in pieces])
        await poke.settle()
        assert (poke.get("bits"), poke.get("length")) == packed_codes(pieces), pieces


@sizes(GEOMETRIES)
@pytest.mark.parametrize(("component", "testcase"), [(PlaneCoder, "coder"), (CodePacker, "packer")])
def test_plane_coder(component: Any, testcase: str, parameters: Parameters, beats: int) -> None:
    arguments = {"parameters": parameters, "beats": beats}
    run_bench(component(parameters, beats), __name__, arguments=arguments, testcase=testcase)
