"""Cocotb side of the bulk harness: clock it to its end; the files hold the results."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


@cocotb.test()
async def harness_ends(dut: Any) -> None:
    """The harness ends by itself: all compared, nothing moves any more, or too much wrong."""
    Clock(dut.clk, 10, unit="ns", impl="gpi").start()
    await RisingEdge(dut.done)
