# amaranth: UnusedElaboratable=no
"""The bulk harness itself, around a lane that only repacks: every kind of fault is caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth import Module, Mux, Signal
from amaranth.hdl import unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.types import beat, descriptor
from planezip.model.format import BLOCK_BYTES, Parameters
from planezip.model.generate import mixed
from tb.harness.bulk import Result, Stalls, build_lane, run_lane
from tb.harness.expected import Records, beats, descriptors, raw_words, words_to_bytes
from tb.harness.lanes import Lane
from tb.harness.tensors import Tensor, as_blocks, cut, distinct
from tb.marks import slow
from tb.run import default_simulator

pytestmark = slow  # of the benches themselves


class Repacker(wiring.Component):
    """Raw words to wire beats, one tensor after the other, reporting its length.

    The words are doubled up to 64 bytes; ``slow`` adds a bubble before each tensor, and
    ``leak`` forgets to clear a word between tensors that a reset should clear.
    """

    def __init__(self, slow: int = 0, leak: bool = False) -> None:
        self._slow = slow
        self._leak = leak
        super().__init__(
            {
                "descriptor": In(stream.Signature(descriptor())),
                "raw": In(stream.Signature(unsigned(256))),
                "wire": Out(stream.Signature(beat(64))),
                "report": Out(stream.Signature(unsigned(40))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        left = Signal(40)
        low = Signal(256)
        odd = Signal(reset_less=self._leak)
        wait = Signal(range(self._slow + 2))
        out = self.wire.payload
        size = self.descriptor.payload.raw_bytes
        free = ~self.wire.valid | self.wire.ready
        last = left <= 32
        word = self.raw.payload & Mux(last, (1 << (left[:6] * 8)) - 1, -1)
        with m.If(self.wire.ready):
            m.d.sync += self.wire.valid.eq(0)
        with m.If(self.report.ready):
            m.d.sync += self.report.valid.eq(0)
        with m.If(left == 0):
            m.d.comb += self.descriptor.ready.eq(~self.report.valid & (wait == self._slow))
            m.d.sync += wait.eq(wait + (wait != self._slow))
            with m.If(self.descriptor.ready & self.descriptor.valid):
                m.d.sync += [left.eq(size), self.report.valid.eq(1), self.report.payload.eq(size)]
        with m.Else():
            m.d.comb += self.raw.ready.eq(free)
            with m.If(self.raw.valid & free):
                m.d.sync += [
                    low.eq(word),
                    odd.eq(~odd & ~last),
                    left.eq(left - 32),
                ]
                with m.If(last):
                    m.d.sync += [left.eq(0), wait.eq(0)]
                with m.If(odd | last):
                    m.d.sync += [
                        self.wire.valid.eq(1),
                        out.last.eq(last),
                        out.bytes.eq(64),
                        out.data[:256].eq(low),
                        out.data[256:].eq(word),
                    ]
                    with m.If(last):
                        m.d.sync += out.bytes.eq(left[:6] + odd * 32)
                    with m.If(~odd):
                        m.d.sync += out.data.eq(word)
        return m


def records(tensors: Sequence[Tensor]) -> Records:
    return Records(
        descriptors(tensors),
        b"".join(raw_words(tensor.data) for tensor in tensors),
        b"".join(beats(tensor.data, beat(64)) for tensor in tensors),
        words_to_bytes((len(tensor.data) for tensor in tensors), 40),
    )


def lane(**arguments: Any) -> Lane:
    def make(_: Parameters) -> Repacker:
        return Repacker(**arguments)

    # a cycle goes to the descriptor: 4 a block, and one more per tensor
    name = "_".join(["repacker", *arguments])
    return Lane(name, make, "raw", "wire", "in", records, cycles_per_block=5)


@pytest.fixture(scope="module")
def tensors() -> list[Tensor]:
    seen: set[bytes] = set()
    return cut(distinct(mixed(600, 16, seed=1), seen), 16, 1, seen, empty=0.2)


def run(lane: Lane, tensors: Sequence[Tensor], **arguments: Any) -> Result:
    simulator = default_simulator("verilator")
    return run_lane(lane, build_lane(lane, simulator), simulator, tensors, "test", **arguments)


def test_full_rate(tensors: list[Tensor]) -> None:
    result = run(lane(), tensors)
    assert not result.problems
    assert not result.mismatches
    assert result.blocks >= 500
    assert result.latency_cycles == 2
    assert 3.9 <= result.cycles_per_block_mean < 5
    assert result.cycles_per_block_mean <= result.cycles_per_block_max <= 5


@pytest.mark.parametrize("stalls", [Stalls(1, 0), Stalls(0, 3), Stalls(2, 2), Stalls(4, 1)])
def test_stalls(tensors: list[Tensor], stalls: Stalls) -> None:
    result = run(lane(), tensors, stalls=stalls)
    assert not result.problems
    assert result.cycles_per_block_mean > 5


def test_reset_in_the_middle(tensors: list[Tensor]) -> None:
    assert not run(lane(), tensors, reset_at=1002).problems


def test_reset_that_leaves_state_is_caught(tensors: list[Tensor]) -> None:
    results = [run(lane(leak=True), tensors, reset_at=at) for at in range(1000, 1004)]
    assert any(result.mismatches for result in results)


def test_slow_lane_is_caught(tensors: list[Tensor]) -> None:
    result = run(lane(slow=200), tensors)
    assert not result.mismatches
    assert "cycles instead of" in result.problems[0]


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


WIRE = 66  # bytes of a record of out.bin
FAULTS = {
    "bit": (lambda r: replace(r, output=_flip(r.output, 10 * WIRE + 64)), "out beat 10"),
    "missing beat": (
        lambda r: replace(r, output=r.output[: 20 * WIRE] + r.output[19 * WIRE :]),
        "wrong from bit",
    ),
    "extra beat": (lambda r: replace(r, output=r.output[:-WIRE]), "one too many"),
    "report": (lambda r: replace(r, reports=_flip(r.reports, 4)), "report beat 0"),
    "last": (
        lambda r: replace(
            r, output=r.output[:-WIRE] + bytes([r.output[-WIRE] ^ 128]) + r.output[1 - WIRE :]
        ),
        "wrong from bit 519",
    ),
    "hang": (lambda r: replace(r, input=r.input[:-33]), "nothing moves"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(tensors: list[Tensor], fault: str) -> None:
    change, message = FAULTS[fault]
    faulty = replace(lane(), records=lambda tensors: change(records(tensors)))
    result = run(faulty, tensors)
    assert result.mismatches
    assert message in "\n".join(result.problems)


def test_blocks_are_distinct_and_all_there() -> None:
    seen: set[bytes] = set()
    blocks = np.concatenate([mixed(3000, 32, seed=2)] * 2)
    tensors = cut(distinct(blocks, seen), 32, 5, seen, empty=0.2)
    cut_blocks = as_blocks(tensor.data for tensor in tensors)
    assert len({block.tobytes() for block in cut_blocks}) == len(cut_blocks)
    assert len(cut_blocks) == len({block.tobytes() for block in blocks})
    assert any(len(tensor.data) % BLOCK_BYTES for tensor in tensors)
    assert any(not tensor.data for tensor in tensors)
