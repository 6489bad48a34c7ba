"""The bench library itself: a good component passes, each kind of fault is caught."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from amaranth import Module, Signal
from amaranth.hdl import unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tb.bench import Bench
from tb.cached import cached_verilog
from tb.layouts import fields_at, pack, unpack
from tb.marks import slow
from tb.run import BenchFailure, run_bench

pytestmark = slow  # of the benches themselves

LAYOUT = data.StructLayout({"data": unsigned(40), "last": 1})
FAULTS = {
    "wrong_data": "value 10 is wrong",
    "missing_last": "last bit 0",
    "missing_beat": "missing after 39",
    "extra_beat": "one too many, after 40",
    "x": "X in output.payload",
    "unstable": "payload changed before ready rose",
    "drops_valid": "valid fell before ready rose",
}


class Increment(wiring.Component):
    """Adds one to each value, one cycle later; with a fault if asked for."""

    def __init__(self, fault: str = "") -> None:
        self._fault = fault
        super().__init__(
            {"input": In(stream.Signature(LAYOUT)), "output": Out(stream.Signature(LAYOUT))}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        count = Signal(8)
        held = Signal(3)
        source, sink = self.input, self.output
        m.d.comb += source.ready.eq(sink.ready | ~sink.valid)
        with m.If(sink.valid & ~sink.ready):
            m.d.sync += held.eq(held + 1)
            if self._fault == "unstable":
                m.d.sync += sink.payload.data[0].eq(held[0])
            if self._fault == "drops_valid":
                m.d.sync += sink.valid.eq(held != 3)
        with m.If(source.ready):
            m.d.sync += [
                sink.valid.eq(source.valid),
                sink.payload.data.eq(source.payload.data + 1),
                sink.payload.last.eq(source.payload.last),
                count.eq(count + source.valid),
            ]
            with m.If(source.valid):
                if self._fault == "wrong_data":
                    with m.If(count == 10):
                        m.d.sync += sink.payload.data[7].eq(~source.payload.data[7])
                if self._fault == "missing_last":
                    with m.If(count == 39):
                        m.d.sync += sink.payload.last.eq(0)
                if self._fault == "missing_beat":
                    with m.If(count == 39):
                        m.d.sync += sink.valid.eq(0)
            if self._fault == "extra_beat":
                with m.If(~source.valid & (count == 40)):
                    m.d.sync += [sink.valid.eq(1), sink.payload.eq(0), count.eq(0)]
            if self._fault == "x":  # idle input, taken for a value
                with m.If(~source.valid & (count == 20)):
                    m.d.sync += [sink.valid.eq(1), count.eq(0)]
        return m


@cocotb.test()
async def increments(dut: Any) -> None:
    bench = Bench(dut)
    pauses = bench.arguments["pauses"]
    source = bench.source("input", LAYOUT, pauses[0])
    output = bench.sink("output", LAYOUT, pauses[1])
    await bench.reset()
    values = [bench.rng.getrandbits(30) for _ in range(40)]
    source.extend({"data": v, "last": k == 39} for k, v in enumerate(values))
    output.extend({"data": v + 1, "last": k == 39} for k, v in enumerate(values))
    await bench.finish(timeout_cycles=200)
    times = bench.monitor_of(output).times
    if pauses == ["never", "never"]:
        assert times == [t + 1 for t in source.times] == list(range(times[0], times[0] + 40))


@pytest.mark.parametrize("output", ["never", "cyclic", "random"])
@pytest.mark.parametrize("source", ["never", "cyclic", "random"])
def test_good_component_passes(source: str, output: str) -> None:
    assert run_bench(Increment(), __name__, arguments={"pauses": [source, output]}) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(fault: str) -> None:
    source = "random" if fault == "x" else "never"
    with pytest.raises(BenchFailure) as failure:
        run_bench(
            Increment(fault), __name__, simulator="icarus", arguments={"pauses": [source, "cyclic"]}
        )
    assert FAULTS[fault] in str(failure.value)
    assert "COCOTB_RANDOM_SEED=1" in str(failure.value)


def test_no_test_is_a_failure() -> None:
    with pytest.raises(BenchFailure, match="no test ran"):
        run_bench(Increment(), __name__, testcase="not_there")


def test_layouts() -> None:
    layout = data.StructLayout({"a": unsigned(3), "b": data.ArrayLayout(unsigned(2), 3), "c": 1})
    assert pack(layout, {"a": 5, "b": [1, 2, 3], "c": 1}) == 5 | (1 | 2 << 2 | 3 << 4) << 3 | 1 << 9
    assert unpack(layout, pack(layout, {"b": [3, 0, 1]})) == {"a": 0, "b": [3, 0, 1], "c": 0}
    assert fields_at(layout, 6) == "b[1] bit 1"
    with pytest.raises(ValueError, match="fit in 3 bits"):
        pack(layout, {"a": 8})


class Opaque(Increment):
    """Has an attribute that does not tell what it is."""

    def __init__(self) -> None:
        super().__init__()
        self._parts = [object()]


def test_a_component_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(TypeError, match="opaque could not be kept: these need a __repr__: object"):
        cached_verilog(Opaque(), "opaque")
