"""Register file of the AXI wrapper against its map; tkeep of the AXI streams."""

from __future__ import annotations

import re
from typing import Any

import cocotb
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out
from cocotb.triggers import Timer

from planezip.hdl.axi_registers import AxiRegisters
from planezip.hdl.axi_stream import (
    axi_sink,
    axi_source,
    bytes_of_keep,
    connect_input,
    connect_output,
)
from planezip.hdl.engine_types import Activity, completion, engine_descriptor
from planezip.hdl.registers import BANK_REGISTERS, BANKS, COMMON, MAGIC, document
from planezip.hdl.types import ElementType, Mode, beat
from planezip.model.format import DEFAULT, Tag
from tb.bench import Bench
from tb.places import ROOT
from tb.run import run_bench
from tb.streams import read

OKAY, SLVERR = 0, 2
OFFSETS = {register.name: register.offset for register in (*COMMON, *BANK_REGISTERS)}


class RegisterBench(Bench):
    """An AXI4-Lite manager beside the streams of the bench."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        for name in ("awvalid", "wvalid", "arvalid"):
            getattr(dut, f"s_axil_{name}").value = 0
        for name in ("awaddr", "wdata", "wstrb", "araddr"):
            getattr(dut, f"s_axil_{name}").value = 0
        for bank in BANKS:
            for side in ("raw", "wire"):
                getattr(dut, f"{bank}__{side}_activity").value = Activity.IDLE.value
        dut.s_axil_bready.value = 1
        dut.s_axil_rready.value = 1

    async def _handshake(self, valid: tuple[str, ...], ready: str) -> None:
        for name in valid:
            getattr(self.dut, name).value = 1
        while True:
            await Timer(1, unit="ns")
            taken = read(getattr(self.dut, ready)) == 1
            await self.step()
            if taken:
                break
        for name in valid:
            getattr(self.dut, name).value = 0

    async def write(self, address: int, value: int, strobe: int = 15, stall: int = 0) -> int:
        """Write a word; the response, which is taken ``stall`` cycles late."""
        self.dut.s_axil_awaddr.value = address
        self.dut.s_axil_wdata.value = value
        self.dut.s_axil_wstrb.value = strobe
        self.dut.s_axil_bready.value = int(not stall)
        await self._handshake(("s_axil_awvalid", "s_axil_wvalid"), "s_axil_awready")
        await self.step(stall)
        assert read(self.dut.s_axil_bvalid) == 1
        response = read(self.dut.s_axil_bresp)
        self.dut.s_axil_bready.value = 1
        await self.step()
        assert read(self.dut.s_axil_bvalid) == 0
        return int(response)

    async def read(self, address: int, stall: int = 0) -> tuple[int, int]:
        """Data and response of a read."""
        self.dut.s_axil_araddr.value = address
        self.dut.s_axil_rready.value = int(not stall)
        await self._handshake(("s_axil_arvalid",), "s_axil_arready")
        await self.step(stall)
        assert read(self.dut.s_axil_rvalid) == 1
        data, response = read(self.dut.s_axil_rdata), read(self.dut.s_axil_rresp)
        self.dut.s_axil_rready.value = 1
        await self.step()
        assert read(self.dut.s_axil_rvalid) == 0
        return int(data), int(response)


@cocotb.test()
async def every_address(dut: Any) -> None:
    """What is in the map answers as the map says, everything else with SLVERR."""
    bench = RegisterBench(dut)
    for bank in BANKS:
        bench.monitor(f"{bank}__descriptor", engine_descriptor())
        bench.source(f"{bank}__completion", completion(DEFAULT)).send({"tag": 1})
    await bench.reset()
    access = {register.offset: register.access for register in COMMON}
    for base in BANKS.values():
        access |= {base + register.offset: register.access for register in BANK_REGISTERS}
    for address in range(0, 0x400, 4):
        rights = access.get(address, "")
        _, answer = await bench.read(address, stall=address // 4 % 3)
        assert answer == (OKAY if rights in ("RO", "RW") else SLVERR), hex(address)
        assert await bench.write(address, 0, strobe=7) == SLVERR
        written = await bench.write(address, 0x1234_5678, stall=address // 4 % 3)
        assert written == (OKAY if rights in ("RW", "WO") else SLVERR), hex(address)
        if rights == "RW" and address != OFFSETS["IRQ_ENABLE"]:
            assert await bench.read(address) == (0x1234_5678, OKAY)
    assert await bench.read(OFFSETS["ID"]) == (MAGIC, OKAY)
    config = 128 << 16 | 32 << 8 | 2
    assert await bench.read(OFFSETS["CONFIG"]) == (config, OKAY)


@cocotb.test()
async def descriptors_and_completions(dut: Any) -> None:
    """A descriptor goes out as it was written; a completion is shown until it is popped."""
    bench = RegisterBench(dut)
    pause = iter([1] * 400 + [0] * 10_000)
    sinks = {name: bench.sink(f"{name}__descriptor", engine_descriptor(), pause) for name in BANKS}
    sources = {name: bench.source(f"{name}__completion", completion(DEFAULT)) for name in BANKS}
    await bench.reset()
    await bench.write(OFFSETS["IRQ_ENABLE"], 2)
    for name, base in BANKS.items():
        fields: dict[str, Any] = {
            "raw_bytes": bench.rng.getrandbits(40),
            "wire_bytes": bench.rng.getrandbits(41),
            "dtype": ElementType.INT64,
            "mode": Mode.MEASURE,
            "tag": bench.rng.getrandbits(16),
        }
        for register in ("RAW_BYTES", "WIRE_BYTES"):
            value = fields[register.lower()]
            await bench.write(base + OFFSETS[f"{register}_LO"], value & 0xFFFF_FFFF)
            await bench.write(base + OFFSETS[f"{register}_HI"], value >> 32)
        word = fields["tag"] << 16 | ElementType.INT64.value << 4 | Mode.MEASURE.value
        sinks[name].expect(fields)
        assert await bench.read(base + OFFSETS["STATUS"]) == (1, OKAY)
        assert await bench.write(base + OFFSETS["SUBMIT"], word) == OKAY
        assert await bench.read(base + OFFSETS["STATUS"]) == (0, OKAY)
        assert await bench.write(base + OFFSETS["SUBMIT"], word) == SLVERR  # the sink pauses
        assert await bench.read(base + OFFSETS["STATUS"]) == (1 << 8, OKAY)
    assert read(dut.irq) == 0
    assert await bench.until(lambda: not any(sink.left for sink in sinks.values()))
    for name, base in BANKS.items():
        told: list[dict[str, Any]] = []
        for error in (0, 9):
            told.append(
                {
                    "tag": bench.rng.getrandbits(16),
                    "error": error,
                    "framing": int(error != 0),
                    "block": bench.rng.getrandbits(5),
                    "chunk": bench.rng.getrandbits(29),
                    "raw_bytes": bench.rng.getrandbits(40),
                    "wire_bytes": bench.rng.getrandbits(41),
                    "cycles": bench.rng.getrandbits(40),
                    "blocks": [bench.rng.getrandbits(34) for _ in Tag],
                }
            )
        sources[name].extend(told)
        await bench.step(3)
        assert read(dut.irq) == int(name == "decompress")
        for number, fields in enumerate(told):
            done = 1 << 31 | fields["framing"] << 20 | fields["error"] << 16 | fields["tag"]
            expected = {"DONE": done, "DONE_BLOCK": fields["block"], "DONE_CHUNK": fields["chunk"]}
            wide = {f"DONE_{k.upper()}": fields[k] for k in ("raw_bytes", "wire_bytes", "cycles")}
            wide |= {f"DONE_{tag.name}": fields["blocks"][tag] for tag in Tag}
            for register, value in wide.items():
                expected[f"{register}_LO"] = value & 0xFFFF_FFFF
                expected[f"{register}_HI"] = value >> 32
            for register, value in expected.items():
                assert await bench.read(base + OFFSETS[register]) == (value, OKAY), register
            assert await bench.write(base + OFFSETS["POP"], 0) == OKAY
            assert await bench.read(base + OFFSETS["COMPLETED"]) == (number + 1, OKAY)
        assert await bench.read(base + OFFSETS["ERRORS"]) == (1, OKAY)
        assert await bench.read(base + OFFSETS["STATUS"]) == (0x701, OKAY)
        assert await bench.write(base + OFFSETS["CLEAR"], 0x300) == OKAY
        assert await bench.read(base + OFFSETS["STATUS"]) == (0x401, OKAY)
        assert (await bench.read(base + OFFSETS["DONE"]))[0] >> 31 == 0


@cocotb.test()
async def activities_are_counted(dut: Any) -> None:
    """A counter for each activity of each port."""
    bench = RegisterBench(dut)
    await bench.reset()
    for name, base in BANKS.items():
        for side in ("raw", "wire"):
            port = getattr(dut, f"{name}__{side}_activity")
            for kind in Activity:
                register = base + OFFSETS[f"{side.upper()}_{kind.name}"]
                port.value = (kind.value + 1) % len(Activity)
                await bench.step()  # counters run a cycle behind
                before, _ = await bench.read(register)
                port.value = kind.value
                await bench.step(5 + kind.value)
                port.value = (kind.value + 1) % len(Activity)
                await bench.step()
                after, _ = await bench.read(register)
                assert after - before == 5 + kind.value
                port.value = Activity.IDLE.value


def test_registers() -> None:
    cases = ["every_address", "descriptors_and_completions", "activities_are_counted"]
    run_bench(AxiRegisters(DEFAULT, 2), __name__, testcase=cases)


class Through(wiring.Component):
    """An AXI4-Stream input, as a stream of beats, as an AXI4-Stream output."""

    def __init__(self, size: int) -> None:
        self._size = size
        members = {**axi_sink("s_axis", size), **axi_source("m_axis", size)}
        super().__init__({**members, "seen": Out(stream.Signature(beat(size)))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        beats = stream.Signature(beat(self._size)).create()
        connect_input(m, self, "s_axis", beats)
        connect_output(m, self, "m_axis", beats)
        m.d.comb += [self.seen.payload.eq(beats.payload), self.seen.valid.eq(beats.valid)]
        return m


@cocotb.test()
async def keep_becomes_bytes(dut: Any) -> None:
    """Number of bytes, 0 where tkeep has gaps; the other way round ones from byte 0 on."""
    size = 8
    dut.s_axis_tdata.value = 0x0123_4567_89AB_CDEF
    for keep in range(1 << size):
        dut.s_axis_tkeep.value = keep
        dut.s_axis_tlast.value = keep & 1
        dut.s_axis_tvalid.value = 1
        dut.m_axis_tready.value = keep >> 1 & 1
        await Timer(1, unit="ns")
        count = bytes_of_keep(keep, size)
        payload = read(dut.seen__payload)
        assert isinstance(payload, int)
        assert payload >> 8 * size & 15 == count
        assert read(dut.m_axis_tkeep) == (1 << count) - 1
        assert read(dut.m_axis_tlast) == keep & 1
        assert read(dut.s_axis_tready) == keep >> 1 & 1
        assert read(dut.m_axis_tdata) == 0x0123_4567_89AB_CDEF


def test_axi_stream() -> None:
    run_bench(Through(8), __name__, testcase="keep_becomes_bytes")


def test_document() -> None:
    """docs/registers.md is what the table says, and the table has no two registers in one place."""
    assert (ROOT / "docs" / "registers.md").read_text() == document()
    offsets = [register.offset for register in BANK_REGISTERS]
    assert len(set(offsets)) == len(offsets)
    assert max(offsets) < 0x100
    assert all(re.fullmatch(r"[A-Z0-9_]+", name) for name in OFFSETS)
