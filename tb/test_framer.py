# amaranth: UnusedElaboratable=no
"""Framer against its model: beats, padding, marks, every length around a boundary, rate."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.framer import Framer, framed, framed_beat, width_of
from planezip.hdl.types import ElementType, Mode, descriptor
from planezip.model.format import DEFAULT, Parameters
from tb.bench import Bench
from tb.marks import sampled
from tb.pauses import PATTERNS
from tb.run import run_bench

CASES = {
    "default": (DEFAULT, 4),
    "small": (Parameters(16, (4, 8), 2), 4),
    "chunks_of_8": (Parameters(16, (4, 8), 8), 2),
    "one_width": (Parameters(8, (8,), 2), 2),
    "4x4": (Parameters(4, (4,), 2), 2),
}


def lengths(p: Parameters, beats: int) -> list[int]:
    """Lengths in bytes around beats, blocks and chunks, and none at all."""
    block = p.block_bits // 8
    chunk = block * p.blocks_per_chunk
    marks = (block // beats, block, 2 * block, chunk, chunk + block, 2 * chunk)
    near = {mark + k for mark in marks for k in (-1, 0, 1)}
    return [0, 0, *sorted(size for size in near if size > 0), 2 * chunk + block + 1]


@cocotb.test()
async def tensors(dut: Any) -> None:
    bench = Bench(dut)
    p, beats, pause = (bench.arguments[name] for name in ("parameters", "beats", "pause"))
    size = p.block_bits // 8 // beats
    descriptors = bench.source("descriptor", descriptor(), pause)
    raw = bench.source("raw", None, pause)
    out = bench.sink("beats", framed_beat(p, beats), pause)
    await bench.reset()
    sizes = lengths(p, beats) * 2
    bench.rng.shuffle(sizes)
    sizes.append(1)  # so that an empty tensor is not the last one
    for number, length in enumerate(sizes):
        tensor = bench.rng.randbytes(length)
        dtype, mode = bench.rng.choice(list(ElementType)), bench.rng.choice(list(Mode))
        descriptors.send({"dtype": dtype, "raw_bytes": length, "mode": mode, "tag": number % 256})
        for at in range(0, length, size):
            part = tensor[at : at + size]
            noise = bench.rng.randbytes(size - len(part))
            raw.send(int.from_bytes(part + noise, "little"))
        expected = framed(tensor, dtype, mode, p, beats)
        out.extend(expected, f"tensor {number} ({length} bytes, {dtype.name}, {mode.name})")
    await bench.finish()
    if pause == "never":  # a beat a cycle, and a cycle for each tensor without bytes
        times = bench.monitor_of(out).times
        empty = sizes.count(0)
        assert times[-1] - times[0] <= len(times) - 1 + empty


@cocotb.test()
async def a_long_tensor(dut: Any) -> None:
    """The count of beats has all its bits: the largest length is not taken for a short one."""
    bench = Bench(dut)
    p, beats = bench.arguments["parameters"], bench.arguments["beats"]
    descriptors = bench.source("descriptor", descriptor())
    raw = bench.source("raw")
    out = bench.monitor("beats", framed_beat(p, beats))
    size = p.block_bits // 8 // beats
    count = 3 * beats * p.blocks_per_chunk
    ways = [1 << bit for bit in range((count * size).bit_length(), 40)]
    for length in [*ways, (1 << 40) - 1]:
        await bench.reset()
        first = len(out.values)
        descriptors.send(
            {"dtype": ElementType.INT8, "raw_bytes": length, "mode": Mode.STREAM, "tag": 0}
        )
        raw.extend([1] * count)
        await bench.step(count + 2)
        assert len(out.values) == first + count
        ends = [out.port.unpack(value)["meta"]["last_of_tensor"] for value in out.values[first:]]
        assert not any(ends), length


@pytest.mark.parametrize("pause", sampled(PATTERNS, "random"))
@pytest.mark.parametrize("case", CASES)
def test_framer(case: str, pause: str) -> None:
    p, beats = CASES[case]
    arguments = {"parameters": p, "beats": beats, "pause": pause}
    component = Framer(p, beats)
    assert run_bench(component, __name__, arguments=arguments, testcase="tensors") == 1


def test_long_tensors() -> None:
    p, beats = CASES["small"]
    arguments = {"parameters": p, "beats": beats}
    component = Framer(p, beats)
    assert run_bench(component, __name__, arguments=arguments, testcase="a_long_tensor") == 1


def test_width_of_each_element_type() -> None:
    narrow = {dtype for dtype in ElementType if width_of(dtype) == 0}
    assert narrow == {ElementType.BFLOAT16, ElementType.FLOAT16}
    assert width_of(ElementType.BFLOAT16, CASES["one_width"][0]) == 0
    assert width_of(ElementType.FLOAT32, CASES["one_width"][0]) == 0
