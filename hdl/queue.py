"""Queue: a first-in first-out memory between two streams."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

__all__ = ["Queue"]


class Queue(wiring.Component):
    """Holds up to ``depth`` values; one in and one out a cycle.

    A value is at the output two cycles after it was taken. The storage has a synchronous
    read port, so that large queues can be SRAM or block RAM.

    Parameters
    ----------
    payload : layout or shape
    depth : int
        Two or more.

    Attributes
    ----------
    input : In(stream of ``payload``)
    output : Out(stream of ``payload``)
    """

    def __init__(self, payload: Any, depth: int) -> None:
        if not isinstance(depth, int):
            raise TypeError(f"depth must be an integer, not {depth!r}")
        if depth < 2:
            raise ValueError(f"depth must be two or more, not {depth!r}")
        self._depth = depth
        self._width = Shape.cast(payload).width
        super().__init__(
            {"input": In(stream.Signature(payload)), "output": Out(stream.Signature(payload))}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=self._width, depth=self._depth)
        m.d.comb += [
            fifo.w_data.eq(Value.cast(self.input.payload)),
            fifo.w_en.eq(self.input.valid),
            self.input.ready.eq(fifo.w_rdy),
            Value.cast(self.output.payload).eq(fifo.r_data),
            self.output.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.output.ready),
        ]
        return m
