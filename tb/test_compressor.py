# amaranth: UnusedElaboratable=no
"""Compressor lane against the reference codec: bytes, reports, rate, latency, stalls, reset."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cocotb
import pytest

from planezip.hdl.chunk_buffer import ChunkBuffer, read_order
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.delta import beat_bits
from planezip.hdl.framer import width_of
from planezip.hdl.types import ElementType, Mode, beat, chunk_report, descriptor
from planezip.model.format import DEFAULT, HEADER_BYTES, Parameters, Tag
from planezip.model.reference import encode_chunk, select, split_symbols
from tb.bench import Bench
from tb.blocks import random_block
from tb.marks import full, sampled, slow
from tb.pauses import PATTERNS
from tb.run import run_bench

SMALL = Parameters(16, (4, 8), 2)
CASES = {
    "default": (DEFAULT, 4),
    "small": (SMALL, 4),
    "small_chunks_of_8": (Parameters(16, (4, 8), 8), 2),
    "8x8": (Parameters(8, (8,), 2), 2),
}
LATENCY_CYCLES = {1024: 147}  # first raw beat taken to first wire beat valid, full chunk
OUTPUT_CYCLES = 4 * 32 + 30
DTYPES = [ElementType.BFLOAT16, ElementType.FLOAT16, ElementType.FLOAT32, ElementType.INT8]


@dataclass(frozen=True)
class Tensor:
    """A tensor and what the lane must do with it."""

    raw: bytes
    dtype: ElementType
    mode: Mode = Mode.STREAM


def random_tensor(
    rng: random.Random,
    size: int,
    p: Parameters,
    mode: Mode = Mode.STREAM,
    incompressible: float = 0.0,
) -> Tensor:
    """Blocks of random kinds; some chunks are noise, so that they are stored raw."""
    dtype = rng.choice(DTYPES)
    w = p.symbol_bits[width_of(dtype, p)]
    made = bytearray()
    while len(made) < size:
        if len(made) * 8 % p.chunk_bits == 0:
            noise = rng.random() < incompressible
        made += rng.randbytes(p.block_bits // 8) if noise else random_block(rng, w, p)
    return Tensor(bytes(made[:size]), dtype, mode)


def chunks(tensor: Tensor, p: Parameters) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Wire bytes and report of each chunk."""
    w = p.symbol_bits[width_of(tensor.dtype, p)]
    size, block = p.chunk_bits // 8, p.block_bits // 8
    padded = tensor.raw + bytes(-len(tensor.raw) % block)
    for at in range(0, len(padded), size):
        part = padded[at : at + size]
        last = at + size >= len(padded)
        tags = [0] * len(Tag)
        wire = encode_chunk(part, w, p)
        raw = len(wire) - HEADER_BYTES == len(part)
        if tensor.mode == Mode.BYPASS:
            wire, raw = tensor.raw[at : at + size], True
        if raw:
            tags[Tag.RAW] = len(part) // block
        else:
            for k in range(0, len(part), block):
                tags[select(split_symbols(part[k : k + block], w), w, p).tag] += 1
        body = len(wire) - (0 if tensor.mode == Mode.BYPASS else HEADER_BYTES)
        yield wire, {"body_bytes": body, "blocks": tags, "raw": int(raw), "last": int(last)}


class LaneBench(Bench):
    """Lane with its four ports; expects what the reference codec says."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.parameters: Parameters = self.arguments["parameters"]
        self.beats: int = self.arguments["beats"]
        self.size = beat_bits(self.parameters, self.beats) // 8
        pauses = self.arguments.get("pauses", ["never", "never"])
        self.descriptors = self.source("descriptor", descriptor(), pauses[0])
        self.raw = self.source("raw", None, pauses[0])
        self.blocked = self.arguments.get("blocked", False)
        wire_pause = (int(self.blocked) for _ in itertools.count()) if self.blocked else pauses[1]
        self.wire = self.sink("wire", beat(2 * self.size), wire_pause)
        self.reports = self.sink("report", chunk_report(self.parameters), pauses[1])

    def send(self, tensor: Tensor, label: str = "") -> None:
        """Queue a tensor and what must come out."""
        self.descriptors.send(
            {"dtype": tensor.dtype, "raw_bytes": len(tensor.raw), "mode": tensor.mode, "tag": 0}
        )
        for at in range(0, len(tensor.raw), self.size):
            part = tensor.raw[at : at + self.size]
            noise = self.rng.randbytes(self.size - len(part))  # behind the end: ignored
            self.raw.send(int.from_bytes(part + noise, "little"))
        wire = b""
        for part, report in chunks(tensor, self.parameters):
            self.reports.expect(report, label=label)
            wire += part if tensor.mode != Mode.MEASURE else b""
        for at in range(0, len(wire), 2 * self.size):
            part = wire[at : at + 2 * self.size]
            last = int(at + 2 * self.size >= len(wire))
            value = {"data": int.from_bytes(part, "little"), "bytes": len(part), "last": last}
            self.wire.expect(value, label=label)


def lengths(p: Parameters) -> list[int]:
    """Tensor lengths around every boundary, in bytes."""
    block, chunk = p.block_bits // 8, p.chunk_bits // 8
    beat_bytes = block // 4
    marks = (
        beat_bytes,
        block,
        2 * block,
        3 * block,
        chunk - block,
        chunk,
        chunk + block,
        2 * chunk,
    )
    near = {mark + k for mark in marks for k in (-1, 0, 1)}
    return [0, *sorted(size for size in near if size > 0), 3 * chunk + 5]


@cocotb.test()
async def mixed_tensors(dut: Any) -> None:
    bench = LaneBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    sizes = lengths(p) * bench.arguments["rounds"]
    rng.shuffle(sizes)
    for number, size in enumerate(sizes):
        mode = rng.choice([Mode.STREAM, Mode.STREAM, Mode.STREAM, Mode.BYPASS, Mode.MEASURE])
        tensor = random_tensor(rng, size, p, mode, 0.3)
        bench.send(tensor, f"tensor {number} ({size} bytes, {tensor.dtype.name}, {mode.name})")
    await bench.finish(2000)


def rate_mixes(p: Parameters, rng: random.Random) -> list[tuple[int, Mode]]:
    """Lengths and modes that are worst for a lane: long, short and empty ones in turn."""
    block, chunk = p.block_bits // 8, p.chunk_bits // 8
    long_short = [chunk, 1, chunk, block, chunk, 0, chunk + 1, chunk - 1]
    short = [rng.choice((1, block - 1, block)) for _ in range(p.blocks_per_chunk + 8)]
    rest = [rng.choice((0, rng.randint(1, 3 * block), rng.randint(1, chunk))) for _ in range(12)]
    modes = [Mode.STREAM] * 6 + [Mode.BYPASS, Mode.MEASURE]
    return [(size, rng.choice(modes)) for size in long_short + short + long_short + rest]


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """4 cycles a block back to back, whatever the mix; the first beat after a known time."""
    bench = LaneBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    # A full chunk by itself: latency. Noise, so that the first wire beat is one of raw beats.
    bench.send(random_tensor(rng, p.chunk_bits // 8, p, incompressible=1.0), "latency")
    await bench.finish()
    monitor = bench.monitor_of(bench.wire)
    assert monitor.first_valid is not None
    assert monitor.first_valid - bench.raw.times[0] == LATENCY_CYCLES[p.block_bits]
    bench.raw.times.clear()
    start = len(monitor.times)
    ends, cycles = [], 0
    for number, (size, mode) in enumerate(rate_mixes(p, rng)):
        tensor = random_tensor(rng, size, p, mode, 0.3)
        bench.send(tensor, f"tensor {number} ({size} bytes, {tensor.dtype.name}, {mode.name})")
        blocks = -(-8 * size // p.block_bits)
        cycles += 4 * blocks if size else 4
        ends.append((len(bench.raw.times) + bench.raw.left, cycles))
    await bench.finish()
    first = bench.raw.times[0]
    for beats, limit in ends:  # input side: every tensor in its time
        if beats:
            assert bench.raw.times[beats - 1] - first < limit, (bench.seed, beats, limit)
    # Output side: not later than the latency after the input.
    assert monitor.times[-1] - first < cycles + OUTPUT_CYCLES, (bench.seed, monitor.times[start])


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """After a reset at any time the lane works as if new."""
    bench = LaneBench(dut)
    p, rng = bench.parameters, bench.rng
    chunk = p.chunk_bits // 8
    await bench.reset()
    for number in range(bench.arguments["rounds"]):
        for _ in range(3):
            mode = rng.choice(list(Mode))
            bench.send(
                random_tensor(rng, rng.randint(1, 2 * chunk), p, mode, 0.3), f"dropped {number}"
            )
        await bench.step(rng.randint(1, 12 * p.blocks_per_chunk))
        await bench.reset()
        size = rng.randint(1, 2 * chunk)
        bench.send(random_tensor(rng, size, p, Mode.STREAM, 0.3), f"after reset {number}")
        await bench.finish(2000)


@cocotb.test()
async def measure_needs_no_output(dut: Any) -> None:
    """MEASURE works while the wire stands still, and the bytes of a tensor before come later."""
    bench = LaneBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    bench.send(random_tensor(rng, p.block_bits // 4, p), "held")
    for number in range(6):
        size = rng.randint(1, 2 * p.chunk_bits // 8)
        bench.send(random_tensor(rng, size, p, Mode.MEASURE, 0.3), f"measured {number}")
    assert await bench.until(lambda: bench.reports.left == 0 and bench.raw.left == 0)
    assert not bench.monitor_of(bench.wire).times
    bench.blocked = False
    await bench.finish()


def run_lane(case: str, testcase: str, **arguments: Any) -> None:
    p, beats = CASES[case]
    every = {"parameters": p, "beats": beats, **arguments}
    lane = CompressorLane(p, beats)
    assert run_bench(lane, __name__, arguments=every, testcase=testcase, flatten=True) == 1


@pytest.mark.parametrize(
    "pauses", sampled(itertools.product(PATTERNS, PATTERNS), ("random", "random"))
)
@pytest.mark.parametrize("case", sampled(["small", "small_chunks_of_8", "8x8"], "small", "8x8"))
def test_small_lane(case: str, pauses: tuple[str, str]) -> None:
    run_lane(case, "mixed_tensors", rounds=3, pauses=list(pauses))


@pytest.mark.parametrize(
    ("case", "rounds"), [("small", 10), pytest.param("default", 2, marks=full)]
)
def test_reset(case: str, rounds: int) -> None:
    run_lane(case, "reset_in_the_middle", rounds=rounds)


@pytest.mark.parametrize("case", sampled(["small", "default"], "small"))
def test_measure(case: str) -> None:
    run_lane(case, "measure_needs_no_output", blocked=True)


@slow
@pytest.mark.full
def test_full_rate() -> None:
    run_lane("default", "full_rate")


@slow
@pytest.mark.full
@pytest.mark.parametrize("pauses", [("never", "never"), ("random", "random")])
def test_default_lane(pauses: tuple[str, str]) -> None:
    run_lane("default", "mixed_tensors", rounds=1, pauses=list(pauses))


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="beats_per_block must be two or more, not 1"):
        ChunkBuffer(SMALL, 1)


def test_read_order() -> None:
    assert read_order(5, raw=False) == [0, 2, 4, 3, 1]
    assert read_order(3, raw=True) == [0, 1, 2]
