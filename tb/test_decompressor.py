# amaranth: UnusedElaboratable=no
"""Decompressor lane against the reference codec: bytes, reports, rate, latency, stalls, faults."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import cocotb
import pytest

from planezip.hdl.decoder_types import decode_report, decoded_beat
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.export import verilog
from planezip.hdl.framer import width_of
from planezip.hdl.intake import entries
from planezip.hdl.types import ElementType, Mode, beat, descriptor
from planezip.model import reference
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import DEFAULT, HEADER_BYTES, TAG_BITS, Parameters, Tag
from planezip.model.reference import bits_of, decode_tensor, encode_tensor, number_of
from tb.bench import Bench
from tb.blocks import random_block
from tb.legal import STYLES, LegalBlock, broken, chunk_of, legal_chunk
from tb.run import Sources, build, default_simulator, icarus_missing, run_tests

LATENCY_CYCLES = 37  # last wire beat of a chunk to its first raw beat, at most
BLOCK = 128
BEAT = 32
SMALL = Parameters(64, (16, 32), 4)  # chunks of four blocks: the whole lane in short tensors
CASES = {
    "default": DEFAULT,
    "chunks_of_4": SMALL,
    "16": Parameters(64, (16,), 2),
    "32": Parameters(32, (32,), 2),
    "no_zbx": Parameters(64, (16, 32), 2, frozenset({Tag.RAW, Tag.ZVC, Tag.DBX, Tag.BX})),
    "no_planes": Parameters(64, (16, 32), 2, frozenset({Tag.RAW, Tag.ZVC})),
}
DTYPES = [ElementType.BFLOAT16, ElementType.FLOAT16, ElementType.FLOAT32, ElementType.INT8]


@dataclass(frozen=True)
class Job:
    """A tensor's stream and how it is to be read."""

    stream: bytes
    raw_bytes: int
    dtype: ElementType
    mode: Mode = Mode.STREAM


def random_job(
    rng: random.Random, size: int, p: Parameters, mode: Mode = Mode.STREAM, noise: float = 0.2
) -> Job:
    """Blocks of random kinds; some chunks are noise, so that they are stored raw."""
    dtype = rng.choice(DTYPES)
    w = p.symbol_bits[width_of(dtype, p)]
    made = bytearray()
    while len(made) < size:
        if len(made) % (p.chunk_bits // 8) == 0:
            stored = rng.random() < noise
        made += rng.randbytes(BLOCK) if stored else random_block(rng, w, p)
    raw = bytes(made[:size])
    return Job(raw if mode == Mode.BYPASS else encode_tensor(raw, w, p), size, dtype, mode)


def outcome(job: Job, p: Parameters) -> Iterator[tuple[bytes, int, int, int]]:
    """``(data, good blocks, error, block)`` per chunk, from the reference, chunk by chunk."""
    w = p.symbol_bits[width_of(job.dtype, p)]
    chunk = p.chunk_bits // 8
    found = entries(job.stream, job.raw_bytes, job.mode, p)
    for k, (body, error, extra) in enumerate(found):
        size = min(chunk, job.raw_bytes - k * chunk)
        blocks = -(-size // BLOCK)
        if body is None:
            yield bytes(size), 0, int(error), 0
            continue
        if job.mode == Mode.BYPASS:
            yield body, blocks, ErrorCode.EXTRA if extra else 0, 0
            continue
        part = len(body).to_bytes(HEADER_BYTES, "little") + body
        try:
            yield decode_tensor(part, size, w, p), blocks, ErrorCode.EXTRA if extra else 0, 0
        except StreamError as fault:
            yield b"", fault.block, int(fault.code), fault.block


def good_part(job: Job, chunk: int, blocks: int, p: Parameters) -> tuple[bytes, list[int]]:
    """The first ``blocks`` blocks of a chunk, and the blocks per encoding."""
    w = p.symbol_bits[width_of(job.dtype, p)]
    body = entries(job.stream, job.raw_bytes, job.mode, p)[chunk][0] or b""
    tags = [0] * len(Tag)
    size = min(p.chunk_bits // 8, job.raw_bytes - chunk * p.chunk_bits // 8)
    padded = -(-size // BLOCK) * BLOCK
    if job.mode == Mode.BYPASS or len(body) == padded:
        tags[Tag.RAW] = blocks
        return body[: blocks * BLOCK], tags
    bits = bits_of(int.from_bytes(body, "little"), 8 * len(body))
    f, g = 0, len(bits)
    data = bytearray()
    for k in range(blocks):
        block = reference._Block(bits, f, g, k % 2 == 1)
        tag = [bits[g - 1 - i] if k % 2 else bits[f + i] for i in range(TAG_BITS)]
        tags[number_of(tag)] += 1
        symbols, length = reference._decode_block(block, w, p, reference._Fail(0, k))
        f, g = (f, g - length) if k % 2 else (f + length, g)
        number = sum(s << i * w for i, s in enumerate(symbols))
        data += number.to_bytes(BLOCK, "little")
    return bytes(data), tags


class DecoderBench(Bench):
    """Lane with its four ports; expects what the reference codec says."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.parameters: Parameters = self.arguments["parameters"]
        p = self.parameters
        pauses = self.arguments.get("pauses", ["never", "never"])
        self.descriptors = self.source("descriptor", descriptor(), pauses[0])
        self.wire = self.source("wire", beat(2 * BEAT), pauses[0])
        self.raw = self.sink("raw", decoded_beat(p), pauses[1])
        self.reports = self.sink("report", decode_report(p), pauses[1])
        self.faults = 0

    def send(self, job: Job, label: str = "") -> None:
        """Queue a tensor and what must come out."""
        p = self.parameters
        self.descriptors.send(
            {"dtype": job.dtype, "raw_bytes": job.raw_bytes, "mode": job.mode, "tag": 0}
        )
        starts = range(0, len(job.stream), 2 * BEAT) if job.raw_bytes else ()
        for at in starts or ([0] if job.raw_bytes else []):
            part = job.stream[at : at + 2 * BEAT]
            noise = self.rng.randbytes(2 * BEAT - len(part))  # behind the end: ignored
            last = int(at + 2 * BEAT >= len(job.stream))
            number = int.from_bytes(part + noise, "little")
            self.wire.send({"data": number, "bytes": len(part), "last": last})
        chunk = p.chunk_bits // 8
        outcomes = list(outcome(job, p))
        if job.mode != Mode.BYPASS and job.raw_bytes:
            self.check_reference(job, outcomes)
        for k, (data, good, error, block) in enumerate(outcomes):
            last = int(k == len(outcomes) - 1)
            size = min(chunk, job.raw_bytes - k * chunk)
            found, tags = good_part(job, k, good, p)
            data = data if not error or error == ErrorCode.EXTRA else found
            body = entries(job.stream, job.raw_bytes, job.mode, p)[k][0]
            self.faults += bool(error)
            self.reports.expect(
                {
                    "body_bytes": len(body or b""),
                    "blocks": tags,
                    "raw": int(
                        body is not None
                        and (job.mode == Mode.BYPASS or len(body) == -(-size // BLOCK) * BLOCK)
                    ),
                    "last": last,
                    "error": error,
                    "block": block,
                },
                label=label,
            )
            for at in range(0, size if job.mode != Mode.MEASURE else 0, BEAT):
                count = min(BEAT, size - at)
                bad = int(at // BLOCK >= good)
                part = b"" if bad else data[at : at + count]
                self.raw.expect(
                    {
                        "data": int.from_bytes(part, "little"),
                        "bytes": count,
                        "last": int(last and at + BEAT >= size),
                        "bad": bad,
                    },
                    label=label,
                )

    def check_reference(self, job: Job, outcomes: list[tuple[bytes, int, int, int]]) -> None:
        """The first fault of the tensor is the one that the reference reports."""
        faults = [(error, k, block) for k, (_, _, error, block) in enumerate(outcomes) if error]
        w = self.parameters.symbol_bits[width_of(job.dtype, self.parameters)]
        first = []
        try:
            decode_tensor(job.stream, job.raw_bytes, w, self.parameters)
        except StreamError as fault:
            first = [(fault.code, fault.chunk, fault.block)]
        assert faults[:1] == first


def lengths(p: Parameters) -> list[int]:
    """Tensor lengths around every boundary, in bytes."""
    chunk = p.chunk_bits // 8
    marks = (BEAT, BLOCK, 2 * BLOCK, chunk - BLOCK, chunk, chunk + BLOCK, 2 * chunk)
    near = {mark + k for mark in marks for k in (-1, 0, 1)}
    return [0, *sorted(near), 3 * chunk + 5]


@cocotb.test()
async def mixed_tensors(dut: Any) -> None:
    bench = DecoderBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    sizes = [size for size in lengths(p) if size <= bench.arguments["most_bytes"]]
    rng.shuffle(sizes)
    for k, size in enumerate(sizes):
        mode = rng.choices(list(Mode), (6, 1, 1))[0]
        bench.send(random_job(rng, size, p, mode), f"tensor {k}, {size} bytes, {mode.name}")
    await bench.finish()
    assert not bench.faults


def legal_job(rng: random.Random, size: int, p: Parameters, style: str) -> Job:
    """A tensor of chunks that the encoder would not write."""
    dtype = rng.choice(DTYPES)
    w = p.symbol_bits[width_of(dtype, p)]
    made = b""
    for at in range(0, size, p.chunk_bits // 8):
        blocks = min(p.blocks_per_chunk, (size - at) // BLOCK)
        made += legal_chunk(rng, blocks, w, p, style)
    return Job(made, size, dtype)


def limit_cycles(size: int) -> int:
    """Cycles that a tensor may take."""
    return 4 * max(1, -(-size // BLOCK))


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """4 cycles a block back to back, for every mix of lengths and kinds."""
    bench = DecoderBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    chunk = p.chunk_bits // 8
    # A raw chunk by itself: latency.
    bench.send(random_job(rng, chunk, p, noise=1.0), "latency")
    await bench.finish()
    monitor = bench.monitor_of(bench.raw)
    assert monitor.first_valid is not None
    latency = monitor.first_valid - bench.wire.times[-1]
    assert LATENCY_CYCLES - 3 <= latency <= LATENCY_CYCLES, latency
    # Long, short and empty tensors in turn; then chunks of every style.
    jobs = []
    for _ in range(2):
        jobs.append(random_job(rng, chunk, p, noise=1.0))
        short = bench.arguments["short"]
        jobs += [random_job(rng, rng.choice((1, 127, 128)), p, noise=0.9) for _ in range(short)]
        jobs.append(random_job(rng, 0, p))
    for style in (*STYLES, *STYLES):
        jobs.append(legal_job(rng, chunk, p, style))
        jobs.append(random_job(rng, rng.choice((1, chunk + 1, 2 * BLOCK)), p, noise=0.9))
    start, taken = len(monitor.times), len(bench.wire.times)
    ends, cycles = [], 0
    for k, job in enumerate(jobs):
        bench.send(job, f"job {k}")
        cycles += limit_cycles(job.raw_bytes)
        if job.raw_bytes:
            ends.append((start + sum(-(-j.raw_bytes // BEAT) for j in jobs[: k + 1]), cycles))
    await bench.finish()
    assert not bench.faults
    # The first chunk comes a wire beat a cycle; from its first beat on the lane owes the rate.
    allowed = p.chunk_bits // 8 // (2 * BEAT) + 2 + LATENCY_CYCLES
    first = bench.wire.times[taken]
    for beats, limit in ends:
        assert monitor.times[beats - 1] < first + allowed + limit, (beats, limit)


@cocotb.test()
async def legal_streams(dut: Any) -> None:
    bench = DecoderBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    for k in range(bench.arguments["jobs"]):
        style = rng.choice(("any", *STYLES))
        blocks = rng.randint(1, 2 * min(4, p.blocks_per_chunk))
        bench.send(legal_job(rng, blocks * BLOCK, p, style), f"job {k}, {style}")
    await bench.finish()


@cocotb.test()
async def broken_streams(dut: Any) -> None:
    """Flipped bits, truncations, extensions, in all modes; each fault as the reference says."""
    bench = DecoderBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    count = 0
    while bench.faults < bench.arguments["faults"]:
        count += 1
        mode = rng.choices(list(Mode), (8, 1, 1))[0]
        size = rng.randint(1, 2 * min(4, p.blocks_per_chunk) * BLOCK)
        if rng.randrange(2) or mode == Mode.BYPASS:
            job = random_job(rng, size, p, mode)
        else:
            job = legal_job(rng, -(-size // BLOCK) * BLOCK, p, rng.choice(STYLES))
        stream = broken(rng, job.stream)
        bench.send(Job(stream, job.raw_bytes, job.dtype, job.mode), f"job {count}, {mode.name}")
    await bench.finish()


@cocotb.test()
async def every_fault(dut: Any) -> None:
    """One stream for each code, between good ones."""
    bench = DecoderBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    w = p.symbol_bits[-1]
    dtype = ElementType.FLOAT32
    n = p.symbols(w)

    def blocks(bad: LegalBlock | None = None) -> list[LegalBlock]:
        good = LegalBlock([*bits_of(Tag.BX, 3), *[0, 0, 0, 1, 1] * w], [0] * 5 * w)
        return [good, good if bad is None else bad, good]

    mask = (1 << 5) - 1
    streams = {
        ErrorCode.CHUNK_SIZE: (3 * BLOCK + 1).to_bytes(2, "little") + bytes(5),
        ErrorCode.STREAM_END: chunk_of(blocks())[:-1],
        ErrorCode.TAG: chunk_of(blocks(LegalBlock([1, 0, 1]))),
        ErrorCode.RUN: chunk_of(blocks(LegalBlock([*bits_of(Tag.BX, 3), 0, 1, *bits_of(31, 5)]))),
        ErrorCode.POSITION: chunk_of(
            blocks(
                LegalBlock(
                    [*bits_of(Tag.ZBX, 3), *bits_of(mask, n), 0, 0, 0, 1, 0, 0, 1, *bits_of(0, 5)],
                    bits_of(4, 3),
                )
            )
        ),
        ErrorCode.OVERRUN: chunk_of(blocks(LegalBlock([*bits_of(Tag.RAW, 3)], [1] * 500))),
        ErrorCode.TRAILING: chunk_of(blocks(), more=1),
        ErrorCode.PADDING: chunk_of(blocks(), padding=1),
        ErrorCode.TAIL: chunk_of([*blocks()[:2], LegalBlock([0, 0, 0], [1] * p.block_bits)]),
        ErrorCode.EXTRA: chunk_of(blocks()) + bytes(1),
    }
    for code, stream in streams.items():
        job = Job(stream, 3 * BLOCK - (code == ErrorCode.TAIL), dtype)
        with pytest.raises(StreamError) as caught:
            decode_tensor(stream, job.raw_bytes, w, p)
        assert caught.value.code == code
        bench.send(job, code.name)
        bench.send(random_job(rng, 200, p), f"after {code.name}")
    await bench.finish()
    assert bench.faults == len(ErrorCode) - 2


@cache
def sources(case: str) -> Sources:
    """The lane's Verilog; its export takes longer than most of the tests."""
    text = verilog(DecompressorLane(CASES[case]), "decompressor_lane", flatten=True)
    return Sources("decompressor_lane", {"decompressor_lane.v": text})


def run_lane(case: str, testcase: str, **arguments: Any) -> None:
    if not os.environ.get("SIM") and icarus_missing():
        pytest.skip(f"SKIPPED ON ICARUS: {icarus_missing()}")
    simulator = default_simulator()
    folder = build(sources(case), simulator)
    every = {"parameters": CASES[case], **arguments}
    assert (
        run_tests(folder, sources(case), simulator, __name__, arguments=every, testcase=testcase)
        == 1
    )


@pytest.mark.parametrize("case", CASES)
def test_tensors(case: str) -> None:
    most = 3000 if CASES[case].blocks_per_chunk == 32 else 10_000
    run_lane(case, "mixed_tensors", most_bytes=most)


@pytest.mark.parametrize("case", ["chunks_of_4", "16", "32"])
def test_legal_streams(case: str) -> None:
    run_lane(case, "legal_streams", jobs=40)


@pytest.mark.parametrize("pauses", [("random", "never"), ("never", "random"), ("cyclic", "random")])
def test_stalls(pauses: tuple[str, str]) -> None:
    run_lane("chunks_of_4", "mixed_tensors", most_bytes=10_000, pauses=list(pauses))


def test_broken_streams() -> None:
    run_lane("chunks_of_4", "broken_streams", faults=120)


def test_every_fault() -> None:
    run_lane("chunks_of_4", "every_fault")


def test_full_rate() -> None:
    run_lane("default", "full_rate", short=20)
