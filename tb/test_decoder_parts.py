"""Parts of the decompressor against their software models: expansion, transposition, sums."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest

from planezip.hdl.decoder_types import DecoderGeometry
from planezip.hdl.expansion import expand, expansion_moves
from planezip.hdl.running_sum import LATENCY, RunningSum, running_sum
from planezip.hdl.unpack import pieces
from planezip.hdl.untranspose import Untranspose, beats_of
from planezip.model.format import DEFAULT, Parameters
from tb.bench import Bench
from tb.poke import Poke
from tb.run import run_bench

WIDTHS = {"both": DEFAULT, "16": Parameters(64, (16,)), "32": Parameters(32, (32,))}


def block_beats(values: list[int], w: int, bits: int) -> list[int]:
    """Beats of ``bits`` bits of a block of ``values``."""
    number = sum(value << k * w for k, value in enumerate(values))
    return [number >> k & ((1 << bits) - 1) for k in range(0, len(values) * w, bits)]


@cocotb.test()
async def transposed_blocks(dut: Any) -> None:
    """Blocks of planes and of symbols mixed: beat k of a block leaves with line k of the next."""
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    g = DecoderGeometry(p)
    poke = Poke(dut, Untranspose(p))
    await poke.reset()
    expected: list[int] | None = None
    for _ in range(60):
        width, order = rng.randrange(len(p.symbol_bits)), rng.randrange(2)
        slots = [rng.getrandbits(g.beat) for _ in range(g.beats)]
        for k, slot in enumerate(slots):
            poke.set(line=k, data=slot, width=width, order=order)
            await poke.settle()
            if expected is not None:
                assert poke.get("beat") == expected[k]
            await poke.tick()
        expected = slots if order else beats_of(slots, p.symbol_bits[width], p)


@cocotb.test()
async def summed_blocks(dut: Any) -> None:
    """Blocks of deltas and others mixed, back to back."""
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    g = DecoderGeometry(p)
    poke = Poke(dut, RunningSum(p))
    await poke.reset()
    inputs: list[tuple[int, int, int]] = []
    expected: list[int] = []
    for _ in range(60):
        width, on = rng.randrange(len(p.symbol_bits)), rng.randrange(2)
        w = p.symbol_bits[width]
        values = [rng.getrandbits(w) for _ in range(p.symbols(w))]
        inputs += [(beat, width, on) for beat in block_beats(values, w, g.beat)]
        expected += block_beats(running_sum(values, w) if on else values, w, g.beat)
    for k in range(len(inputs) + LATENCY):
        beat, width, on = inputs[k] if k < len(inputs) else (0, 0, 0)
        poke.set(data=beat, width=width, on=on, first=int((k - LATENCY + 1) % g.beats == 0))
        await poke.settle()
        if k >= LATENCY:
            assert poke.get("sums") == expected[k - LATENCY]
        await poke.tick()


@pytest.mark.parametrize("case", WIDTHS)
def test_untranspose(case: str) -> None:
    p = WIDTHS[case]
    arguments = {"parameters": p}
    run_bench(Untranspose(p), __name__, arguments=arguments, testcase="transposed_blocks")


@pytest.mark.parametrize("case", WIDTHS)
def test_running_sum(case: str) -> None:
    p = WIDTHS[case]
    run_bench(RunningSum(p), __name__, arguments={"parameters": p}, testcase="summed_blocks")


@pytest.mark.parametrize("bits", [4, 32, 64])
def test_expansion_moves(bits: int) -> None:
    """The network's controls move every bit where the mask says."""
    rng = random.Random(bits)
    for _ in range(300):
        mask = rng.choice((0, (1 << bits) - 1, rng.getrandbits(bits), 1 << rng.randrange(bits)))
        moved = value = rng.getrandbits(mask.bit_count())
        for level, move in reversed(list(enumerate(expansion_moves(mask, bits)))):
            moved = (moved & ~move & ~(move >> (1 << level))) | (moved << (1 << level) & move)
        assert moved == expand(value, mask)


def test_pieces() -> None:
    assert pieces(0b1101, [1, 0, 3], 4) == 0b0110_0000_0001
