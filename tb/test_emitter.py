# amaranth: UnusedElaboratable=no
"""Emitter against a model: beats, faults, reports, credits, for blocks that can't be refused."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import Any

import cocotb
import pytest

from planezip.hdl.decoder_types import (
    DecoderGeometry,
    decode_report,
    decoded_beat,
)
from planezip.hdl.emitter import END_BLOCKS, Emitter
from planezip.model.errors import ErrorCode
from planezip.model.format import DEFAULT, Parameters, Tag
from tb.bench import Bench
from tb.poke import Poke
from tb.run import run_bench

CASES = {
    "default": (DEFAULT, 4),
    "8x8": (Parameters(8, (8,), 2), 4),
    "4x4": (Parameters(4, (4,), 2), 2),
}


@dataclass
class Block:
    """A block on its way: its end, its slots, and the faults seen with each slot."""

    end: dict[str, int]
    slots: list[int]
    misplaced: list[int]
    padding: list[int]


def random_blocks(rng: random.Random, p: Parameters, chunks: int) -> list[Block]:
    """Chunks of one block to full ones; every seventh block or so has a fault."""
    g = DecoderGeometry(p, 2)
    blocks: list[Block] = []
    for _ in range(chunks):
        count = rng.choice((1, 1, rng.randint(1, min(4, p.blocks_per_chunk))))
        last = rng.randrange(2)
        bypass = rng.randrange(4) == 0
        discard = rng.randrange(6) == 0
        for k in range(count):
            ends_tensor = last and k == count - 1
            end = {
                "error": rng.choice((0,) * 9 + (ErrorCode.TAG, ErrorCode.OVERRUN)),
                "trailing": int(rng.randrange(12) == 0 and k == count - 1),
                "extra": int(ends_tensor and rng.randrange(4) == 0),
                "last_of_chunk": int(k == count - 1),
                "last_of_tensor": int(ends_tensor),
                "tail": rng.randrange(p.block_bits // 8),
                "index": k,
                "tag": rng.choice(list(Tag)),
                "raw": int(bypass),
                "bypass": int(bypass),
                "discard": int(discard),
                "body_bytes": rng.randrange(p.chunk_bits // 8 + 1),
            }
            number = rng.getrandbits(p.block_bits)
            if ends_tensor and end["tail"] and rng.randrange(2):
                number &= (1 << 8 * end["tail"]) - 1
            slots = [number >> s * g.slot & ((1 << g.slot) - 1) for s in range(g.slots)]
            rare = [[int(rng.randrange(40) == 0) for _ in slots] for _ in range(2)]
            blocks.append(Block(end, slots, *rare))
    return blocks


def emitted(blocks: list[Block], p: Parameters, beats: int) -> tuple[list[Any], list[Any]]:
    """Software model: raw beats and reports."""
    g = DecoderGeometry(p, beats)
    size, out, reports = g.beat // 8, [], []
    error, place, counts = 0, 0, [0] * len(Tag)
    for block in blocks:
        end = block.end
        number = sum(slot << k * g.slot for k, slot in enumerate(block.slots))
        length = end["tail"] if end["last_of_tensor"] and end["tail"] else p.block_bits // 8
        faults = (
            (end["error"], end["error"]),
            (any(block.misplaced), ErrorCode.POSITION),
            (end["trailing"], ErrorCode.TRAILING),
            (any(block.padding), ErrorCode.PADDING),
            (number >> 8 * length and not end["bypass"], ErrorCode.TAIL),
        )
        found = next((int(code) for there, code in faults if there), 0)
        if found and not error:
            error, place = found, end["index"]
        counts[end["tag"]] += not error
        for at in range(0, 0 if end["discard"] else length, size):
            count = min(size, length - at)
            part = number >> 8 * at & ((1 << 8 * count) - 1)
            fields = {"data": 0 if error else part, "bytes": count, "bad": int(error != 0)}
            out.append(fields | {"last": int(end["last_of_tensor"] and at + count == length)})
        if end["last_of_chunk"]:
            extra = end["extra"] and not error
            report = {"body_bytes": end["body_bytes"], "blocks": counts, "raw": end["raw"]}
            report |= {"last": end["last_of_tensor"], "block": place if error else 0}
            reports.append(report | {"error": int(ErrorCode.EXTRA) if extra else error})
            error, place, counts = 0, 0, [0] * len(Tag)
    return out, reports


@cocotb.test()
async def emitted_blocks(dut: Any) -> None:
    bench = Bench(dut)
    p, beats = CASES[bench.arguments["case"]]
    raw = bench.sink("raw", decoded_beat(p, beats), bench.arguments["pause"])
    report = bench.sink("report", decode_report(p), bench.arguments["pause"])
    poke = Poke(dut, Emitter(p, beats))
    names = ("begun", "begun_last", "end", "phase", "valid", "data", "misplaced", "padding")
    poke.set(**dict.fromkeys(names, 0))
    await bench.reset()
    blocks = random_blocks(bench.rng, p, 60)
    out, reports = emitted(blocks, p, beats)
    raw.extend(out)
    report.extend(reports)
    waiting = deque(blocks)
    pipeline: deque[Block | None] = deque([None] * (END_BLOCKS + 3))
    while waiting or any(pipeline):
        goes = bool(waiting) and bool(poke.get("room"))
        entering = waiting.popleft() if goes else None
        pipeline.append(entering)
        leaving = pipeline.popleft()
        ending = pipeline[END_BLOCKS - 1]
        for phase in range(4):
            poke.set(
                phase=phase,
                begun=int(goes and phase == 0),
                begun_last=entering.end["last_of_chunk"] if entering and phase == 0 else 0,
                end=ending.end if ending else 0,
                valid=int(leaving is not None),
                data=leaving.slots[phase] if leaving else 0,
                misplaced=leaving.misplaced[phase] if leaving else 0,
                padding=leaving.padding[phase] if leaving else 0,
            )
            await bench.step()
    poke.set(valid=0, begun=0, begun_last=0)
    await bench.finish()
    assert poke.get("room")


@pytest.mark.parametrize("pause", ["never", "random"])
@pytest.mark.parametrize("case", CASES)
def test_emitter(case: str, pause: str) -> None:
    p, beats = CASES[case]
    run_bench(Emitter(p, beats), __name__, arguments={"case": case, "pause": pause})
