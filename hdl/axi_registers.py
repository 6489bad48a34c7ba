"""AXI4-Lite register file of the wrapper; the map is hdl/registers.py."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.engine_types import EngineGeometry
from planezip.hdl.register_bank import OFFSET_BITS, RegisterBank
from planezip.hdl.registers import BANKS, COMMON, MAGIC, MAP_VERSION
from planezip.model.format import FORMAT_VERSION, Parameters

__all__ = ["AXI_LITE", "AxiRegisters"]

ADDRESS_BITS = 12
_OKAY, _SLVERR = 0, 2

AXI_LITE = {
    "s_axil_awaddr": In(ADDRESS_BITS),
    "s_axil_awvalid": In(1),
    "s_axil_awready": Out(1),
    "s_axil_wdata": In(32),
    "s_axil_wstrb": In(4),
    "s_axil_wvalid": In(1),
    "s_axil_wready": Out(1),
    "s_axil_bresp": Out(2),
    "s_axil_bvalid": Out(1),
    "s_axil_bready": In(1),
    "s_axil_araddr": In(ADDRESS_BITS),
    "s_axil_arvalid": In(1),
    "s_axil_arready": Out(1),
    "s_axil_rdata": Out(32),
    "s_axil_rresp": Out(2),
    "s_axil_rvalid": Out(1),
    "s_axil_rready": In(1),
}
"""Members of an AXI4-Lite subordinate."""


class AxiRegisters(wiring.Component):
    """Registers of the wrapper: the common ones here, a bank for each direction.

    A write is taken when address and data are there, in one cycle, and answered in the next
    one; so is a read.

    Parameters
    ----------
    parameters : Parameters
    lanes : int

    Attributes
    ----------
    s_axil_* : AXI4-Lite
    irq : Out(1)
        A completion waits in a direction whose interrupt is on.
    compress, decompress
        Descriptors, completions and activities of the two directions.
    """

    def __init__(self, parameters: Parameters, lanes: int) -> None:
        self._geometry = EngineGeometry(parameters, lanes)
        self._banks = {name: RegisterBank(parameters) for name in BANKS}
        engine_side = ("descriptor", "completion", "raw_activity", "wire_activity")
        ports: dict[str, Any] = {**AXI_LITE, "irq": Out(1)}
        for name, bank in self._banks.items():
            members = {port: bank.signature.members[port] for port in engine_side}
            ports[name] = Out(wiring.Signature(members))
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        free = ~self.s_axil_bvalid | self.s_axil_bready
        write, good = Signal(), Signal()
        m.d.comb += [
            write.eq(self.s_axil_awvalid & self.s_axil_wvalid & free),
            self.s_axil_awready.eq(write),
            self.s_axil_wready.eq(write),
            self.s_axil_arready.eq(~self.s_axil_rvalid | self.s_axil_rready),
        ]
        whole = self.s_axil_wstrb.all()
        with m.If(write):
            m.d.sync += [
                self.s_axil_bvalid.eq(1),
                self.s_axil_bresp.eq(Mux(good & whole, _OKAY, _SLVERR)),
            ]
        with m.Elif(self.s_axil_bready):
            m.d.sync += self.s_axil_bvalid.eq(0)

        enable, waiting = Signal(2), []
        read_data, read_ok = Signal(32), Signal()
        pages = [base >> OFFSET_BITS for base in BANKS.values()]
        for page, (name, bank) in zip(pages, self._banks.items(), strict=True):
            m.submodules[name] = bank
            port = getattr(self, name)
            for member in port.signature.members:
                self._join(m, getattr(bank, member), getattr(port, member))
            waiting.append(port.completion.valid)
            here = self.s_axil_awaddr[OFFSET_BITS:] == page
            m.d.comb += [
                bank.offset.eq(self.s_axil_awaddr),
                bank.write.eq(write & whole & here),
                bank.write_data.eq(self.s_axil_wdata),
                bank.read_offset.eq(self.s_axil_araddr),
            ]
            with m.If(here):
                m.d.comb += good.eq(bank.write_ok)
            with m.If(self.s_axil_araddr[OFFSET_BITS:] == page):
                m.d.comb += [read_data.eq(bank.read_data), read_ok.eq(bank.read_ok)]
        m.d.comb += self.irq.eq((Cat(waiting) & enable).any())
        common: dict[str, Value] = {
            "ID": Const(MAGIC, 32),
            "VERSION": Const(FORMAT_VERSION << 16 | MAP_VERSION, 32),
            "CONFIG": Const(g.block << 16 | g.parameters.blocks_per_chunk << 8 | g.lanes, 32),
            "IRQ_ENABLE": enable,
            "IRQ_STATUS": Cat(waiting),
        }
        for register in COMMON:
            with m.If(self.s_axil_araddr == register.offset):
                m.d.comb += [read_data.eq(common[register.name]), read_ok.eq(1)]
            if register.access == "RW":
                with m.If(self.s_axil_awaddr == register.offset):
                    m.d.comb += good.eq(1)
                    with m.If(write & whole):
                        m.d.sync += enable.eq(self.s_axil_wdata)
        with m.If(self.s_axil_arready):
            m.d.sync += [
                self.s_axil_rvalid.eq(self.s_axil_arvalid),
                self.s_axil_rdata.eq(read_data),
                self.s_axil_rresp.eq(Mux(read_ok, _OKAY, _SLVERR)),
            ]
        return m

    @staticmethod
    def _join(m: Module, bank: Any, port: Any) -> None:
        """A stream or an activity of a bank to the port of the same name."""
        if not hasattr(bank, "valid"):
            m.d.comb += Value.cast(bank).eq(Value.cast(port))
        else:
            wiring.connect(m, bank, wiring.flipped(port))
