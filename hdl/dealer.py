"""Dealer: raw tensors are cut into chunks, and each goes to a lane."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring

from planezip.hdl.balance import Balance
from planezip.hdl.engine_types import (
    LENGTH_BITS,
    Activity,
    EngineGeometry,
    dealing_ports,
)
from planezip.hdl.offer import offer
from planezip.hdl.types import Mode
from planezip.model.format import Parameters

__all__ = ["Dealer"]


class Dealer(wiring.Component):
    """Takes a beat a cycle, whole tensors back to back; an empty one takes a cycle.

    A beat is taken once every output that gets something of it has taken that; none of them
    waits for another one (:mod:`planezip.hdl.offer`).

    :class:`planezip.hdl.balance.Balance` says which lane is next. The length comes from the
    descriptor; ends of beats are only compared with it.

    Parameters
    ----------
    parameters : Parameters
    lanes : int

    Attributes
    ----------
    descriptor : In(stream of :func:`planezip.hdl.engine_types.engine_descriptor`)
    raw : In(stream of :func:`planezip.hdl.types.beat`)
    now : In
        Number of the cycle.
    descriptors : Out(stream of :func:`planezip.hdl.types.descriptor`), per lane
        One per chunk.
    rows : Out(stream of :func:`planezip.hdl.types.beat`), per lane
    merge, tally : Out(stream of :func:`planezip.hdl.engine_types.chunk_order`)
        Chunks whose output is to be merged, and all of them.
    ends : Out(stream of :func:`planezip.hdl.engine_types.tensor_end`)
        With the last beat of each tensor.
    activity : Out(:class:`planezip.hdl.engine_types.Activity`)
        Of ``raw``.
    """

    def __init__(self, parameters: Parameters, lanes: int) -> None:
        self._geometry = g = EngineGeometry(parameters, lanes)
        super().__init__(dealing_ports("raw", g.raw, lanes))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        new, raw = self.descriptor.payload, self.raw.payload
        active, empty = Signal(), Signal()
        left = Signal(LENGTH_BITS)  # bytes
        index = Signal(range(max(2, g.chunk // g.raw)))  # of the row in its chunk
        m.submodules.balance = balance = Balance(g.parameters, g.lanes)
        lane = balance.lane
        info = Signal.like(new)
        start = Signal(LENGTH_BITS)
        framing = Signal()

        final = Signal()  # last row of the tensor
        m.d.comb += final.eq(left <= g.raw)
        first = index == 0
        last = final | (index == g.chunk // g.raw - 1)
        bytes_ = Mux(final, left[: g.raw.bit_length()], g.raw)
        measure, bypass = info.mode == Mode.MEASURE, info.mode == Mode.BYPASS
        lane_ok, queue_ok, go, none = Signal(), Signal(), Signal(), Signal()
        room = Cat(port.ready for port in self.rows).bit_select(lane, 1)
        described = Cat(port.ready for port in self.descriptors).bit_select(lane, 1)
        busy, idle = active & ~empty, active & empty
        work = busy & self.raw.valid
        row = offer(m, "row", work, room, go)
        task = offer(m, "task", work & first, described, go)
        merge = offer(m, "merge", work & first & ~measure, self.merge.ready, go)
        tally = offer(m, "tally", (work & first) | idle, self.tally.ready, go | none)
        told = offer(m, "end", (work & final) | idle, self.ends.ready, go | none)
        m.d.comb += [
            lane_ok.eq(row.ok & (~first | task.ok)),
            queue_ok.eq((~first | (tally.ok & (merge.ok | measure))) & (~final | told.ok)),
            go.eq(work & lane_ok & queue_ok),
            none.eq(idle & tally.ok & told.ok),
            self.raw.ready.eq(busy & lane_ok & queue_ok),
        ]
        chunk_bytes = Mux(left >= g.chunk, g.chunk, left[: g.chunk.bit_length()])
        # Counted with its first row; the lane changes behind its last one.
        blocks = Signal(range(g.parameters.blocks_per_chunk + 1))
        here = (chunk_bytes + g.block - 1) >> (g.block.bit_length() - 1)
        with m.If(first):
            m.d.sync += blocks.eq(here)
        m.d.comb += [
            balance.blocks.eq(Mux(first, here, blocks)),
            balance.deal.eq(go & last),
        ]
        for k in range(g.lanes):
            port, described_port = self.rows[k], self.descriptors[k]
            m.d.comb += [
                port.valid.eq(row.valid & (lane == k)),
                port.payload.data.eq(raw.data),
                port.payload.bytes.eq(bytes_),
                port.payload.last.eq(last),
                described_port.valid.eq(task.valid & (lane == k)),
                described_port.payload.dtype.eq(info.dtype),
                described_port.payload.mode.eq(info.mode),
                described_port.payload.raw_bytes.eq(chunk_bytes),
            ]
        for port in (self.merge, self.tally):
            m.d.comb += [
                port.payload.lane.eq(lane),
                port.payload.last.eq(left <= g.chunk),
                port.payload.none.eq(empty),
                port.payload.bare.eq(bypass),
            ]
        wrong = (raw.last != final) | (raw.bytes != bytes_)
        end = self.ends.payload
        m.d.comb += [
            self.merge.valid.eq(merge.valid),
            self.tally.valid.eq(tally.valid),
            self.ends.valid.eq(told.valid),
            end.tag.eq(info.tag),
            end.raw_bytes.eq(info.raw_bytes),
            end.start.eq(start),
            end.framing.eq(framing | (~empty & wrong)),
            end.output.eq(~measure & ~empty),
        ]
        with m.If(go):
            m.d.sync += [
                left.eq(left - g.raw),
                framing.eq(framing | wrong),
                index.eq(Mux(last, 0, index + 1)),
            ]

        # The next tensor.
        m.d.comb += self.descriptor.ready.eq(~active | (go & final) | none)
        with m.If(self.descriptor.ready):
            m.d.sync += active.eq(self.descriptor.valid)
            with m.If(self.descriptor.valid):
                m.d.sync += [
                    info.eq(new),
                    left.eq(new.raw_bytes),
                    empty.eq(new.raw_bytes == 0),
                    start.eq(self.now),
                    framing.eq(0),
                ]

        with m.If(go):
            m.d.comb += self.activity.eq(Activity.MOVE)
        with m.Elif(~active):
            m.d.comb += self.activity.eq(Activity.IDLE)
        with m.Elif(none):
            m.d.comb += self.activity.eq(Activity.TURN)
        with m.Elif(empty | ~queue_ok):
            m.d.comb += self.activity.eq(Activity.QUEUE)
        with m.Elif(~lane_ok):
            m.d.comb += self.activity.eq(Activity.LANE)
        with m.Else():
            m.d.comb += self.activity.eq(Activity.STREAM)
        return m
