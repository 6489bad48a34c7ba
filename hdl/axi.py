# amaranth: UnusedElaboratable=no
"""The engine behind AXI4-Stream and AXI4-Lite."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.axi_registers import AXI_LITE, AxiRegisters
from planezip.hdl.axi_stream import axi_sink, axi_source, connect_input, connect_output
from planezip.hdl.engine import Engine
from planezip.hdl.engine_types import EngineGeometry
from planezip.hdl.instances import add
from planezip.model.format import DEFAULT, Parameters

__all__ = ["AxiEngine"]


class AxiEngine(wiring.Component):
    """:class:`planezip.hdl.engine.Engine` with AXI ports; docs/registers.md has the registers.

    ``tlast`` and ``tkeep`` of inputs are compared with the lengths of the descriptor and give the
    completion's framing flag; the lengths decide. An empty tensor has no beat.

    Parameters
    ----------
    parameters, lanes
        As in :class:`planezip.hdl.engine.CompressEngine`.
    instances : bool
        The engine is an instance of the Verilog module planezip_engine, exported on its own.

    Attributes
    ----------
    aclk, aresetn : In(1)
        Clock; reset, active low, synchronous.
    s_axis_raw, m_axis_wire : AXI4-Stream
        Compressor: raw tensors, streams.
    s_axis_wire, m_axis_raw : AXI4-Stream
        Decompressor.
    s_axil : AXI4-Lite
    irq : Out(1)
    """

    def __init__(
        self, parameters: Parameters = DEFAULT, lanes: int = 2, instances: bool = False
    ) -> None:
        g = EngineGeometry(parameters, lanes)
        self._registers = AxiRegisters(parameters, lanes)
        self._engine = Engine(parameters, lanes)
        self._module = "planezip_engine" if instances else ""
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                **axi_sink("s_axis_raw", g.raw),
                **axi_source("m_axis_wire", g.wire),
                **axi_sink("s_axis_wire", g.wire),
                **axi_source("m_axis_raw", g.raw),
                **AXI_LITE,
                "irq": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains.sync = ClockDomain("sync", local=True)
        m.d.comb += [ClockSignal().eq(self.aclk), ResetSignal().eq(~self.aresetn)]
        m.submodules.registers = registers = self._registers
        engine = add(m, self._engine, "engine", self._module)
        for name, part in (("compress", engine.compress), ("decompress", engine.decompress)):
            bank = getattr(registers, name)
            wiring.connect(m, bank.descriptor, part.descriptor)
            wiring.connect(m, part.completion, bank.completion)
            for side in ("raw_activity", "wire_activity"):
                m.d.comb += Value.cast(getattr(bank, side)).eq(Value.cast(getattr(part, side)))
        connect_input(m, self, "s_axis_raw", engine.compress.raw)
        connect_output(m, self, "m_axis_wire", engine.compress.wire)
        connect_input(m, self, "s_axis_wire", engine.decompress.wire)
        connect_output(m, self, "m_axis_raw", engine.decompress.raw)
        for name, member in AXI_LITE.items():
            here, there = getattr(self, name), getattr(registers, name)
            m.d.comb += there.eq(here) if member.flow == In else here.eq(there)
        m.d.comb += self.irq.eq(registers.irq)
        return m
