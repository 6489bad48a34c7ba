"""Mergers: what the lanes give becomes tensors again, chunk by chunk in the order of dealing."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.engine_types import Activity, chunk_order
from planezip.hdl.types import beat
from planezip.hdl.wires import wire

__all__ = ["Merger", "Packer", "packed"]


def packed(chunks: list[bytes], size: int) -> list[dict[str, int]]:
    """Software model of :class:`Packer`: the beats of a tensor from the bytes of its chunks."""
    whole = b"".join(chunks)
    return [
        {
            "data": int.from_bytes(whole[at : at + size], "little"),
            "bytes": len(whole[at : at + size]),
            "last": int(at + size >= len(whole)),
        }
        for at in range(0, len(whole), size)
    ]


def _ports(size: int, lanes: int) -> dict[str, Any]:
    return {
        "merge": In(stream.Signature(chunk_order(lanes))),
        "rows": In(stream.Signature(beat(size))).array(lanes),
        "output": Out(stream.Signature(beat(size))),
        "sent": Out(1),
        "activity": Out(Activity),
    }


def _watch(m: Module, output: Any, sent: Value, activity: Value, why: Value) -> None:
    """``sent`` and ``activity`` of an output whose register waits for ``why``."""
    m.d.comb += sent.eq(output.valid & output.ready & output.payload.last)
    with m.If(output.valid):
        m.d.comb += activity.eq(Mux(output.ready, Activity.MOVE, Activity.STREAM))
    with m.Else():
        m.d.comb += activity.eq(why)


def _row(m: Module, ports: Any, lane: Value) -> tuple[Value, Any]:
    """Valid and payload of the port of ``lane``."""
    rows = [Cat(port.valid, Value.cast(port.payload)) for port in ports]
    chosen = Signal(len(rows[0]))
    m.d.comb += chosen.eq(rows[0])
    for k in range(1, len(rows)):
        with m.If(lane == k):
            m.d.comb += chosen.eq(rows[k])
    row = Signal(ports[0].payload.shape())
    m.d.comb += row.eq(chosen[1:])
    return chosen[0], row


class Merger(wiring.Component):
    """Rows of whole chunks, as they are: all chunks but a tensor's last have full rows only.

    A row a cycle, out of a register.

    Parameters
    ----------
    size, lanes : int
        Bytes of a row; lanes.

    Attributes
    ----------
    merge : In(stream of :func:`planezip.hdl.engine_types.chunk_order`)
    rows : In(stream of :func:`planezip.hdl.types.beat`), per lane
        ``last`` of the chunk.
    output : Out(stream of :func:`planezip.hdl.types.beat`)
        ``last`` of the tensor.
    sent : Out(1)
        The last beat of a tensor is taken.
    activity : Out(:class:`planezip.hdl.engine_types.Activity`)
        Of ``output``.
    """

    def __init__(self, size: int, lanes: int) -> None:
        self._lanes = lanes
        super().__init__(_ports(size, lanes))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        order, out = self.merge.payload, self.output
        free = ~out.valid | out.ready
        there, row = _row(m, self.rows, order.lane)
        moves = free & self.merge.valid & there
        m.d.comb += self.merge.ready.eq(moves & row.last)
        for k, port in enumerate(self.rows):
            m.d.comb += port.ready.eq(free & self.merge.valid & (order.lane == k))
        why = Signal(Activity, init=Activity.IDLE)
        with m.If(free):
            m.d.sync += [
                out.valid.eq(moves),
                out.payload.eq(row),
                out.payload.last.eq(row.last & order.last),
                why.eq(Mux(self.merge.valid, Activity.LANE, Activity.IDLE)),
            ]
        _watch(m, out, self.sent, self.activity, why)
        return m


class Packer(wiring.Component):
    """Rows of chunks of any length, without gaps between the chunks of a tensor.

    A row a cycle, and a cycle more where the end of a tensor does not fit into the beat that
    its last row completes. Three stages: two turn a row to its place, one puts it to the
    bytes that wait for a full beat.

    Parameters
    ----------
    size, lanes : int
        Bytes of a row, a power of two; lanes.

    Attributes
    ----------
    merge, rows, output, sent, activity
        As in :class:`Merger`; bytes of rows behind ``bytes`` are zero.
    """

    def __init__(self, size: int, lanes: int) -> None:
        self._size = size
        self._lanes = lanes
        super().__init__(_ports(size, lanes))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        size, bits = self._size, self._size.bit_length() - 1
        order, out = self.merge.payload, self.output
        moves = wire(m, ~out.valid | out.ready, "moves")
        there, row = _row(m, self.rows, order.lane)

        # Where a row goes; the rest of a tensor that needs a beat of its own.
        place = Signal(bits)
        rest = Signal()
        takes = wire(m, self.merge.valid & there & ~rest, "takes")
        ends = wire(m, row.last & order.last, "ends")
        sum_ = wire(m, place + row.bytes, "sum")
        full = sum_[bits]
        m.d.comb += self.merge.ready.eq(moves & takes & row.last)
        for k, port in enumerate(self.rows):
            m.d.comb += port.ready.eq(moves & self.merge.valid & ~rest & (order.lane == k))
        more = takes & ends & full & (sum_[:bits] != 0)
        with m.If(moves):
            m.d.sync += rest.eq(more)
            with m.If(takes):
                m.d.sync += place.eq(Mux(ends & ~more, 0, sum_[:bits]))
            with m.If(rest):
                m.d.sync += place.eq(0)
        valid = takes | rest
        emits = (takes & (full | ends)) | rest
        last = (takes & ends & ~more) | rest
        bytes_ = Mux(rest, place, Mux(full, size, sum_[:bits]))
        why = Mux(self.merge.valid, Activity.LANE, Activity.IDLE)

        # Turned in two stages.
        data = wire(m, row.data & takes.replicate(8 * size), "row")
        amount, flags = place, Cat(valid, emits, takes & full, last, bytes_, why)
        split = bits // 2
        for name, levels in (("near", range(split)), ("far", range(split, bits))):
            for level in levels:
                data = wire(m, Mux(amount[level], data.rotate_left(8 << level), data), name)
            stage = Signal(8 * size, name=f"{name}_data", reset_less=True)
            kept, late = Signal(bits, name=f"{name}_place"), Signal.like(flags, name=f"{name}_k")
            with m.If(moves):
                m.d.sync += [stage.eq(data), kept.eq(amount), late.eq(flags)]
            data, amount, flags = stage, kept, late

        # Put to what waits.
        waiting = Signal(8 * size)
        above = wire(m, Cat((amount <= k).replicate(8) for k in range(size)), "above")
        merged = wire(m, waiting | (data & above), "merged")
        there, emit, wraps, end = flags[0], flags[1], flags[2], flags[3]
        reason = Signal(Activity, init=Activity.IDLE)
        with m.If(moves):
            m.d.sync += [
                out.valid.eq(emit),
                out.payload.data.eq(merged),
                out.payload.bytes.eq(flags[4 : 4 + bits + 1]),
                out.payload.last.eq(end),
                Value.cast(reason).eq(Mux(there, Activity.LANE, flags[4 + bits + 1 :])),
            ]
            with m.If(there):
                kept_part = Mux(wraps, data & ~above, merged)
                m.d.sync += waiting.eq(Mux(emit & ~wraps, 0, kept_part))
        _watch(m, out, self.sent, self.activity, reason)
        return m
