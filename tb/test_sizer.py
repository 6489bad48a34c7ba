"""Sizer against the reference codec: winner, bits and plane classes of every block."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.plane_cost import planes_bits
from planezip.hdl.sizer import Sizer, block_result, sized_block
from planezip.hdl.summary import PlaneClass
from planezip.model.format import ALL_ENCODINGS, DEFAULT, Parameters, Tag
from planezip.model.reference import split_symbols
from tb.bench import Bench
from tb.blocks import test_blocks
from tb.layouts import unpack
from tb.marks import sampled
from tb.run import run_bench

SMALL = Parameters(16, (4, 8), 2)
META = 7  # bits


def without(*tags: Tag) -> Parameters:
    return Parameters(16, (4, 8), 2, ALL_ENCODINGS - frozenset(tags))


CASES = {
    "default": (DEFAULT, 4, 300),
    "small": (SMALL, 4, 1000),
    "4x4": (Parameters(4, (4,), 2), 2, 1000),
    "8x8": (Parameters(8, (8,), 2), 1, 1000),
    "three_widths": (Parameters(64, (4, 8, 16), 2), 4, 400),
    "without_zvc": (without(Tag.ZVC), 4, 500),
    "without_dbx": (without(Tag.DBX), 4, 500),
    "without_bx": (without(Tag.BX), 4, 500),
    "without_zbx": (without(Tag.ZBX), 4, 500),
    "bx_only": (without(Tag.ZVC, Tag.DBX, Tag.ZBX), 2, 500),
    "raw_only": (without(Tag.ZVC, Tag.DBX, Tag.BX, Tag.ZBX), 4, 200),
}


def check(actual: dict[str, Any], block: bytes, w: int, p: Parameters) -> Tag:
    """Compare all that a summary means with the reference."""
    tag, bits, nonzero, planes = sized_block(split_symbols(block, w), w, p)
    summary = actual["summary"]
    assert (summary["tag"], summary["bits"], summary["nonzero"]) == (tag, bits, nonzero)
    if tag in (Tag.DBX, Tag.BX, Tag.ZBX):
        assert planes_bits(tag, planes, nonzero, w, p) == bits
        if tag == Tag.DBX:
            assert summary["extra"] == planes.pop(0)
        assert summary["planes"][:w] == planes
        assert summary["planes"][w:] == [PlaneClass.VERBATIM] * (p.symbol_bits[-1] - w)
    return tag


@cocotb.test()
async def sizes(dut: Any) -> None:
    bench = Bench(dut)
    p, beats = bench.arguments["parameters"], bench.arguments["beats"]
    pause = bench.arguments["pause"]
    source = bench.source("beats", Sizer(p, beats, META).beats.payload.shape(), pause)
    results = bench.monitor("results", block_result(p, META))
    await bench.reset()
    blocks = [
        (width, block)
        for width, w in enumerate(p.symbol_bits)
        for block in test_blocks(bench.rng, bench.arguments["blocks"] // len(p.symbol_bits), w, p)
    ]
    bench.rng.shuffle(blocks)
    size = p.block_bits // beats
    for number, (width, block) in enumerate(blocks):
        bits = int.from_bytes(block, "little")
        for k in range(beats):
            part = bits >> (k * size) & ((1 << size) - 1)
            beat = {"data": part, "width": width, "first": k == 0, "last": k == beats - 1}
            source.send({"beat": beat, "meta": (number + beats - 1 - k) % (1 << META)})
    assert await bench.until(lambda: len(results.values) == len(blocks), 20 * beats * len(blocks))
    seen = set()
    for number, ((width, block), bits) in enumerate(zip(blocks, results.values, strict=True)):
        actual = unpack(block_result(p, META), bits)
        try:
            assert actual["meta"] == number % (1 << META)
            seen.add(check(actual, block, p.symbol_bits[width], p))
        except AssertionError as error:
            w = p.symbol_bits[width]
            raise AssertionError(
                f"seed {bench.seed}, block {number}, w = {w}, {block.hex()}: {error}"
            ) from None
    assert seen == p.encodings or p.block_bits < 64  # ZBX never wins in a block of 4 x 4
    ends = source.times[beats - 1 :: beats]
    assert results.times == [t + 7 for t in ends]
    if pause == "never":
        assert ends == list(range(ends[0], ends[0] + max(beats, 4) * len(ends), max(beats, 4)))


@pytest.mark.parametrize("pause", sampled(["never", "random"], "random"))
@pytest.mark.parametrize(
    "case",
    sampled(CASES, "small", "4x4", "8x8", "without_zbx", "raw_only", large=["default"]),
)
def test_sizer(case: str, pause: str) -> None:
    p, beats, blocks = CASES[case]
    arguments = {"parameters": p, "beats": beats, "blocks": blocks, "pause": pause}
    assert run_bench(Sizer(p, beats, META), __name__, arguments=arguments, flatten=True) == 1
