"""Code parser against ``parse_codes`` and the encoder: all codes, all runs, wrong runs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cocotb
import pytest

from planezip.hdl.code_parser import CodeParser, ParserShape, parse_codes
from planezip.hdl.summary import PlaneClass, plane_class
from planezip.model.format import DEFAULT, Parameters, PlaneCode, Tag
from planezip.model.reference import (
    bits_of,
    encode_block,
    number_of,
    plane_code,
    split_symbols,
    transform,
)
from tb.bench import Bench
from tb.blocks import random_block
from tb.marks import sampled
from tb.poke import Poke
from tb.run import run_bench

_PARAMETERS = [
    DEFAULT,
    Parameters(4, (4,), 2),
    Parameters(16, (8, 16), 4),
    Parameters(64, (16,), 32),
]
_CYCLES = 4


@dataclass(frozen=True)
class _Block:
    """Codes (first bit in bit 0), where they start, and whether they begin with DBX's run."""

    w: int
    bits: int
    size: int
    at: int
    pending: bool = False
    active: bool = True


def _ends(block: _Block, run_bits: int) -> tuple[list[PlaneClass], int, bool]:
    """Classes, end of the codes (a wrong run: its start), wrong."""
    classes, used, wrong = parse_codes(block.bits, block.w + block.pending, run_bits)
    return classes[block.pending :], block.at + used - wrong * (2 + run_bits), wrong


def _run(low: int, run_bits: int) -> list[int]:
    return bits_of(*PlaneCode.ZERO_RUN.prefix) + bits_of(low, run_bits)


def _runs(rng: random.Random, w: int, run_bits: int) -> Iterator[list[int]]:
    """Each run field (wrong ones too) behind any number of planes (a few at 32 bits)."""
    singles = [code for code in PlaneCode if code != PlaneCode.ZERO_RUN]
    for above in rng.sample(range(w), min(w, 4 if w > 16 else w)):
        for low in range(1 << run_bits):
            bits: list[int] = []
            for _ in range(above):
                bits += bits_of(*rng.choice(singles).prefix)
            yield bits + _run(low, run_bits) + [rng.getrandbits(1) for _ in range(5 * w)]


def _blocks(rng: random.Random, p: Parameters, s: ParserShape) -> Iterator[_Block]:
    for w, run_bits in zip(p.symbol_bits, s.run_bits, strict=True):

        def block(bits: list[int], pending: bool = False, w: int = w) -> _Block:
            return _Block(w, number_of(bits), len(bits), rng.randrange(s.unit), pending)

        for code in PlaneCode:
            if code != PlaneCode.ZERO_RUN:
                yield block(bits_of(*code.prefix) * w)
        for bits in _runs(rng, w, run_bits):
            yield block(bits)
        for low in range(1 << run_bits):  # DBX: the run begins above the parser's first plane
            yield block(_run(low, run_bits) + [rng.getrandbits(1) for _ in range(5 * w)], True)
        for _ in range(15):
            yield block([rng.getrandbits(1) for _ in range(5 * w + 7)])
            dense = [rng.getrandbits(1) | rng.getrandbits(1) for _ in range(5 * w + 7)]
            yield block(dense)
            yield _Block(w, rng.getrandbits(20), 20, rng.randrange(s.unit), active=False)
            data = split_symbols(random_block(rng, w, p), w)
            bx = encode_block(Tag.BX, data, w, p)
            codes = block(list(bx.control[3:]))
            classes, _, wrong = parse_codes(codes.bits, w, run_bits)
            planes, pre, n = transform(Tag.BX, data, w)
            assert not wrong
            pairs = zip(planes, pre, strict=True)
            assert classes == [plane_class(plane_code(*pair, n)) for pair in pairs]
            yield codes


@cocotb.test()
async def parser(dut: Any) -> None:
    """A block per ``cycles`` cycles, so that each is loaded in the last cycle of another."""
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    component = CodeParser(p, _CYCLES)
    s = component.shape
    poke = Poke(dut, component)
    await poke.reset()
    blocks = list(_blocks(rng, p, s))
    rng.shuffle(blocks)
    before: _Block | None = None
    classes: list[PlaneClass] = []
    for block in [*blocks, None]:
        poke.set(load=block is not None)
        if block is not None:
            top = block.at + block.size
            window = rng.getrandbits(s.window) >> top << top | block.bits << block.at
            poke.set(
                window=(window | rng.getrandbits(8) % (1 << block.at)) % (1 << s.window),
                start=1 << block.at,
                pending=block.pending,
                active=block.active,
                width=p.symbol_bits.index(block.w),
            )
        for cycle in range(_CYCLES):
            await poke.tick()
            if poke.get("valid"):
                classes += poke.get("classes")
            elif before is not None:
                assert set(poke.get("classes")) == {PlaneClass.ZERO}
            if cycle == 0 and before is not None:  # the last classes of the block before
                run_bits = s.run_bits[p.symbol_bits.index(before.w)]
                expected, end, wrong = _ends(before, run_bits)
                assert classes == (expected if before.active else []), before
                if before.active:
                    assert poke.get("wrong") == wrong, before
                    rest = poke.get("rest")
                    assert rest & rest - 1 == 0
                    assert poke.get("units") * s.unit + rest.bit_length() - 1 == end, before
            if cycle == 0:
                classes = []
                poke.set(load=0, window=rng.getrandbits(s.window), start=rng.getrandbits(s.span))
        before = block


@pytest.mark.parametrize(
    "parameters", sampled(_PARAMETERS, *_PARAMETERS[1:]), ids=lambda p: str(p.symbol_bits)
)
def test_code_parser(parameters: Parameters) -> None:
    run_bench(
        CodeParser(parameters, _CYCLES),
        __name__,
        arguments={"parameters": parameters},
        flatten=True,
    )
