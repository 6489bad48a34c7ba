# amaranth: UnusedElaboratable=no
"""Unpack against its model: a payload anywhere in the ring, piece by piece at its place."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest

from planezip.hdl.decoder_types import DecoderGeometry, parsed_block
from planezip.hdl.payload_reader import ring_window
from planezip.hdl.summary import PlaneClass
from planezip.hdl.unpack import LATENCY, Unpack, pieces
from planezip.model.format import DEFAULT, Parameters, log2_ceil
from tb.bench import Bench
from tb.layouts import pack
from tb.poke import Poke
from tb.ring import Ring
from tb.run import run_bench

CASES = {
    "both": DEFAULT,
    "16x16": Parameters(32, (8, 16), 2),
    "8x8": Parameters(8, (8,), 2),
    "4x4": Parameters(4, (4,), 2),
}


def random_block(rng: random.Random, g: DecoderGeometry) -> dict[str, Any]:
    """A block with its payload anywhere in the ring."""
    p = g.parameters
    width = rng.randrange(len(p.symbol_bits))
    w = p.symbol_bits[width]
    length = p.symbols(w)
    order, dbx = rng.randrange(3) == 0, rng.randrange(3) == 0
    mask = rng.choice((0, (1 << length) - 1, rng.getrandbits(length)))
    n = length - 1 if dbx and not order else mask.bit_count()
    weights = [rng.random() for _ in PlaneClass]
    above = rng.randrange(2)
    return {
        "valid": 1,
        "width": width,
        "order": int(order),
        "dbx": int(dbx and not order),
        "mask": mask,
        "base": rng.getrandbits(w),
        "top": rng.choice(list(PlaneClass)) if dbx and not order else PlaneClass.ZERO,
        "classes": [PlaneClass.ZERO] * p.symbol_bits[-1]
        if order
        else rng.choices(list(PlaneClass), weights, k=w),
        "n": n,
        "field": log2_ceil(n),
        "start": rng.getrandbits(g.position_bits),
        "pad": rng.randrange(8),
        "pad_above": above,
        "pad_below": 1 - above,
    }


def unpacked(block: dict[str, Any], ring: int, g: DecoderGeometry) -> list[dict[str, Any]]:
    """Software model: lengths and data of each slot's pieces, DBX's top plane, padding seen."""
    p = g.parameters
    w = p.symbol_bits[block["width"]]
    bits = 8 * g.rows * g.wire // 8
    each = {PlaneClass.VERBATIM: block["n"]}
    each |= dict.fromkeys((PlaneClass.PAIR, PlaneClass.ONE), block["field"])
    at = block["start"]
    extra = each.get(block["top"], 0) if block["dbx"] else 0
    slots: list[dict[str, Any]] = []
    for k in range(g.slots):
        if block["order"]:
            size, count = w, g.slot // w
            lengths = [w * (block["mask"] >> (count * k + i) & 1) for i in range(count)]
        else:
            size, count = g.slot * g.slots // w, w // g.slots
            lengths = [each.get(block["classes"][count * k + i], 0) for i in range(count)]
        first = at
        at += extra if k == 0 else 0
        payload = ring_window(ring, bits, at, sum(lengths))
        at += sum(lengths)
        slots.append(
            {
                "lengths": lengths,
                "size": size,
                "data": pieces(payload, lengths, size),
                "extra": ring_window(ring, bits, first, extra) if k == 0 else 0,
                "extra_bits": extra if k == 0 else 0,
                "padding": 0,
                "top": block["top"] if k == 0 and block["dbx"] else PlaneClass.ZERO,
            }
        )
    pad = block["pad"]
    below = ring_window(ring, bits, block["start"] - pad, pad)
    slots[0]["padding"] = int(bool(block["pad_below"] and below))
    above = ring_window(ring, bits, at, pad)
    slots[-1]["padding"] |= int(bool(block["pad_above"] and above))
    return slots


@cocotb.test()
async def unpacked_blocks(dut: Any) -> None:
    """Blocks of all kinds back to back, in a ring of noise with zeros in it."""
    bench = Bench(dut)
    rng, p = bench.rng, CASES[bench.arguments["case"]]
    beats = bench.arguments["beats"]
    g = DecoderGeometry(p, beats)
    poke = Poke(dut, Unpack(p, beats))
    dut.block.value = 0
    await poke.reset()
    ring = Ring(g, rng.getrandbits(g.rows * g.wire))
    blocks = [random_block(rng, g) for _ in range(bench.arguments["blocks"])]
    ring.clear_half(rng)
    expected = [unpacked(block, ring.bits, g) for block in blocks]
    head = parsed_block(p, beats)
    word = 0
    for cycle in range(4 * len(blocks) + LATENCY):
        block = blocks[min(cycle // 4, len(blocks) - 1)]
        poke.set(phase=cycle % 4, data=ring.banks(word))
        dut.block.value = pack(head, block)
        await poke.settle()
        word = poke.get("word") if cycle % 4 else rng.getrandbits(g.word_bits)
        number, k = divmod(cycle - LATENCY, 4)
        if number >= 0:
            slot, wanted = poke.get("slot"), expected[number][k]
            sizes = [(i * wanted["size"], n) for i, n in enumerate(wanted["lengths"])]
            mask = sum(((1 << n) - 1) << at for at, n in sizes)
            assert slot["data"] & mask == wanted["data"], (number, k)
            assert slot["extra"] & ((1 << wanted["extra_bits"]) - 1) == wanted["extra"]
            assert slot["padding"] == wanted["padding"], (number, k)
            assert slot["top"] == wanted["top"]
        await poke.tick()


@pytest.mark.parametrize("case", CASES)
def test_unpack(case: str) -> None:
    p = CASES[case]
    beats = 2 if p.block_bits == 16 else 4
    arguments = {"case": case, "beats": beats, "blocks": 120}
    run_bench(Unpack(p, beats), __name__, arguments=arguments)
