# amaranth: UnusedElaboratable=no
"""Decompressor lane against the reference codec: bytes, reports, rate, latency, stalls, faults."""

from __future__ import annotations

from functools import cache
from typing import Any

import cocotb
import pytest

from planezip.hdl.decompressor import LATENCY_CYCLES, DecompressorLane
from planezip.hdl.types import ElementType, Mode
from planezip.hdl.verilog import verilog
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import DEFAULT, Parameters, Tag
from planezip.model.reference import bits_of, decode_tensor
from tb.decoder_bench import DecoderBench, Job, block_bytes, legal_job, random_job
from tb.legal import STYLES, LegalBlock, broken, chunk_of
from tb.marks import sampled, slow
from tb.run import Sources, bench_simulator, build, run_tests

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
    "16x16": Parameters(32, (8, 16), 4),
    "8x8": Parameters(8, (8,), 2),
    "4x4": Parameters(4, (4,), 2),
}
BEATS = {"4x4": 2}  # others: 4


def lengths(p: Parameters, beat: int) -> list[int]:
    """Tensor lengths around every boundary, in bytes."""
    chunk, block = p.chunk_bits // 8, block_bytes(p)
    marks = (beat, block, 2 * block, chunk - block, chunk, chunk + block, 2 * chunk)
    near = {mark + k for mark in marks for k in (-1, 0, 1)}
    return [0, *sorted(size for size in near if size > 0), 3 * chunk + 5]


@cocotb.test()
async def mixed_tensors(dut: Any) -> None:
    bench = DecoderBench(dut)
    p, rng = bench.parameters, bench.rng
    await bench.reset()
    every = lengths(p, bench.beat_bytes) * bench.arguments.get("passes", 1)
    sizes = [size for size in every if size <= bench.arguments["most_bytes"]]
    rng.shuffle(sizes)
    for k, size in enumerate(sizes):
        mode = rng.choices(list(Mode), (6, 1, 1))[0]
        bench.send(random_job(rng, size, p, mode), f"tensor {k}, {size} bytes, {mode.name}")
    await bench.finish()
    assert not bench.faults


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
        block = block_bytes(p)
        size = rng.randint(1, 2 * min(4, p.blocks_per_chunk) * block)
        if rng.randrange(2) or mode == Mode.BYPASS:
            job = random_job(rng, size, p, mode)
        else:
            job = legal_job(rng, size + -size % block, p, rng.choice(STYLES))
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
    # A stream without a byte: one beat of none; the next tensor is read all the same.
    bench.send(Job(b"", 3 * BLOCK, dtype), "no stream")
    bench.send(random_job(rng, 200, p), "after no stream")
    await bench.finish()
    assert bench.faults == len(ErrorCode) - 2 + 1


@cache
def sources(case: str) -> Sources:
    """The lane's Verilog; its export takes longer than most of the tests."""
    lane = DecompressorLane(CASES[case], BEATS.get(case, 4))
    text = verilog(lane, "decompressor_lane", flatten=True)
    return Sources("decompressor_lane", {"decompressor_lane.v": text})


def run_lane(case: str, testcase: str, **arguments: Any) -> None:
    simulator = bench_simulator()
    folder = build(sources(case), simulator)
    every = {"parameters": CASES[case], "beats_per_block": BEATS.get(case, 4), **arguments}
    assert (
        run_tests(folder, sources(case), simulator, __name__, arguments=every, testcase=testcase)
        == 1
    )


@pytest.mark.parametrize("case", sampled(CASES, "4x4"))
def test_tensors(case: str) -> None:
    most = 3000 if CASES[case].blocks_per_chunk == 32 else 10_000
    passes = 1 if CASES[case].block_bits == DEFAULT.block_bits else 8
    run_lane(case, "mixed_tensors", most_bytes=most, passes=passes)


@slow
@pytest.mark.parametrize("case", ["chunks_of_4", "16", "32"])
def test_legal_streams(case: str) -> None:
    run_lane(case, "legal_streams", jobs=40)


@slow
@pytest.mark.parametrize("pauses", [("random", "never"), ("never", "random"), ("cyclic", "random")])
def test_stalls(pauses: tuple[str, str]) -> None:
    run_lane("chunks_of_4", "mixed_tensors", most_bytes=10_000, pauses=list(pauses))


@pytest.mark.parametrize("case", sampled(["chunks_of_4", "16x16", "8x8", "4x4"], "4x4"))
def test_broken_streams(case: str) -> None:
    run_lane(case, "broken_streams", faults=120)


@slow
def test_every_fault() -> None:
    run_lane("chunks_of_4", "every_fault")


@slow
@pytest.mark.full
def test_full_rate() -> None:
    run_lane("default", "full_rate", short=20)
