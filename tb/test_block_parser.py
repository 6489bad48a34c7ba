# amaranth: UnusedElaboratable=no
"""Block parser against its model: chunks of legal and broken blocks, anywhere in the ring."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import cocotb
import pytest

from planezip.hdl.block_parser import BlockParser, parsed
from planezip.hdl.decoder_types import DecoderGeometry, chunk_entry
from planezip.model.format import HEADER_BYTES, Parameters, Tag
from planezip.model.reference import encode_chunk
from tb.bench import Bench
from tb.blocks import random_block
from tb.layouts import pack
from tb.legal import broken, chunk_of, legal_block
from tb.marks import sampled
from tb.poke import Poke
from tb.ring import Ring
from tb.run import run_bench
from tb.streams import read

CASES = {
    "both": Parameters(64, (16, 32), 4),
    "16x16": Parameters(32, (8, 16), 4),
    "8x8": Parameters(8, (8,), 2),
    "4x4": Parameters(4, (4,), 2),
    "no_dbx": Parameters(8, (8,), 2, frozenset({Tag.RAW, Tag.ZVC, Tag.BX})),
}


def random_body(rng: random.Random, blocks: int, w: int, p: Parameters) -> bytes:
    """Body of a chunk: as the encoder writes it, other codes, noise, or one of these broken."""
    kind = rng.randrange(4)
    size = blocks * p.block_bits // 8
    if kind == 0:
        made = encode_chunk(b"".join(random_block(rng, w, p) for _ in range(blocks)), w, p)
    elif kind == 1:
        made = chunk_of([legal_block(rng, w, p) for _ in range(blocks)])
    else:
        made = bytes(HEADER_BYTES) + rng.randbytes(rng.randint(0, size))
    if rng.randrange(3) == 0:
        made = made[:HEADER_BYTES] + broken(rng, made[HEADER_BYTES:] or b"\0")
    return made[HEADER_BYTES:][:size]


def expected(body: bytes, blocks: int, w: int, at: int, p: Parameters) -> list[dict[str, Any]]:
    """Fields of ``end`` and ``block`` per block; only the place of those behind a fault."""
    size = 8 * len(body)
    up = int.from_bytes(body, "little")
    down = int(f"{up:0{size}b}"[::-1], 2) if size else 0
    f, g, fault = 0, size, False
    result: list[dict[str, Any]] = []
    for k in range(blocks):
        fields: dict[str, Any] = {"index": k, "last_of_chunk": int(k == blocks - 1)}
        fields["width"] = p.symbol_bits.index(w)
        if len(body) == blocks * p.block_bits // 8:  # stored
            start = 8 * at + k * p.block_bits
            fields |= {"error": 0, "tag": 0, "raw": 1, "order": 1, "start": start}
        elif not fault:
            bits = down >> size - g if k % 2 else up >> f
            block = parsed(bits, g - f, w, p)
            fields["error"], fault = block.error, bool(block.error)
            if not fault:
                used, planes = block.control + block.payload, block.tag >= Tag.DBX
                start = g - used if k % 2 else f + block.control
                f, g = (f, g - used) if k % 2 else (f + used, g)
                dbx = block.tag == Tag.DBX
                n = p.symbols(w) - 1 if dbx else block.mask.bit_count()
                last = k == blocks - 1
                fields |= {"tag": block.tag, "start": 8 * at + start, "n": n, "dbx": int(dbx)}
                fields |= {"zbx": int(block.tag == Tag.ZBX), "order": int(not planes)}
                fields |= {"mask": block.mask, "trailing": int(last and g - f >= 8)}
                if dbx:
                    fields |= {"base": block.base, "top": block.classes[0]}
                if planes:
                    fields["classes"] = list(block.classes[dbx:])
                if last and g - f < 8:
                    fields["pad"] = g - f
        result.append(fields)
    return result


@cocotb.test()
async def parsed_chunks(dut: Any) -> None:
    bench = Bench(dut)
    rng, p = bench.rng, CASES[bench.arguments["case"]]
    beats = bench.arguments["beats"]
    g = DecoderGeometry(p, beats)
    poke = Poke(dut, BlockParser(p, beats))
    dut.chunks__valid.value = dut.chunks__payload.value = 0
    poke.set(phase=0, room=0, data=0)
    dut.rst.value, dut.clk.value = 1, 0
    await poke.tick()
    dut.rst.value = 0
    ring = Ring(g, rng.getrandbits(g.rows * g.wire))
    wanted: deque[dict[str, Any]] = deque()
    entry, left, word, stages = None, bench.arguments["chunks"], 0, [0, 0]
    cycle = 0
    while left or entry or any(stages):
        if entry is None and left and not any(stages) and rng.randrange(3) == 0:
            left -= 1
            width, blocks = rng.randrange(len(p.symbol_bits)), rng.randint(1, p.blocks_per_chunk)
            w = p.symbol_bits[width]
            body = random_body(rng, blocks, w, p)
            at = rng.randrange(ring.size // 8)
            ring.put(body, at)
            wanted.extend(expected(body, blocks, w, at, p))
            raw = int(len(body) == blocks * p.block_bits // 8)
            entry = {"start": at, "end": (at + len(body)) % (ring.size // 8), "width": width}
            entry |= {"body_bytes": len(body), "last_block": blocks - 1, "raw": raw}
        dut.chunks__valid.value = int(entry is not None)
        dut.chunks__payload.value = pack(chunk_entry(p, beats), entry) if entry else 0
        phase = cycle % 4
        poke.set(phase=phase, room=int(rng.randrange(4) > 0), data=ring.banks(word))
        await poke.settle()
        word = poke.get("word") if phase == 0 else rng.getrandbits(g.word_bits)
        if phase == 0:
            if stages.pop(0):
                check(poke.get("block"), poke.get("end"), wanted.popleft(), ring.size, p)
            else:
                assert not poke.get("block")["valid"]
            stages.append(poke.get("begun"))
        if entry and read(dut.chunks__ready):
            entry = None
        await poke.tick()
        cycle += 1
    assert not wanted


def check(block: Any, end: Any, wanted: dict[str, Any], ring_bits: int, p: Parameters) -> None:
    assert block["valid"]
    w = p.symbol_bits[wanted["width"]]
    for name, value in wanted.items():
        found = end[name] if name in end else block[name]
        if name == "classes":
            found = found[: len(value)]
        if name == "base":
            found &= (1 << w) - 1
        if name == "start":
            value %= ring_bits
        assert found == value, (name, found, value)


@pytest.mark.parametrize("case", sampled(CASES, "8x8", "4x4", "no_dbx"))
def test_block_parser(case: str) -> None:
    p = CASES[case]
    beats = 2 if p.block_bits == 16 else 4
    arguments = {"case": case, "beats": beats, "chunks": 100}
    run_bench(BlockParser(p, beats), __name__, arguments=arguments)
