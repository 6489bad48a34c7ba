"""Sizes of a block from the classes of its planes, a block a cycle, against the model."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest

from planezip.hdl.plane_cost import PlaneCost, planes_bits
from planezip.hdl.summary import PlaneClass
from planezip.model.format import DEFAULT, Parameters, Tag
from tb.bench import Bench
from tb.marks import sampled
from tb.poke import Poke
from tb.run import run_bench

CASES = {
    "default": DEFAULT,
    "small": Parameters(16, (4, 8), 2),
    "one_width": Parameters(8, (8,), 2),
    "4x4": Parameters(4, (4,), 2),
    "three_widths": Parameters(64, (4, 8, 16), 2),
}
ENCODINGS = {
    "deltas": frozenset({Tag.DBX}),
    "symbols": frozenset({Tag.BX, Tag.ZBX}),
    "bx": frozenset({Tag.BX}),
    "zbx": frozenset({Tag.ZBX}),
}
_OTHERS = [kind for kind in PlaneClass if kind != PlaneClass.ZERO]


def random_classes(rng: random.Random, tags: list[Tag], count: int) -> dict[Tag, list[PlaneClass]]:
    """Classes of ``count`` planes; the encodings have the same planes of zeros."""
    kind = rng.randrange(6)
    if kind < 2:  # all the same
        same = rng.choice(list(PlaneClass))
        return {tag: [same] * count for tag in tags}
    zero = rng.random()
    zeros = [rng.random() < zero for _ in range(count)]
    return {tag: [PlaneClass.ZERO if z else rng.choice(_OTHERS) for z in zeros] for tag in tags}


@cocotb.test()
async def costs(dut: Any) -> None:
    bench = Bench(dut)
    p: Parameters = bench.arguments["parameters"]
    tags = [Tag(number) for number in bench.arguments["tags"]]
    component = PlaneCost(p, frozenset(tags))
    poke = Poke(dut, component)
    rng = bench.rng
    await poke.reset()
    for index, w in enumerate(p.symbol_bits):
        poke.set(width=index)
        expected: list[dict[str, int]] = []
        for number in range(bench.arguments["blocks"]):
            planes = random_classes(rng, tags, p.planes(tags[0], w))
            n = p.symbols(w)
            nonzero = rng.choice((0, 1, 2, n - 1, n, rng.randint(0, n)))
            fields = {}
            for tag in tags:
                extra, rest = (planes[tag][:1], planes[tag][1:]) if tag == Tag.DBX else ([], [])
                fields[tag.name] = {
                    "extra": extra[0] if extra else rng.choice(list(PlaneClass)),
                    "planes": (rest if tag == Tag.DBX else planes[tag])
                    + [PlaneClass.VERBATIM] * (p.symbol_bits[-1] - w),
                }
            poke.set(classes=fields, nonzero=nonzero)
            sizes = {tag.name: planes_bits(tag, planes[tag], nonzero, w, p) for tag in tags}
            expected.append(sizes)
            await poke.settle()
            if number >= component.latency:
                want = expected[number - component.latency]
                assert poke.get("sizes") == want, (bench.seed, w, number, planes, nonzero)
            await poke.tick()


@pytest.mark.parametrize("tags", sampled(ENCODINGS, "deltas"))
@pytest.mark.parametrize("case", CASES)
def test_plane_cost(case: str, tags: str) -> None:
    p, encodings = CASES[case], ENCODINGS[tags]
    arguments = {"parameters": p, "tags": [tag.value for tag in sorted(encodings)], "blocks": 300}
    assert run_bench(PlaneCost(p, encodings), __name__, arguments=arguments) == 1


def test_model_on_a_worked_block() -> None:
    """The block of docs/format.md: 64 bits in BX."""
    kinds = {31: "ONE", 30: "PRE_ZERO", 29: "ONES", 22: "ONES", 16: "PAIR", 15: "PRE_ZERO"}
    planes = [PlaneClass[kinds.get(plane, "ZERO")] for plane in range(31, -1, -1)]
    assert planes_bits(Tag.BX, planes, 32, 32) == 64
