"""Chunk buffer against its model: records, reports, blocks in the order of the stream, rate."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import cocotb
import pytest

from planezip.hdl.chunk_buffer import ChunkBuffer, read_order, ring_blocks
from planezip.hdl.framer import block_meta, framed, framed_beat
from planezip.hdl.sizer import MINIMUM_CYCLES, block_result
from planezip.hdl.summary import PlaneClass, block_summary, chunk_record
from planezip.hdl.types import ElementType, Mode, chunk_report
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag
from tb.bench import Bench
from tb.marks import sampled
from tb.pauses import PATTERNS
from tb.run import run_bench
from tb.streams import StreamSource

CASES = {
    "default": (DEFAULT, 4, 1),
    "small": (Parameters(16, (4, 8), 2), 4, 6),
    "chunks_of_8": (Parameters(16, (4, 8), 8), 2, 4),
    "8x8": (Parameters(8, (8,), 2), 2, 6),
}
SIZER_CYCLES = 7
FIRST_BEAT_CYCLES = 11  # a chunk's last beat taken to its first one valid


def random_summary(rng: random.Random, p: Parameters, noise: bool) -> dict[str, Any]:
    """A block's summary; ``noise``: as long as a raw block."""
    raw = p.block_bits + TAG_BITS
    return {
        "tag": Tag.RAW if noise else rng.choice(sorted(p.encodings)),
        "bits": raw if noise else rng.randint(TAG_BITS, raw),
        "nonzero": rng.randint(0, p.symbols_per_block),
        "extra": rng.choice(list(PlaneClass)),
        "planes": [rng.choice(list(PlaneClass)) for _ in range(p.symbol_bits[-1])],
    }


def chunk_results(
    summaries: list[dict[str, Any]], meta: dict[str, Any], p: Parameters
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Software model: record and report of a chunk; ``meta`` of its last block."""
    count, block = len(summaries), p.block_bits // 8
    bits = sum(summary["bits"] for summary in summaries)
    bypass = meta["mode"] == Mode.BYPASS.value
    size = (bits + 7) // 8
    raw = bypass or size >= count * block
    if raw:
        size = count * block
        if bypass and meta["last_of_tensor"] and meta["tail"]:
            size -= block - meta["tail"]
    tags = [sum(summary["tag"] == tag for summary in summaries) for tag in Tag]
    if raw:
        tags = [count if tag == Tag.RAW else 0 for tag in Tag]
    last = meta["last_of_tensor"]
    record = {
        "blocks": count,
        "body_bytes": size,
        "padding": -bits % 8,
        "width": meta["width"],
        "raw": raw,
        "bypass": bypass,
        "last": last,
    }
    return record, {"body_bytes": size, "blocks": tags, "raw": raw, "last": last}


class Sized(Iterator[int]):
    """Pause pattern of the results: as a sizer gives them, some cycles after a block's end."""

    def __init__(self, bench: Bench, raw: StreamSource, beats: int) -> None:
        self._bench, self._raw, self._beats = bench, raw, beats
        self._sent, self._next = 0, 0

    def __next__(self) -> int:
        ends = self._raw.times[self._beats - 1 :: self._beats]
        now = self._bench.cycle
        due = self._sent < len(ends) and now >= max(ends[self._sent] + SIZER_CYCLES, self._next)
        if due:
            self._sent, self._next = self._sent + 1, now + MINIMUM_CYCLES
        return int(not due)


class BufferBench(Bench):
    """Chunk buffer with a model of the sizer in front."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.parameters = p = self.arguments["parameters"]
        self.beats = self.arguments["beats"]
        pause, held = self.arguments["pauses"]
        self.raw = self.source("raw", framed_beat(p, self.beats), pause)
        self.results = self.source(
            "results", block_result(p, block_meta(p)), Sized(self, self.raw, self.beats)
        )
        self.chunks = self.sink("chunks", chunk_record(p), held)
        self.summaries = self.sink("summaries", block_summary(p), held)
        self.out = self.sink("beats", None, held)
        self.reports = self.sink("report", chunk_report(p), held)

    def send(self, length: int, mode: Mode, noise: bool) -> int:
        """A tensor and what must come out; its blocks."""
        p, rng, count = self.parameters, self.rng, self.beats
        dtype = rng.choice(list(ElementType))
        beats = framed(rng.randbytes(length), dtype, mode, p, count)
        self.raw.extend(beats)
        label = f"{length} bytes, {mode.name}"
        chunk: list[dict[str, Any]] = []
        data: list[list[int]] = []
        for at in range(0, len(beats), count):
            meta = beats[at + count - 1]["meta"]
            summary = random_summary(rng, p, noise)
            self.results.send({"summary": summary, "meta": meta})
            chunk.append(summary)
            data.append([beat["beat"]["data"] for beat in beats[at : at + count]])
            if not meta["last_of_chunk"]:
                continue
            record, report = chunk_results(chunk, meta, p)
            self.reports.expect(report, label=label)
            if mode != Mode.MEASURE:
                self.chunks.expect(record, label=label)
                for k in read_order(len(chunk), record["raw"]):
                    self.summaries.expect(chunk[k], label=label)
                    self.out.extend(data[k], label=label)
            chunk, data = [], []
        return len(beats) // count


def lengths(p: Parameters, rng: random.Random) -> list[int]:
    """Lengths in bytes: one block often, around whole chunks, anything."""
    block, chunk = p.block_bits // 8, p.chunk_bits // 8
    near = [chunk + k for k in (-block, -1, 0, 1, block)]
    return [1, block, 1, 1, 2 * block, 1, *near, 2 * chunk, rng.randint(1, 3 * chunk), 1, 1]


@cocotb.test()
async def chunks(dut: Any) -> None:
    bench = BufferBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    modes = [Mode.STREAM, Mode.STREAM, Mode.STREAM, Mode.BYPASS, Mode.MEASURE]
    blocks = 0
    for _ in range(bench.arguments["rounds"]):
        for length in rng.sample(lengths(p, rng), len(lengths(p, rng))):
            blocks += bench.send(length, rng.choice(modes), rng.random() < 0.3)
    blocks += bench.send(1, Mode.STREAM, False)  # so that something is stored at the end
    await bench.finish()
    if bench.arguments["pauses"] == ["never", "never"]:
        times = bench.monitor_of(bench.out).times
        firsts = times[:: bench.beats]
        taken = bench.monitor_of(bench.summaries).times
        assert all(t < first for t, first in zip(taken, firsts, strict=True))
        spent = bench.raw.times[-1] - bench.raw.times[0] + 1
        assert spent <= MINIMUM_CYCLES * blocks, (bench.seed, "raw beats were held up")


@cocotb.test()
async def first_beat(dut: Any) -> None:
    """A full chunk on its own: when it comes, and that it then comes without a gap."""
    bench = BufferBench(dut)
    await bench.reset()
    bench.send(bench.parameters.chunk_bits // 8, Mode.STREAM, False)
    await bench.finish()
    out = bench.monitor_of(bench.out)
    assert out.first_valid == bench.raw.times[-1] + FIRST_BEAT_CYCLES
    assert out.times == list(range(out.times[0], out.times[0] + len(out.times)))


@pytest.mark.parametrize(
    "pauses", sampled(itertools.product(PATTERNS, PATTERNS), ("random", "random"))
)
@pytest.mark.parametrize("case", ["small", "chunks_of_8", "8x8"])
def test_small(case: str, pauses: tuple[str, str]) -> None:
    p, beats, rounds = CASES[case]
    arguments = {"parameters": p, "beats": beats, "rounds": rounds, "pauses": list(pauses)}
    component = ChunkBuffer(p, beats)
    assert run_bench(component, __name__, arguments=arguments, testcase="chunks") == 1


@pytest.mark.parametrize("pauses", [("never", "never"), ("random", "random")])
def test_default(pauses: tuple[str, str]) -> None:
    p, beats, rounds = CASES["default"]
    arguments = {"parameters": p, "beats": beats, "rounds": rounds, "pauses": list(pauses)}
    component = ChunkBuffer(p, beats)
    assert run_bench(component, __name__, arguments=arguments, testcase="chunks") == 1


def test_first_beat() -> None:
    p, beats, _ = CASES["default"]
    arguments = {"parameters": p, "beats": beats, "pauses": ["never", "never"]}
    component = ChunkBuffer(p, beats)
    assert run_bench(component, __name__, arguments=arguments, testcase="first_beat") == 1


def test_ring_holds_two_chunks_and_the_latency() -> None:
    assert ring_blocks(DEFAULT, 4) == 2 * 32 + 3
    assert ring_blocks(Parameters(16, (4, 8), 8), 2) == 2 * 8 + 3
