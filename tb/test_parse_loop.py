"""Prototype of the parse loop (synth/prototype.py): starts of all blocks, every 4 cycles."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import cocotb

from planezip.hdl.code_parser import parse_codes
from planezip.hdl.summary import PlaneClass
from planezip.model.format import DEFAULT, Tag
from planezip.model.reference import EncodedBlock, encode_block, number_of, select, split_symbols
from planezip.synth.prototype import BIAS, ParseLoop
from tb.bench import Bench
from tb.blocks import random_block
from tb.marks import slow
from tb.poke import Poke
from tb.run import run_bench

_RING_BITS = 4 * 128 * 128


@dataclass(frozen=True)
class _Slot:
    """A block: what the loop is told, the start it must find, what it must read there."""

    start: int
    first: bool
    back: bool
    w: int
    coded: bool = True
    tag: Tag | None = None
    classes: tuple[PlaneClass, ...] = ()


def _classes(block: EncodedBlock, w: int) -> tuple[PlaneClass, ...]:
    """Classes that the code parser reads: all planes but the top one of DBX."""
    skip = {Tag.ZBX: DEFAULT.symbols(w), Tag.DBX: w, Tag.BX: 0}.get(block.tag)
    if skip is None:
        return ()
    planes, run_bits = DEFAULT.planes(block.tag, w), DEFAULT.run_bits(block.tag, w)
    classes, _, wrong = parse_codes(number_of(block.control[3 + skip :]), planes, run_bits)
    assert not wrong
    return tuple(classes[block.tag == Tag.DBX :])


def _chunk(rng: random.Random, origin: int) -> tuple[list[int], list[_Slot]]:
    """Bits of a body that starts at ring bit ``origin``, and a slot per block and stream end."""
    w = rng.choice(DEFAULT.symbol_bits)
    count = rng.choice((1, 2, 3, 32, rng.randint(1, 32)))
    blocks = []
    for _ in range(count):
        symbols = split_symbols(random_block(rng, w), w)
        chosen = rng.choice(list(Tag))
        blocks.append(
            select(symbols, w) if rng.random() < 0.7 else encode_block(chosen, symbols, w)
        )
    if rng.random() < 0.1:
        body = [rng.getrandbits(1) for _ in range(1024 * count)]
        return body, [
            _Slot(origin + 1024 * b, b < 2, False, w, coded=False) for b in range(count + 2)
        ]
    streams: list[list[int]] = [[], []]
    slots = []
    size = -sum(b.bits for b in blocks) % 8 + sum(b.bits for b in blocks)
    for b in range(count + 2):
        back = b % 2 == 1
        stream = streams[back]
        slot = _Slot((-(origin + size) if back else origin) + len(stream), b < 2, back, w)
        if b < count:
            block = blocks[b]
            payload = reversed(block.payload) if back else block.payload
            stream += [*block.control, *payload]
            slot = replace(slot, tag=block.tag, classes=_classes(block, w))
        slots.append(slot)
    padding = [0] * (size - len(streams[0]) - len(streams[1]))
    return [*streams[0], *padding, *reversed(streams[1])], slots


def _chunks(rng: random.Random, count: int) -> Iterator[tuple[int, int, list[_Slot]]]:
    """Ring bits to change (mask and value) and slots of chunks that lie one behind another."""
    origin = 0
    for _ in range(count):
        body, slots = _chunk(rng, origin)
        ring = number_of(body) << origin
        mask = ((1 << len(body)) - 1) << origin
        fold = (1 << _RING_BITS) - 1
        yield mask & fold | mask >> _RING_BITS, ring & fold | ring >> _RING_BITS, slots
        origin = (origin + len(body) + 16) % _RING_BITS


@cocotb.test()
async def starts(dut: Any) -> None:
    bench = Bench(dut)
    rng = bench.rng
    poke = Poke(dut, ParseLoop())
    await poke.reset()
    ring = rng.getrandbits(_RING_BITS)
    before: _Slot | None = None
    for mask, value, slots in _chunks(rng, 8):
        ring = ring & ~mask | value
        for slot in slots:
            init = (slot.start if slot.first else rng.getrandbits(16)) - BIAS
            poke.set(
                first=slot.first,
                init=init % _RING_BITS,
                back=slot.back,
                wide=slot.w == 32,
                coded=slot.coded,
            )
            classes: list[PlaneClass] = []
            for phase in range(4):
                assert poke.get("phase") == phase
                if poke.get("valid"):
                    classes += poke.get("classes")
                if phase == 0:
                    await poke.settle()
                    rows = poke.get("rows")
                if phase == 1:
                    words = [
                        ring >> 128 * (4 * row + k) & (1 << 128) - 1 for k, row in enumerate(rows)
                    ]
                    poke.set(data=sum(x << 128 * k for k, x in enumerate(words)))
                    assert (poke.get("position") + BIAS - slot.start) % _RING_BITS == 0, slot
                if phase == 2:
                    poke.set(data=rng.getrandbits(512))
                if phase == 3 and slot.tag is not None:
                    assert poke.get("tag") == slot.tag, slot
                await poke.tick()
            if before is not None and (before.tag is not None or not before.coded):
                assert tuple(classes) == before.classes, before
            before = slot


@slow
def test_parse_loop() -> None:
    run_bench(ParseLoop(), __name__, flatten=True)
