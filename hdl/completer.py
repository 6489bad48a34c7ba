"""Completer: chunk reports of the lanes become one completion per tensor."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import decode_report
from planezip.hdl.engine_types import (
    LENGTH_BITS,
    EngineGeometry,
    chunk_order,
    completion,
    tensor_end,
)
from planezip.hdl.queue import Queue
from planezip.hdl.types import chunk_report
from planezip.model.errors import ErrorCode
from planezip.model.format import HEADER_BYTES, Parameters

__all__ = ["Completer"]


class Completer(wiring.Component):
    """Adds up a chunk a cycle; a completion waits for the last byte of its tensor.

    Sums of tensors whose bytes are still on their way wait in a queue, so that the
    reports of the next tensors are taken meanwhile.

    Parameters
    ----------
    parameters : Parameters
    lanes : int
    decompress : bool
        Reports are of decompressor lanes: with error and block; the bytes on the wire are
        those of the descriptor.

    Attributes
    ----------
    tally : In(stream of :func:`planezip.hdl.engine_types.chunk_order`)
    reports : In(stream of a lane's report), per lane
    ends : In(stream of :func:`planezip.hdl.engine_types.tensor_end`)
    sent : In(1)
        The last byte of a tensor has left the engine.
    now : In
        Number of the cycle.
    completion : Out(stream of :func:`planezip.hdl.engine_types.completion`)
    """

    def __init__(self, parameters: Parameters, lanes: int, decompress: bool) -> None:
        self._geometry = g = EngineGeometry(parameters, lanes)
        self._decompress = decompress
        report = decode_report(parameters) if decompress else chunk_report(parameters)
        self._sums = data.StructLayout(
            {"completion": completion(parameters), "start": unsigned(LENGTH_BITS), "output": 1}
        )
        super().__init__(
            {
                "tally": In(stream.Signature(chunk_order(lanes))),
                "reports": In(stream.Signature(report)).array(lanes),
                "ends": In(stream.Signature(tensor_end())),
                "sent": In(1),
                "now": In(unsigned(LENGTH_BITS)),
                "completion": Out(stream.Signature(completion(g.parameters))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        order, tensor = self.tally.payload, self.ends.payload
        shape = self.reports[0].payload.shape()
        chosen = Signal(1 + shape.size)
        for k, port in enumerate(self.reports):
            with m.If(order.lane == k):
                m.d.comb += chosen.eq(Cat(port.valid, Value.cast(port.payload)))
        report = data.View(shape, chosen[1:])
        there = order.none | chosen[0]

        m.submodules.sums = queue = Queue(self._sums, g.tensors)
        entry, total = queue.input.payload, queue.input.payload.completion
        wire_bytes = Signal(LENGTH_BITS + 1)
        blocks = Signal(total.blocks.shape())
        number, place = Signal.like(total.chunk), Signal.like(total.chunk)
        error, block = Signal(4), Signal.like(total.block)
        go = Signal()
        m.d.comb += [
            go.eq(
                self.tally.valid
                & there
                & (~order.last & ~order.none | (self.ends.valid & queue.input.ready))
            ),
            self.tally.ready.eq(go),
            self.ends.ready.eq(go & (order.last | order.none)),
            queue.input.valid.eq(go & (order.last | order.none)),
            *[
                port.ready.eq(go & ~order.none & (order.lane == k))
                for k, port in enumerate(self.reports)
            ],
            total.tag.eq(tensor.tag),
            total.raw_bytes.eq(tensor.raw_bytes),
            total.framing.eq(tensor.framing),
            entry.start.eq(tensor.start),
            entry.output.eq(tensor.output),
        ]
        headers = Mux(order.bare, 0, HEADER_BYTES)
        m.d.comb += [
            total.wire_bytes.eq(
                tensor.wire_bytes
                if self._decompress
                else wire_bytes + Mux(order.none, 0, report.body_bytes + headers)
            ),
            *[
                total.blocks[k].eq(blocks[k] + Mux(order.none, 0, report.blocks[k]))
                for k in range(len(total.blocks))
            ],
        ]
        if self._decompress:
            fresh = (error == 0) & ~order.none
            with m.If((error == 0) & (order.none | (report.error == 0)) & tensor.extra):
                m.d.comb += [total.error.eq(ErrorCode.EXTRA), total.chunk.eq(number)]
            with m.Elif(fresh):
                m.d.comb += [
                    total.error.eq(report.error),
                    total.block.eq(report.block),
                    total.chunk.eq(Mux(report.error == 0, 0, number)),
                ]
            with m.Else():
                m.d.comb += [total.error.eq(error), total.block.eq(block), total.chunk.eq(place)]
        with m.If(go):
            m.d.sync += [
                wire_bytes.eq(total.wire_bytes),
                blocks.eq(total.blocks),
                number.eq(number + 1),
            ]
            if self._decompress:
                with m.If(fresh):
                    m.d.sync += [
                        error.eq(report.error),
                        block.eq(report.block),
                        place.eq(Mux(report.error == 0, 0, number)),
                    ]
            with m.If(order.last | order.none):
                m.d.sync += [
                    *[sum_.eq(0) for sum_ in (wire_bytes, blocks, number)],
                    *[fault.eq(0) for fault in (error, block, place)],
                ]

        # Completions, once the bytes are out.
        finished = Signal(range(g.tensors + g.chunks + 4))  # tensors that are out but not told
        head, out = queue.output.payload, self.completion
        ready = ~head.output | (finished != 0)
        tell = Signal()
        m.d.comb += [
            tell.eq(queue.output.valid & ready & (~out.valid | out.ready)),
            queue.output.ready.eq(tell),
        ]
        m.d.sync += finished.eq(finished + self.sent - (tell & head.output))
        with m.If(~out.valid | out.ready):
            m.d.sync += out.valid.eq(tell)
        told = Signal(head.shape(), reset_less=True)
        now = Signal(
            LENGTH_BITS, reset_less=True
        )  # taken apart from ``start``: that is slow memory
        with m.If(tell):
            m.d.sync += [told.eq(head), now.eq(self.now)]
        m.d.comb += [out.payload.eq(told.completion), out.payload.cycles.eq(now - told.start)]
        return m
