"""Splitter and dealer: who gets which bytes of a tensor, against their software models."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import pytest

from planezip.hdl.balance import least
from planezip.hdl.dealer import Dealer
from planezip.hdl.engine_types import EngineGeometry, chunk_order, engine_descriptor, tensor_end
from planezip.hdl.splitter import Splitter, parts
from planezip.hdl.types import ElementType, Mode, beat, descriptor
from planezip.model.format import HEADER_BYTES, Parameters
from tb.bench import Bench
from tb.marks import sampled
from tb.rows import rows_of
from tb.run import run_bench

SMALL = Parameters(64, (16, 32), 4)
LANES = (1, 2, 4)
PAUSES = ("never", "random", "cyclic")


class DealBench(Bench):
    """With the ports that both have, all pausing alike."""

    def __init__(self, dut: Any, pause: str) -> None:
        super().__init__(dut)
        self.parameters: Parameters = self.arguments["parameters"]
        self.geometry = g = EngineGeometry(self.parameters, self.arguments["lanes"])
        self.descriptors = self.source("descriptor", engine_descriptor(), pause)
        self.works = [self.sink(f"descriptors__{k}", descriptor(), pause) for k in range(g.lanes)]
        self.merge = self.sink("merge", chunk_order(g.lanes), pause)
        self.tally = self.sink("tally", chunk_order(g.lanes), pause)
        self.ends = self.sink("ends", tensor_end(), pause)
        dut.now.value = 0


def random_stream(rng: random.Random, raw_bytes: int, mode: Mode, p: Parameters) -> bytes:
    """A stream with headers in range, most of the time."""
    chunk, block = p.chunk_bits // 8, p.block_bits // 8
    if mode == Mode.BYPASS:
        return rng.randbytes(raw_bytes)
    made = b""
    for first in range(0, raw_bytes, chunk):
        padded = -(-min(chunk, raw_bytes - first) // block) * block
        size = rng.choice((rng.randint(1, padded), padded, 5))
        if rng.random() < 0.03:
            size = rng.randint(padded + 1, 0xFFFF)
        made += size.to_bytes(HEADER_BYTES, "little") + rng.randbytes(min(size, padded))
    return made


@cocotb.test()
async def streams_are_split(dut: Any) -> None:
    """Good streams, and those that are cut off, go on or have headers out of range."""
    for pause in PAUSES:
        bench = DealBench(dut, pause)
        p, g = bench.parameters, bench.geometry
        wire = bench.source("wire", beat(g.wire), pause)
        rows = [bench.monitor(f"rows__{k}", beat(g.wire), pause) for k in range(g.lanes)]
        works, merge, tally, ends = bench.works, bench.merge, bench.tally, bench.ends
        await bench.reset()
        rng = bench.rng
        expected: list[list[bytes]] = [[] for _ in range(g.lanes)]
        loads = [0] * g.lanes
        for number in range(120):
            mode = rng.choice((Mode.STREAM, Mode.STREAM, Mode.BYPASS, Mode.MEASURE))
            raw_bytes = rng.choice((0, 1, g.block, g.chunk, rng.randrange(5 * g.chunk)))
            stream = random_stream(rng, raw_bytes, mode, p)
            kind = rng.randrange(6)
            if kind == 0:
                stream = stream[: rng.randrange(len(stream) + 1)]
            elif kind == 1:
                stream += rng.randbytes(rng.choice((1, rng.randint(1, 3 * g.wire))))
            framing = int(bool(stream) and rng.random() < 0.1)
            dtype = rng.choice((ElementType.BFLOAT16, ElementType.INT8))
            bench.descriptors.send(
                {
                    "raw_bytes": raw_bytes,
                    "wire_bytes": len(stream),
                    "dtype": dtype,
                    "mode": mode,
                    "tag": number,
                }
            )
            if stream:
                beats = rows_of(rng, stream, g.wire, noise=True)
                if framing:
                    wrong = rng.choice(beats)
                    if rng.random() < 0.5:
                        wrong["last"] ^= 1
                    else:
                        wrong["bytes"] = (wrong["bytes"] + rng.randint(1, g.wire)) % (g.wire + 1)
                wire.extend(beats)
            found = parts(stream, raw_bytes, mode, p)
            order = {"bare": int(mode == Mode.BYPASS)}
            for k, part in enumerate(found):
                lane = least(loads)
                expected[lane].append(part)
                entry = {**order, "lane": lane, "last": int(k == len(found) - 1)}
                size = min(g.chunk, raw_bytes - k * g.chunk)
                works[lane].expect({"dtype": dtype, "mode": mode, "raw_bytes": size})
                tally.expect(entry)
                if mode != Mode.MEASURE:
                    merge.expect(entry)
                loads[lane] += -(-size // g.block)
            if not raw_bytes:
                lane = least(loads)
                tally.expect({**order, "lane": lane, "last": 1, "none": 1})
            taken = sum(map(len, found))
            faulty = any(short(part, k, raw_bytes, mode, p) for k, part in enumerate(found))
            ends.expect(
                {
                    "tag": number,
                    "raw_bytes": raw_bytes,
                    "wire_bytes": len(stream),
                    "framing": framing,
                    "extra": int(taken < len(stream) and not faulty),
                    "output": int(mode != Mode.MEASURE and raw_bytes > 0),
                }
            )
        await bench.finish()
        for monitor, chunks in zip(rows, expected, strict=True):
            assert joined(monitor, g.wire) == chunks


def short(part: bytes, number: int, raw_bytes: int, mode: Mode, p: Parameters) -> bool:
    """Whether the lane cannot get the chunk as a whole."""
    want = min(p.chunk_bits // 8, raw_bytes - number * p.chunk_bits // 8)
    if mode == Mode.BYPASS:
        return len(part) < want
    if len(part) < HEADER_BYTES:
        return True
    return len(part) < HEADER_BYTES + int.from_bytes(part[:HEADER_BYTES], "little")


def joined(monitor: Any, size: int) -> list[bytes]:
    """The chunks that a monitor of rows has seen; only their last row may be partial."""
    chunks, data = [], b""
    for value in monitor.values:
        row = monitor.port.unpack(value)
        assert row["last"] or row["bytes"] == size
        data += row["data"].to_bytes(size, "little")[: row["bytes"]]
        if row["last"]:
            chunks.append(data)
            data = b""
    assert not data
    return chunks


@pytest.mark.parametrize("lanes", sampled(LANES))
def test_splitter(lanes: int) -> None:
    arguments = {"parameters": SMALL, "lanes": lanes}
    component = Splitter(SMALL, lanes)
    run_bench(component, __name__, arguments=arguments, testcase="streams_are_split")


def tensor_descriptor(rng: random.Random, number: int, raw_bytes: int) -> dict[str, Any]:
    """Of a raw tensor; the dealer does not look at the length of a stream."""
    return {
        "raw_bytes": raw_bytes,
        "wire_bytes": rng.getrandbits(41),
        "dtype": rng.choice((ElementType.BFLOAT16, ElementType.INT8)),
        "mode": rng.choice((Mode.STREAM, Mode.BYPASS, Mode.MEASURE)),
        "tag": number,
    }


@cocotb.test()
async def tensors_are_dealt(dut: Any) -> None:
    """Chunks of raw tensors to the lanes, each output with pauses of its own."""
    for pause in PAUSES:
        bench = DealBench(dut, pause)
        g = bench.geometry
        raw = bench.source("raw", beat(g.raw), pause)
        rows = [bench.sink(f"rows__{k}", beat(g.raw), pause) for k in range(g.lanes)]
        works, merge, tally, ends = bench.works, bench.merge, bench.tally, bench.ends
        await bench.reset()
        rng, loads, beats_in, empty = bench.rng, [0] * g.lanes, 0, 0
        for number in range(120):
            raw_bytes = rng.choice((0, 1, g.raw, g.block, g.chunk, rng.randrange(5 * g.chunk)))
            new = tensor_descriptor(rng, number, raw_bytes)
            order = {"bare": int(new["mode"] == Mode.BYPASS)}
            bench.descriptors.send(new)
            beats = rows_of(rng, rng.randbytes(raw_bytes), g.raw, noise=True) if raw_bytes else []
            beats_in, empty = beats_in + len(beats), empty + int(not beats)
            framing = int(bool(beats) and rng.random() < 0.1)
            sent = [dict(each) for each in beats]
            if framing:
                rng.choice(sent)["last"] ^= 1
            raw.extend(sent)
            for first in range(0, raw_bytes, g.chunk):
                lane, size = least(loads), min(g.chunk, raw_bytes - first)
                entry = {**order, "lane": lane, "last": int(first + size == raw_bytes)}
                works[lane].expect({"dtype": new["dtype"], "mode": new["mode"], "raw_bytes": size})
                tally.expect(entry)
                if new["mode"] != Mode.MEASURE:
                    merge.expect(entry)
                chunk = beats[first // g.raw : -(-(first + size) // g.raw)]
                rows[lane].extend([*chunk[:-1], {**chunk[-1], "last": 1}])
                loads[lane] += -(-size // g.block)
            if not raw_bytes:
                tally.expect({**order, "lane": least(loads), "last": 1, "none": 1})
            ends.expect(
                {
                    "tag": number,
                    "raw_bytes": raw_bytes,
                    "framing": framing,
                    "output": int(new["mode"] != Mode.MEASURE and raw_bytes > 0),
                }
            )
        began = bench.cycle
        await bench.finish()
        if pause == "never":  # a beat a cycle, an empty tensor a cycle, and the first descriptor
            assert bench.monitor_of(ends).times[-1] - began == beats_in + empty


@cocotb.test()
async def nothing_waits_for_ready(dut: Any) -> None:
    """All outputs of a step are offered while none is ready, and taken one at a time."""
    bench = Bench(dut)
    p: Parameters = bench.arguments["parameters"]
    g = EngineGeometry(p, 1)
    source = bench.arguments["source"]
    size = g.raw if source == "raw" else g.wire
    descriptors, data = (
        bench.source("descriptor", engine_descriptor()),
        bench.source(source, beat(size)),
    )
    steps = [["descriptors__0", "tally", "merge"], ["rows__0", "ends"]]
    ports = {name: getattr(dut, name + "__valid") for step in steps for name in step}
    dut.now.value = 0
    for name in ports:
        getattr(dut, name + "__ready").value = 0
    await bench.reset()
    wire = HEADER_BYTES + 1
    descriptors.send({"raw_bytes": 1, "wire_bytes": wire, "mode": Mode.STREAM})
    data.send({"data": 1, "bytes": wire if source == "wire" else 1, "last": 1})
    await bench.step(8)
    offers = [steps[0] + steps[1]] if source == "raw" else steps
    for step in offers:
        left = list(step)
        bench.rng.shuffle(left)
        while left:
            assert [name for name in ports if int(ports[name].value)] == [
                name for name in ports if name in left
            ]
            ready = getattr(dut, left.pop() + "__ready")
            ready.value = 1
            await bench.step()
            ready.value = 0
            await bench.step(8)
    assert not any(int(valid.value) for valid in ports.values())


DEALING = {"raw": Dealer, "wire": Splitter}


@pytest.mark.parametrize("source", sorted(DEALING))
def test_no_output_waits(source: str) -> None:
    arguments = {"parameters": SMALL, "source": source}
    component = DEALING[source](SMALL, 1)
    run_bench(component, __name__, arguments=arguments, testcase="nothing_waits_for_ready")


@pytest.mark.parametrize("lanes", sampled(LANES, 2))
def test_dealer(lanes: int) -> None:
    arguments = {"parameters": SMALL, "lanes": lanes}
    component = Dealer(SMALL, lanes)
    run_bench(component, __name__, arguments=arguments, testcase="tensors_are_dealt")
