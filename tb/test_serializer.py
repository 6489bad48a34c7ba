"""Pass 2 against the reference codec: bytes, beats, rate, pauses."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.serializer import Serializer
from planezip.hdl.summary import block_summary, chunk_record
from planezip.hdl.types import beat
from planezip.model.format import ALL_ENCODINGS, DEFAULT, Parameters, Tag
from planezip.model.reference import encode_tensor
from tb.bench import Bench
from tb.blocks import random_block
from tb.blocks import test_blocks as blocks_of
from tb.marks import sampled, sizes, slow
from tb.pass_two import Tensor, forced, smallest, tensor, wire_beats
from tb.pauses import PATTERNS
from tb.run import run_bench

GEOMETRIES = [
    (DEFAULT, 4),
    (Parameters(4, (4,), 2), 2),
    (Parameters(8, (8,), 4), 4),
    (Parameters(8, (8,), 2), 8),
    (Parameters(16, (4, 8), 2), 4),
    (Parameters(64, (16,), 32), 4),
    (Parameters(32, (32,), 4), 4),
]

LATENCY = 9  # cycles from the last beat of a tensor to its last bits


class _Driver:
    def __init__(self, dut: Any) -> None:
        self.bench = Bench(dut)
        arguments = self.bench.arguments
        pause = arguments["pause"]
        self.parameters: Parameters = arguments["parameters"]
        self.beats: int = arguments["beats"]
        p = self.parameters
        self.chunks = self.bench.source("chunks", chunk_record(p), pause)
        self.summaries = self.bench.source("summaries", block_summary(p), pause)
        self.raw = self.bench.source("beats", None, pause)
        self.wire_bytes = p.block_bits // self.beats // 4
        self.wire = self.bench.sink("wire", beat(self.wire_bytes), pause)

    def send(self, made: Tensor, label: str) -> None:
        self.chunks.extend(made.records)
        self.summaries.extend(made.summaries)
        self.raw.extend(made.beats)
        self.wire.extend(wire_beats(made.wire, self.wire_bytes), label)

    def tensor(self, data: bytes, w: int, choose: Any, **options: Any) -> Tensor:
        noise = self.bench.rng.getrandbits(16)
        return tensor(data, w, self.parameters, self.beats, choose, noise=noise, **options)


def _cut(rng: Any, data: bytes, limit: int) -> list[bytes]:
    """``data`` as tensors of random lengths, small ones often."""
    cuts = []
    while data:
        size = min(rng.choice((1, rng.randrange(1, limit), rng.randrange(1, 4 * limit))), len(data))
        cuts.append(data[:size])
        data = data[size:]
    return cuts


@cocotb.test()
async def tensors(dut: Any) -> None:
    """Corner and random blocks as tensors of both widths, every mode, tag by tag."""
    driver = _Driver(dut)
    bench, p = driver.bench, driver.parameters
    await bench.reset()
    rng = bench.rng
    made: list[tuple[int, bytes]] = []
    for w in p.symbol_bits:
        blocks = blocks_of(rng, 0, w, p)
        blocks = rng.sample(blocks, min(len(blocks), bench.arguments["blocks"]))
        blocks += [random_block(rng, w, p) for _ in range(bench.arguments["blocks"])]
        rng.shuffle(blocks)
        made += [(w, cut) for cut in _cut(rng, b"".join(blocks), p.chunk_bits // 8)]
    rng.shuffle(made)
    limit = 1 << (p.chunk_bits // 8).bit_length()  # of the record's field
    for w, data in made:
        kind = rng.randrange(8)
        if kind < 3:
            one = driver.tensor(data, w, smallest(p))
            assert one.wire == encode_tensor(data, w, p)
            label = "smallest"
        elif kind == 3:
            one = driver.tensor(data, w, smallest(p), bypass=True)
            assert one.wire == data
            label = "bypass"
        elif kind == 4:
            one = driver.tensor(data, w, smallest(p), raw=lambda coded, whole: rng.random() < 0.5)
            label = "raw"
        else:
            tag = rng.choice(sorted(p.encodings))
            one = driver.tensor(data, w, forced(tag, p), raw=lambda coded, whole: coded >= limit)
            label = tag.name
        driver.send(one, f"{label} {w} {len(data)} bytes")
    await bench.finish()


@cocotb.test()
async def rate(dut: Any) -> None:
    """A beat is taken in every cycle, whatever the lengths, widths, tags and modes."""
    driver = _Driver(dut)
    bench, p = driver.bench, driver.parameters
    await bench.reset()
    rng, block = bench.rng, p.block_bits // 8
    full = p.blocks_per_chunk
    beats = 0
    for count in (1, 1, 2, full, 1, full + 1, 3, 1, 2 * full, 1, 1):
        w = rng.choice(p.symbol_bits)
        data = b"".join(random_block(rng, w, p) for _ in range(count))
        data = rng.choice((data, rng.randbytes(len(data))))[: len(data) - rng.randrange(block)]
        one = driver.tensor(data, w, smallest(p), bypass=rng.random() < 0.2)
        beats += len(one.beats)
        driver.send(one, f"{w} {len(data)} bytes")
    await bench.finish()
    times = driver.raw.times
    assert times == list(range(times[0], times[0] + beats))
    latency = bench.monitor_of(driver.wire).times[-1] - times[-1]
    assert latency == LATENCY, latency


@slow
@sizes([GEOMETRIES[k] for k in (0, 5, 6)])
def test_rate(parameters: Parameters, beats: int) -> None:
    arguments = {"parameters": parameters, "beats": beats, "pause": "never"}
    run_bench(Serializer(parameters, beats), __name__, arguments=arguments, testcase="rate")


@pytest.mark.parametrize("encoding", sampled(sorted(ALL_ENCODINGS - {Tag.RAW}), Tag.ZBX))
def test_without_encoding(encoding: Tag) -> None:
    parameters = Parameters(16, (4, 8), 2, ALL_ENCODINGS - {encoding})
    arguments = {"parameters": parameters, "beats": 4, "blocks": 60, "pause": "random"}
    run_bench(Serializer(parameters, 4), __name__, arguments=arguments, testcase="tensors")


@pytest.mark.parametrize("more", sampled([(), (Tag.ZVC,), (Tag.DBX,)], (Tag.DBX,)))
def test_few_encodings(more: tuple[Tag, ...]) -> None:
    parameters = Parameters(8, (8,), 2, frozenset({Tag.RAW, *more}))
    arguments = {"parameters": parameters, "beats": 4, "blocks": 60, "pause": "cyclic"}
    run_bench(Serializer(parameters, 4), __name__, arguments=arguments, testcase="tensors")


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="parameters must be a Parameters object, not 64"):
        Serializer(64)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"beats_per_block must be an integer, not 4\.0"):
        Serializer(DEFAULT, 4.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="narrowest symbol's bits, not 3"):
        Serializer(DEFAULT, 3)
    with pytest.raises(ValueError, match=r"whole bytes and whole symbols, not 4\.0 bits"):
        Serializer(Parameters(4, (4,), 2), 4)


@pytest.mark.parametrize("pause", sampled(PATTERNS, "random"))
@sizes(GEOMETRIES, 1, 4)
def test_tensors(parameters: Parameters, beats: int, pause: str) -> None:
    blocks = 40 if parameters.block_bits > 100 else 300
    arguments = {"parameters": parameters, "beats": beats, "blocks": blocks, "pause": pause}
    run_bench(Serializer(parameters, beats), __name__, arguments=arguments, testcase="tensors")
