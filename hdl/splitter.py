"""Splitter: a compressed stream is cut at its headers, and each chunk goes to a lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import enum, wiring

from planezip.hdl.balance import Balance
from planezip.hdl.engine_types import LENGTH_BITS, Activity, EngineGeometry, dealing_ports
from planezip.hdl.offer import offer
from planezip.hdl.turn import turned
from planezip.hdl.types import Mode
from planezip.hdl.wires import wire
from planezip.model.format import HEADER_BYTES, Parameters

__all__ = ["Splitter", "parts"]


class _State(enum.Enum, shape=3):
    IDLE = 0  # no tensor
    HEADER = 1  # a header is read
    SIZE = 2  # it says how many bytes the lane gets
    ROWS = 3  # they go
    REST = 4  # beats behind the last chunk are dropped


def parts(stream_bytes: bytes, raw_bytes: int, mode: Mode, p: Parameters) -> list[bytes]:
    """Software model: what the lanes get of a tensor's stream, chunk by chunk.

    The lane finds the fault, if there is one: it gets the header if that is too large, what
    is there if the stream ends too early, and nothing for the chunks behind.
    """
    found, at, lost = [], 0, False
    chunk, block = p.chunk_bits // 8, p.block_bits // 8
    for first in range(0, raw_bytes, chunk):
        want = min(chunk, raw_bytes - first)
        padded = -(-want // block) * block
        left, bad = len(stream_bytes) - at, False
        if mode != Mode.BYPASS:
            header = int.from_bytes(stream_bytes[at : at + HEADER_BYTES], "little")
            bad = left < HEADER_BYTES or header > padded
            want = HEADER_BYTES + (0 if bad else header)
        found.append(b"" if lost else stream_bytes[at : at + want])
        lost = lost or bad or left < want
        at += len(found[-1])
    return found


class Splitter(wiring.Component):
    """A chunk takes two cycles and one per row that its lane gets; an empty tensor takes one.

    That is while the outputs are ready; none of them waits for another one
    (:mod:`planezip.hdl.offer`).

    The length of the stream comes from the descriptor, whatever the headers say: after a
    fault the rest of the tensor is dropped and the next one begins where it should. A row
    reaches its lane's queue two cycles after its last byte was taken.

    Parameters
    ----------
    parameters : Parameters
    lanes : int

    Attributes
    ----------
    descriptor : In(stream of :func:`planezip.hdl.engine_types.engine_descriptor`)
    wire : In(stream of :func:`planezip.hdl.types.beat`)
    now, descriptors, rows, merge, tally, ends
        As in :class:`planezip.hdl.dealer.Dealer`; ``rows`` begin with the chunk's header, and
        a chunk without bytes is a row of none.
    activity : Out(:class:`planezip.hdl.engine_types.Activity`)
        Of ``wire``.
    """

    def __init__(self, parameters: Parameters, lanes: int) -> None:
        self._geometry = g = EngineGeometry(parameters, lanes)
        super().__init__(dealing_ports("wire", g.wire, lanes))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        size, bits = g.wire, g.wire.bit_length() - 1
        beat_in = self.wire.payload
        state = Signal(_State)
        info = Signal.like(self.descriptor.payload)
        start = Signal(LENGTH_BITS)
        framing, extra, lost, have = Signal(), Signal(), Signal(), Signal()
        current = Signal(8 * size, reset_less=True)  # beat that holds the next byte, if ``have``
        position = Signal(bits)  # of that byte; 0 unless ``have``
        raw_left, wire_left = Signal(LENGTH_BITS), Signal(LENGTH_BITS + 1)  # bytes
        beats_left = Signal(LENGTH_BITS + 1 - bits + 1)  # not taken yet
        header = Signal(8 * HEADER_BYTES)
        m.submodules.balance = balance = Balance(g.parameters, g.lanes)
        lane = balance.lane
        left = Signal(range(g.chunk + HEADER_BYTES + 1))  # bytes of the chunk
        measure, bypass = info.mode == Mode.MEASURE, info.mode == Mode.BYPASS

        take, emit, push, done, moves = Signal(), Signal(), Signal(), Signal(), Signal()
        fetch = Signal()  # the beat that is taken becomes ``current``
        final = wire(m, raw_left <= g.chunk, "final")
        none = wire(m, info.raw_bytes == 0, "none")
        count = wire(m, Mux(left < size, left, size)[: bits + 1], "count")
        end = wire(m, position + count, "end")
        crosses, exact = end > size, end == size
        absent = wire(m, wire_left < HEADER_BYTES, "absent")
        last_row = left <= size
        over = wire(m, wire_left != count, "over")  # bytes are left behind this row

        # What the lane gets of the next chunk.
        here = Mux(final, raw_left[: g.chunk.bit_length()], g.chunk)
        block = g.block.bit_length() - 1
        blocks = (here + g.block - 1) >> block
        m.d.comb += [
            balance.blocks.eq(blocks),
            balance.deal.eq(emit & last_row),
        ]
        big = wire(m, ~absent & (header > Cat(Const(0, block), blocks)), "big")
        want = Signal(range(g.chunk + HEADER_BYTES + 1))
        with m.If(bypass):
            m.d.comb += want.eq(here)
        with m.Else():
            m.d.comb += want.eq(HEADER_BYTES + Mux(absent | big, 0, header))
        short = wire(m, wire_left < want, "short")
        described = Cat(port.ready for port in self.descriptors).bit_select(lane, 1)
        able = wire(m, ((count == 0) | have) & (~crosses | self.wire.valid), "able")
        needs = wire(m, have & (crosses | (exact & over)), "needs")  # the beat behind ``current``
        ended = Signal()  # what a completion needs of the tensor is known
        split = state == _State.SIZE
        void = none & ended  # an empty tensor
        task = offer(m, "task", split, described, push)
        merge = offer(m, "merge", split & ~measure, self.merge.ready, push)
        tally = offer(m, "tally", split | void, self.tally.ready, push | done)
        told = offer(m, "end", ended, self.ends.ready, done)
        queue_ok = tally.ok & (merge.ok | measure)

        with m.Switch(state):
            with m.Case(_State.IDLE):
                m.d.comb += self.descriptor.ready.eq(1)
            with m.Case(_State.HEADER):
                near = position == size - 1
                m.d.comb += fetch.eq(~absent & ~have & self.wire.valid)
                window = Cat(current, beat_in.data[:8])
                inside = window.bit_select(Cat(Const(0, 3), position), 16)
                m.d.sync += header.eq(Mux(have, inside, beat_in.data[:16]))
                with m.If(absent | Mux(have, ~near | self.wire.valid, self.wire.valid)):
                    m.d.sync += state.eq(_State.SIZE)
            with m.Case(_State.SIZE):
                m.d.comb += push.eq(queue_ok & task.ok)
                m.d.sync += left.eq(Mux(lost, 0, Mux(short, wire_left, want)))
                with m.If(push):
                    m.d.sync += [
                        state.eq(_State.ROWS),
                        lost.eq(lost | short | (~bypass & (absent | big))),
                    ]
            with m.Case(_State.ROWS):
                m.d.comb += [
                    emit.eq(moves & able),
                    ended.eq(
                        able & last_row & final & (beats_left == needs) & (~needs | self.wire.valid)
                    ),
                    fetch.eq(self.wire.valid & Mux(have, emit & needs, count != 0)),
                ]
                with m.If(emit):
                    m.d.sync += [
                        wire_left.eq(wire_left - count),
                        left.eq(left - count),
                        position.eq(end[:bits]),
                    ]
                    with m.If(exact & ~fetch):
                        m.d.sync += have.eq(0)
                    with m.If(last_row):
                        m.d.sync += [
                            raw_left.eq(raw_left - g.chunk),
                            state.eq(Mux(bypass | lost, _State.SIZE, _State.HEADER)),
                            extra.eq(over & ~lost),
                        ]
                        with m.If(final):
                            m.d.sync += state.eq(_State.REST)
                            m.d.comb += done.eq(ended & told.ok)
            with m.Case(_State.REST):
                m.d.comb += [
                    ended.eq(beats_left == 0),
                    done.eq((beats_left == 0) & told.ok & (tally.ok | ~none)),
                    take.eq(self.wire.valid & (beats_left != 0)),
                ]
        with m.If(fetch):
            m.d.comb += take.eq(1)
            m.d.sync += [current.eq(beat_in.data), have.eq(1)]
        tail = info.wire_bytes[:bits]
        ends_here = beats_left == 1
        wrong = (beat_in.last != ends_here) | (
            beat_in.bytes != Mux(ends_here & (tail != 0), tail, size)
        )
        framing_now = wire(m, framing | (take & wrong), "framing_now")
        m.d.comb += self.wire.ready.eq(take)
        m.d.sync += framing.eq(framing_now)
        with m.If(take):
            m.d.sync += beats_left.eq(beats_left - 1)
        for k, port in enumerate(self.descriptors):
            m.d.comb += [
                port.valid.eq(task.valid & (lane == k)),
                port.payload.dtype.eq(info.dtype),
                port.payload.mode.eq(info.mode),
                port.payload.raw_bytes.eq(here),
            ]
        for port, given in ((self.merge, merge), (self.tally, tally), (self.ends, told)):
            m.d.comb += port.valid.eq(given.valid)
        for port in (self.merge, self.tally):
            m.d.comb += [
                port.payload.lane.eq(lane),
                port.payload.last.eq(final),
                port.payload.none.eq(none),
                port.payload.bare.eq(bypass),
            ]
        out = self.ends.payload
        m.d.comb += [
            out.tag.eq(info.tag),
            out.raw_bytes.eq(info.raw_bytes),
            out.wire_bytes.eq(info.wire_bytes),
            out.start.eq(start),
            out.framing.eq(framing | ((state == _State.ROWS) & needs & wrong)),
            out.extra.eq(Mux(state == _State.REST, extra, over & ~lost)),
            out.output.eq(~measure & ~none),
        ]

        # The next tensor.
        new = self.descriptor.payload
        with m.If(done):
            m.d.comb += self.descriptor.ready.eq(1)
        with m.If(self.descriptor.ready):
            m.d.sync += state.eq(_State.IDLE)
            with m.If(self.descriptor.valid):
                m.d.sync += [
                    info.eq(new),
                    raw_left.eq(new.raw_bytes),
                    wire_left.eq(new.wire_bytes),
                    beats_left.eq((new.wire_bytes + (size - 1)) >> bits),
                    start.eq(self.now),
                    framing.eq(0),
                    lost.eq(0),
                    extra.eq(new.wire_bytes != 0),
                    have.eq(0),
                    position.eq(0),
                    state.eq(Mux(new.mode == Mode.BYPASS, _State.SIZE, _State.HEADER)),
                ]
                with m.If(new.raw_bytes == 0):
                    m.d.sync += state.eq(_State.REST)

        # A row that ends in ``current`` needs none of the next beat, but what stands behind a
        # row's bytes does not matter: so what is taken of it need not wait for the length.
        ahead = Mux(self.wire.valid, position, 0)
        self._rows(m, emit, moves, current, ahead, position, (count, last_row, lane))
        waits = (state == _State.ROWS) & ~moves
        with m.If(take):
            m.d.comb += self.activity.eq(Activity.MOVE)
        with m.Elif(state == _State.IDLE):
            m.d.comb += self.activity.eq(Activity.IDLE)
        with m.Elif(waits | (split & ~task.ok)):
            m.d.comb += self.activity.eq(Activity.LANE)
        with m.Elif(split & ~queue_ok):
            m.d.comb += self.activity.eq(Activity.QUEUE)
        with m.Elif((state == _State.REST) & (beats_left == 0) & ~done):
            m.d.comb += self.activity.eq(Activity.QUEUE)
        with m.Elif(
            ((state == _State.ROWS) & ~emit)
            | ((state == _State.REST) & (beats_left != 0))
            | ((state == _State.HEADER) & ~absent & ~self.wire.valid & ~(have & ~near))
        ):
            m.d.comb += self.activity.eq(Activity.STREAM)
        with m.Else():
            m.d.comb += self.activity.eq(Activity.TURN)
        return m

    def _rows(
        self,
        m: Module,
        emit: Value,
        moves: Value,
        current: Value,
        ahead: Value,
        position: Value,
        flags: Sequence[Value],
    ) -> None:
        """The next bytes to a lane; ``flags``: how many, the chunk's last ones, lane.

        The first ``ahead`` bytes of the beat behind ``current`` are among them.
        """
        ahead = wire(m, ahead, "ahead")
        following = self.wire.payload.data
        data = Cat(
            Mux(ahead > k, following[8 * k : 8 * k + 8], current[8 * k : 8 * k + 8])
            for k in range(self._geometry.wire)
        )
        data, kept, valid = turned(m, data, position, Cat(flags), emit, moves)
        count = len(flags[0])
        to = kept[count + 1 :]
        ready = Cat(port.ready for port in self.rows).bit_select(to, 1)
        m.d.comb += moves.eq(~valid | ready)
        for k, port in enumerate(self.rows):
            m.d.comb += [
                port.valid.eq(valid & (to == k)),
                port.payload.data.eq(data),
                port.payload.bytes.eq(kept[:count]),
                port.payload.last.eq(kept[count]),
            ]
