# amaranth: UnusedElaboratable=no
"""Intake against its model: headers found, bodies in the ring, entries, faults of the framing."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import cocotb
import pytest

from planezip.hdl.decoder_types import DecoderGeometry, chunk_entry
from planezip.hdl.framer import width_of
from planezip.hdl.intake import Intake, entries
from planezip.hdl.types import ElementType, Mode, beat, descriptor
from planezip.model.format import DEFAULT, Parameters
from tb.bench import Bench
from tb.decoder_bench import DTYPES, Job, block_bytes, random_job
from tb.layouts import pack, unpack
from tb.legal import broken
from tb.poke import Poke
from tb.run import run_bench
from tb.streams import read

CASES = {
    "default": (DEFAULT, 4),
    "8x8": (Parameters(8, (8,), 2), 4),
    "4x4": (Parameters(4, (4,), 2), 2),
}


class Port:
    """One stream of the intake, driven by hand."""

    def __init__(self, dut: Any, name: str, layout: Any) -> None:
        self._dut, self._name, self._layout = dut, name, layout

    def _signal(self, part: str) -> Any:
        return getattr(self._dut, f"{self._name}__{part}")

    def offer(self, value: Any | None) -> None:
        self._signal("valid").value = int(value is not None)
        self._signal("payload").value = 0 if value is None else pack(self._layout, value)

    def ready(self, value: int) -> None:
        self._signal("ready").value = value

    def get(self, part: str) -> Any:
        value = read(self._signal(part))
        assert isinstance(value, int), f"X in {self._name}.{part}"
        return unpack(self._layout, value) if part == "payload" else value


def beats_of(job: Job, size: int) -> list[dict[str, int]]:
    """Wire beats of a tensor; one of no byte where the stream is empty."""
    starts = range(0, max(1, len(job.stream)), size) if job.raw_bytes else ()
    return [
        {
            "data": int.from_bytes(job.stream[at : at + size], "little"),
            "bytes": len(job.stream[at : at + size]),
            "last": int(at + size >= len(job.stream)),
        }
        for at in starts
    ]


def expected(job: Job, p: Parameters) -> list[dict[str, Any]]:
    """Fields of the entries, and the bodies."""
    found = entries(job.stream, job.raw_bytes, job.mode, p)
    block, chunk = block_bytes(p), p.chunk_bits // 8
    result = []
    for k, (body, error, extra) in enumerate(found):
        blocks = -(-min(chunk, job.raw_bytes - k * chunk) // block)
        bypass = job.mode == Mode.BYPASS
        fields: dict[str, Any] = {
            "body": body,
            "error": int(error),
            "extra": int(extra),
            "body_bytes": len(body or b""),
            "last_block": blocks - 1,
            "width": width_of(job.dtype, p),
            "bypass": int(bypass),
            "discard": int(job.mode == Mode.MEASURE),
            "last": int(k == len(found) - 1),
            "tail": job.raw_bytes % block,
        }
        if body is not None:
            fields["raw"] = int(bypass or len(body) == blocks * block)
        result.append(fields)
    return result


def random_jobs(rng: random.Random, p: Parameters, count: int) -> list[Job]:
    """Tensors of all modes, a third of them broken, some empty or without a stream."""
    jobs = []
    for _ in range(count):
        size = rng.choice((0, 1, rng.randint(1, 5 * block_bytes(p)), p.chunk_bits // 4 + 1))
        job = random_job(rng, min(size, 2500), p, rng.choice(list(Mode)))
        if job.raw_bytes and rng.randrange(3) == 0:
            job = Job(broken(rng, job.stream), job.raw_bytes, job.dtype, job.mode)
        jobs.append(job)
    return [*jobs, Job(b"", 3, rng.choice(DTYPES)), Job(b"\0\0", 1, ElementType.FLOAT32)]


@cocotb.test()
async def framed_streams(dut: Any) -> None:
    bench = Bench(dut)
    rng, (p, count) = bench.rng, CASES[bench.arguments["case"]]
    g = DecoderGeometry(p, count)
    size = g.wire // 8
    jobs = random_jobs(rng, p, bench.arguments["jobs"])
    poke = Poke(dut, Intake(p, count))
    tensors, wire, out = (
        Port(dut, "descriptor", descriptor()),
        Port(dut, "wire", beat(size)),
        Port(dut, "chunks", chunk_entry(p, count)),
    )
    for port in (tensors, wire):
        port.offer(None)
    dut.oldest.value = 0
    await reset(dut, poke)
    heads = deque(
        {"dtype": j.dtype, "raw_bytes": j.raw_bytes, "mode": j.mode, "tag": 0} for j in jobs
    )
    beats = deque(b for j in jobs for b in beats_of(j, size))
    left = deque(e for j in jobs for e in expected(j, p))
    ring = bytearray(g.rows * size)
    offered, waited = [False, False], 0
    releases = deque([0] * 4)  # a block is parsed before its chunk is released
    while heads or beats or left:
        offered = [
            o or (rng.random() < 0.7 and bool(q))
            for o, q in zip(offered, (heads, beats), strict=True)
        ]
        tensors.offer(heads[0] if offered[0] else None)
        wire.offer(beats[0] if offered[1] else None)
        out.ready(rng.random() < 0.8)
        dut.oldest.value = releases[0]
        await poke.settle()
        if poke.get("write"):
            row = poke.get("row")
            ring[row * size : (row + 1) * size] = beats[0]["data"].to_bytes(size, "little")
        waited += 1
        if out.get("valid") and read(dut.chunks__ready):
            entry, wanted = out.get("payload"), left.popleft()
            body = wanted.pop("body")
            assert {name: entry[name] for name in wanted} == wanted
            if body is not None:
                doubled = ring + ring
                assert entry["end"] == (entry["start"] + len(body)) % len(ring)
                assert doubled[entry["start"] :][: len(body)] == body
            releases[-1], waited = entry["release"], 0
        if offered[0] and tensors.get("ready"):
            heads.popleft()
            offered[0], waited = False, 0
        if offered[1] and wire.get("ready"):
            beats.popleft()
            offered[1], waited = False, 0
        assert waited < 200, "the intake hangs"
        releases.append(releases[-1])
        releases.popleft()
        await poke.tick()


async def reset(dut: Any, poke: Poke) -> None:
    dut.chunks__ready.value = 0
    dut.rst.value = 1
    dut.clk.value = 0
    await poke.tick()
    dut.rst.value = 0


@pytest.mark.parametrize("case", CASES)
def test_intake(case: str) -> None:
    p, count = CASES[case]
    run_bench(Intake(p, count), __name__, arguments={"case": case, "jobs": 60})
