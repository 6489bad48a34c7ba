"""Bench of the decompressor lane: tensors' streams in, what the reference codec says out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from planezip.hdl.decoder_types import decode_report, decoded_beat
from planezip.hdl.framer import width_of
from planezip.hdl.intake import entries
from planezip.hdl.types import ElementType, Mode, beat, descriptor
from planezip.model import reference
from planezip.model.errors import ErrorCode, StreamError
from planezip.model.format import HEADER_BYTES, TAG_BITS, Parameters, Tag
from planezip.model.reference import bits_of, decode_tensor, encode_tensor, number_of
from tb.bench import Bench
from tb.blocks import random_block
from tb.legal import legal_chunk

__all__ = ["DTYPES", "DecoderBench", "Job", "block_bytes", "legal_job", "outcome", "random_job"]

DTYPES = [ElementType.BFLOAT16, ElementType.FLOAT16, ElementType.FLOAT32, ElementType.INT8]


def block_bytes(p: Parameters) -> int:
    """Bytes of a block."""
    return p.block_bits // 8


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
        made += rng.randbytes(block_bytes(p)) if stored else random_block(rng, w, p)
    raw = bytes(made[:size])
    return Job(raw if mode == Mode.BYPASS else encode_tensor(raw, w, p), size, dtype, mode)


def outcome(job: Job, p: Parameters) -> Iterator[tuple[bytes, int, int, int]]:
    """``(data, good blocks, error, block)`` per chunk, from the reference, chunk by chunk."""
    w = p.symbol_bits[width_of(job.dtype, p)]
    chunk = p.chunk_bits // 8
    found = entries(job.stream, job.raw_bytes, job.mode, p)
    for k, (body, error, extra) in enumerate(found):
        size = min(chunk, job.raw_bytes - k * chunk)
        blocks = -(-size // block_bytes(p))
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
    padded = -(-size // block_bytes(p)) * block_bytes(p)
    if job.mode == Mode.BYPASS or len(body) == padded:
        tags[Tag.RAW] = blocks
        return body[: blocks * block_bytes(p)], tags
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
        data += number.to_bytes(block_bytes(p), "little")
    return bytes(data), tags


class DecoderBench(Bench):
    """Lane with its four ports; expects what the reference codec says."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.parameters: Parameters = self.arguments["parameters"]
        p = self.parameters
        pauses = self.arguments.get("pauses", ["never", "never"])
        self.descriptors = self.source("descriptor", descriptor(), pauses[0])
        count = self.arguments.get("beats_per_block", 4)
        self.beat_bytes = block_bytes(p) // count
        self.wire = self.source("wire", beat(2 * self.beat_bytes), pauses[0])
        self.raw = self.sink("raw", decoded_beat(p, count), pauses[1])
        self.reports = self.sink("report", decode_report(p), pauses[1])
        self.faults = 0

    def send(self, job: Job, label: str = "") -> None:
        """Queue a tensor and what must come out."""
        p, beat_bytes = self.parameters, self.beat_bytes
        self.descriptors.send(
            {"dtype": job.dtype, "raw_bytes": job.raw_bytes, "mode": job.mode, "tag": 0}
        )
        starts = range(0, len(job.stream), 2 * beat_bytes) if job.raw_bytes else ()
        for at in starts or ([0] if job.raw_bytes else []):
            part = job.stream[at : at + 2 * beat_bytes]
            noise = self.rng.randbytes(2 * beat_bytes - len(part))  # behind the end: ignored
            last = int(at + 2 * beat_bytes >= len(job.stream))
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
                        and (job.mode == Mode.BYPASS or len(body) == size + -size % block_bytes(p))
                    ),
                    "last": last,
                    "error": error,
                    "block": block,
                },
                label=label,
            )
            for at in range(0, size if job.mode != Mode.MEASURE else 0, beat_bytes):
                count = min(beat_bytes, size - at)
                bad = int(at // block_bytes(p) >= good)
                part = b"" if bad else data[at : at + count]
                self.raw.expect(
                    {
                        "data": int.from_bytes(part, "little"),
                        "bytes": count,
                        "last": int(last and at + beat_bytes >= size),
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


def legal_job(rng: random.Random, size: int, p: Parameters, style: str) -> Job:
    """A tensor of chunks that the encoder would not write."""
    dtype = rng.choice(DTYPES)
    w = p.symbol_bits[width_of(dtype, p)]
    made = b""
    for at in range(0, size, p.chunk_bits // 8):
        blocks = min(p.blocks_per_chunk, (size - at) // block_bytes(p))
        made += legal_chunk(rng, blocks, w, p, style)
    return Job(made, size, dtype)
