"""Completer: sums of chunk reports, first fault, cycles, and when a completion may be told."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import cocotb
import pytest

from planezip.hdl.completer import Completer
from planezip.hdl.decoder_types import decode_report
from planezip.hdl.engine_types import chunk_order, completion, tensor_end
from planezip.hdl.types import chunk_report
from planezip.model.errors import ErrorCode
from planezip.model.format import DEFAULT, HEADER_BYTES, Tag
from tb.bench import Bench
from tb.run import run_bench

LANES = 2
NOW = 123_456


@dataclass(frozen=True)
class Told:
    """A tensor: lane and report of each chunk, and what the dealer says of it."""

    chunks: list[tuple[int, dict[str, Any]]]
    end: dict[str, Any]
    bare: int


def random_tensor(rng: random.Random, number: int) -> Told:
    count = rng.choice((0, 1, 1, 2, rng.randint(1, 9)))
    chunks = []
    for k in range(count):
        error = rng.choice((0, 0, 0, rng.randint(1, 9)))
        report = {
            "body_bytes": rng.randint(0, 4096),
            "blocks": [rng.randint(0, 32) for _ in Tag],
            "raw": rng.getrandbits(1),
            "last": int(k == count - 1),
            "error": error,
            "block": rng.randrange(32) if error else 0,
        }
        chunks.append((rng.randrange(LANES), report))
    end = {
        "tag": number,
        "raw_bytes": rng.getrandbits(40),
        "wire_bytes": rng.getrandbits(41),
        "start": rng.randrange(NOW),
        "framing": rng.getrandbits(1),
        "extra": int(rng.random() < 0.2),
        "output": int(count > 0 and rng.random() < 0.7),
    }
    return Told(chunks, end, rng.getrandbits(1))


def expected(tensor: Told, decompress: bool) -> dict[str, Any]:
    """Software model: the completion of a tensor."""
    reports = [report for _, report in tensor.chunks]
    headers = 0 if tensor.bare else HEADER_BYTES
    written = sum(report["body_bytes"] + headers for report in reports)
    end = tensor.end
    fields = {
        "tag": end["tag"],
        "framing": end["framing"],
        "raw_bytes": end["raw_bytes"],
        "wire_bytes": end["wire_bytes"] if decompress else written,
        "cycles": NOW - end["start"],
        "blocks": [sum(report["blocks"][tag] for report in reports) for tag in Tag],
    }
    if decompress:
        faults = [(r["error"], k, r["block"]) for k, r in enumerate(reports) if r["error"]]
        if not faults and end["extra"]:
            faults = [(ErrorCode.EXTRA.value, max(0, len(reports) - 1), 0)]
        if faults:
            fields["error"], fields["chunk"], fields["block"] = faults[0]
    return fields


@cocotb.test()
async def completions_are_summed(dut: Any) -> None:
    """Reports, ends and last bytes in any order of time."""
    for pause in ("never", "random", "cyclic"):
        bench = Bench(dut)
        decompress: bool = bench.arguments["decompress"]
        layout = decode_report(DEFAULT) if decompress else chunk_report(DEFAULT)
        tally = bench.source("tally", chunk_order(LANES), pause)
        reports = [bench.source(f"reports__{k}", layout, pause) for k in range(LANES)]
        ends = bench.source("ends", tensor_end(), pause)
        told = bench.sink("completion", completion(DEFAULT), pause)
        dut.now.value = NOW
        dut.sent.value = 0
        await bench.reset()
        waiting = []
        for number in range(150):
            tensor = random_tensor(bench.rng, number)
            order = {"bare": tensor.bare}
            for k, (lane, report) in enumerate(tensor.chunks):
                tally.send({**order, "lane": lane, "last": int(k == len(tensor.chunks) - 1)})
                sent = {name: report[name] for name, _ in layout}
                reports[lane].send(sent)
            if not tensor.chunks:
                tally.send({**order, "last": 1, "none": 1})
            ends.send(tensor.end)
            told.expect(expected(tensor, decompress))
            waiting.append(tensor.end["output"])
        outputs, pulses = sum(waiting), 0
        while told.left:
            now = int(pulses < outputs and bench.rng.random() < 0.2)
            dut.sent.value = now
            await bench.step()
            pulses += now
            assert sum(waiting[: told.checked]) <= pulses  # none before its last byte
        dut.sent.value = 0
        await bench.finish()


@pytest.mark.parametrize("decompress", [False, True])
def test_completer(decompress: bool) -> None:
    component = Completer(DEFAULT, LANES, decompress)
    run_bench(component, __name__, arguments={"decompress": decompress})
