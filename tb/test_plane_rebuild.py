# amaranth: UnusedElaboratable=no
"""Plane rebuild against the reference codec: classes and pieces in, planes before the XOR out."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest

from planezip.hdl.decoder_types import parsed_block, slot_geometry
from planezip.hdl.expansion import expand
from planezip.hdl.plane_rebuild import LATENCY, PlaneRebuild
from planezip.hdl.summary import PlaneClass
from planezip.hdl.unpack import unpacked_slot
from planezip.model.format import DEFAULT, Parameters, Tag, log2_ceil
from tb.bench import Bench
from tb.layouts import pack
from tb.poke import Poke
from tb.run import run_bench

CASES = {
    "both": DEFAULT,
    "16x16": Parameters(32, (8, 16), 2),
    "8x8": Parameters(8, (8,), 2),
    "4x4": Parameters(4, (4,), 2),
    "no_zbx": Parameters(8, (8,), 2, frozenset({Tag.RAW, Tag.DBX, Tag.BX})),
}
_AHEAD = 6  # cycles from a block to its first slot


def rebuilt(
    kinds: list[PlaneClass], pieces: list[int], n: int, mask: int, base: int | None, length: int
) -> tuple[list[int], bool]:
    """Software model: planes, top one first, and whether a position is past the width ``n``.

    With ``base`` (DBX) the first of ``kinds`` is plane w, which is not returned; the others are
    moved up by one place for the bits of the base, of which there is one per plane.
    """
    above, planes, wrong = 0, [], False
    for kind, piece in zip(kinds, pieces, strict=True):
        plane = {PlaneClass.VERBATIM: piece & ((1 << n) - 1), PlaneClass.ONES: (1 << n) - 1}.get(
            kind, 0
        )
        if kind in (PlaneClass.ONE, PlaneClass.PAIR):
            at = piece & ((1 << log2_ceil(n)) - 1)
            ones = 2 if kind == PlaneClass.PAIR else 1
            plane = ((1 << ones) - 1) << at & ((1 << n) - 1)
            wrong |= at + ones > n
        above = 0 if kind == PlaneClass.PRE_ZERO else above ^ plane
        planes.append(above)
    if base is not None:
        count = len(planes) - 1
        planes = [
            plane << 1 & ((1 << length) - 1) | base >> (count - 1 - k) & 1
            for k, plane in enumerate(planes[1:])
        ]
    return [expand(plane, mask) for plane in planes], wrong


def random_block(
    rng: random.Random, p: Parameters
) -> tuple[dict[str, Any], list[dict[str, Any]], list[int], bool]:
    """Fields of a block, its slots, and the slots that must come out, and if one is wrong."""
    g = slot_geometry(p)
    width = rng.randrange(len(p.symbol_bits))
    w = p.symbol_bits[width]
    length = p.symbols(w)
    full = (1 << length) - 1
    tag = rng.choice([*sorted(p.encodings - {Tag.RAW}), Tag.ZVC])
    mask = rng.choice((0, full, rng.getrandbits(length), 1 << rng.randrange(length)))
    zbx, dbx, order = tag == Tag.ZBX, tag == Tag.DBX, tag == Tag.ZVC
    mask = mask if zbx or order else full
    n = mask.bit_count() - dbx
    base = rng.getrandbits(w)
    kinds = rng.choices(list(PlaneClass), k=w)
    top = rng.choice(list(PlaneClass)) if dbx else PlaneClass.ZERO
    pieces = [rng.getrandbits(length) for _ in range(w)]
    extra = rng.getrandbits(length - 1)
    block = {"width": width, "zbx": int(zbx), "mask": mask}
    per_slot, symbols = w // g.slots, length // g.slots
    slots: list[dict[str, Any]] = []
    for k in range(g.slots):
        planes = range(per_slot * k, per_slot * (k + 1))
        low = w - per_slot * (k + 1)
        slots.append(
            {
                "valid": 1,
                "width": width,
                "order": int(order),
                "dbx": int(dbx),
                "zbx": int(zbx),
                "n": n,
                "field": log2_ceil(n),
                "padding": rng.randrange(2),
                "top": top if k == 0 else PlaneClass.ZERO,
                "extra": extra,
                "data": sum(pieces[j] << i * length for i, j in enumerate(planes)),
                "classes": sum(kinds[j].value << 3 * i for i, j in enumerate(planes)),
                "keep": mask >> symbols * k & ((1 << symbols) - 1),
                "base": sum((base >> (low + per_slot - 1 - i) & 1) << i for i in range(per_slot)),
            }
        )
    if order:
        out = [
            sum(
                (slot["data"] >> i * w & ((1 << w) - 1)) << i * w
                for i in range(symbols)
                if slot["keep"] >> i & 1
            )
            for slot in slots
        ]
        return block, slots, out, False
    first = ([top], [extra]) if dbx else ([], [])
    made, wrong = rebuilt(
        first[0] + kinds, first[1] + pieces, n, mask, base if dbx else None, length
    )
    out = [
        sum(made[per_slot * k + i] << i * length for i in range(per_slot)) for k in range(g.slots)
    ]
    return block, slots, out, wrong


@cocotb.test()
async def rebuilt_blocks(dut: Any) -> None:
    """Blocks of all kinds back to back."""
    bench = Bench(dut)
    rng, p = bench.rng, CASES[bench.arguments["case"]]
    g = slot_geometry(p)
    beats = bench.arguments["beats"]
    poke = Poke(dut, PlaneRebuild(p, beats))
    dut.block.value = 0
    await poke.reset()
    blocks = [random_block(rng, p) for _ in range(bench.arguments["blocks"])]
    head, layout = parsed_block(p, beats), unpacked_slot(p)
    seen_wrong = 0
    for cycle in range(4 * len(blocks) + _AHEAD + LATENCY):
        poke.set(phase=cycle % 4)
        if cycle // 4 < len(blocks):
            dut.block.value = pack(head, blocks[cycle // 4][0])
        number, k = divmod(cycle - _AHEAD, 4)
        there = 0 <= number < len(blocks)
        dut.slot.value = pack(layout, blocks[number][1][k]) if there else 0
        await poke.settle()
        number, k = divmod(cycle - _AHEAD - LATENCY, 4)
        if 0 <= number < len(blocks):
            planes = poke.get("planes")
            _, slots, out, wrong = blocks[number]
            assert planes["data"] == out[k], (number, k)
            assert planes["valid"]
            assert planes["padding"] == slots[k]["padding"]
            seen_wrong = (seen_wrong if k else 0) | planes["misplaced"]
            assert k < g.slots - 1 or seen_wrong == wrong, number
        await poke.tick()


@pytest.mark.parametrize("case", CASES)
def test_plane_rebuild(case: str) -> None:
    p = CASES[case]
    beats = 2 if p.block_bits == 16 else 4
    arguments = {"case": case, "beats": beats, "blocks": 150}
    run_bench(PlaneRebuild(p, beats), __name__, arguments=arguments)
