"""Rows: beats of the engine's ports on their way to one lane, or from it.

A row has as many bytes as all lanes take in a cycle. A lane gets and gives whole rows of one
chunk only.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.queue import Queue
from planezip.hdl.types import beat

__all__ = ["BeatsToRows", "RowsToBeats", "beats_of_rows"]


def beats_of_rows(rows: list[dict[str, int]], beat_bytes: int) -> list[dict[str, int]]:
    """Software model of :class:`RowsToBeats`."""
    made = []
    for row in rows:
        starts = range(0, max(row["bytes"], 1), beat_bytes)
        for at in starts:
            made.append(
                {
                    "data": row["data"] >> 8 * at & (1 << 8 * beat_bytes) - 1,
                    "bytes": min(row["bytes"] - at, beat_bytes),
                    "last": int(row["last"] and at == starts[-1]),
                }
            )
    return made


class RowsToBeats(wiring.Component):
    """A queue of rows, and a register from which their beats go, one a cycle.

    A row of no bytes is one beat of no bytes. The first beat of a row is valid three cycles
    after the row was taken.

    Parameters
    ----------
    beat_bytes, lanes, rows : int
        A row has ``lanes`` beats; ``rows`` of them fit into the queue.

    Attributes
    ----------
    rows : In(stream of :func:`planezip.hdl.types.beat`)
    beats : Out(stream of :func:`planezip.hdl.types.beat`)
    """

    def __init__(self, beat_bytes: int, lanes: int, rows: int) -> None:
        self._lanes = lanes
        self._depth = rows
        self._beat = beat(beat_bytes)
        self._bytes = beat_bytes
        super().__init__(
            {
                "rows": In(stream.Signature(beat(lanes * beat_bytes))),
                "beats": Out(stream.Signature(self._beat)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        size, lanes = self._bytes, self._lanes
        m.submodules.queue = queue = Queue(self.rows.payload.shape(), self._depth)
        wiring.connect(m, wiring.flipped(self.rows), queue.input)
        row, out = queue.output, self.beats
        index = Signal(range(max(2, lanes)))
        start = index * size
        left = (row.payload.bytes - start)[: len(row.payload.bytes)]
        end = left <= size
        free = ~out.valid | out.ready
        m.d.comb += row.ready.eq(free & end)
        with m.If(free):
            m.d.sync += out.valid.eq(row.valid)
            with m.If(row.valid):
                m.d.sync += [
                    index.eq(Mux(end, 0, index + 1)),
                    out.payload.data.eq(row.payload.data.word_select(index, 8 * size)),
                    out.payload.bytes.eq(Mux(end, left, size)),
                    out.payload.last.eq(end & row.payload.last),
                ]
        return m


class BeatsToRows(wiring.Component):
    """Collects beats to rows, in a queue of them.

    A row is at the output three cycles after its last beat was taken.

    Parameters
    ----------
    beat_bytes, lanes, rows : int

    Attributes
    ----------
    beats : In(stream of :func:`planezip.hdl.types.beat`)
        Bytes behind ``bytes`` are zero; only the last beat of a chunk has some.
    rows : Out(stream of :func:`planezip.hdl.types.beat`)
        The same of rows.
    """

    def __init__(self, beat_bytes: int, lanes: int, rows: int) -> None:
        self._lanes = lanes
        self._depth = rows
        self._bytes = beat_bytes
        super().__init__(
            {
                "beats": In(stream.Signature(beat(beat_bytes))),
                "rows": Out(stream.Signature(beat(lanes * beat_bytes))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        size, lanes = self._bytes, self._lanes
        m.submodules.queue = queue = Queue(self.rows.payload.shape(), self._depth)
        wiring.connect(m, queue.output, wiring.flipped(self.rows))
        new, row = self.beats.payload, queue.input.payload
        index = Signal(range(max(2, lanes)))
        held = [Signal(8 * size, name=f"beat_{k}", reset_less=True) for k in range(lanes - 1)]
        full = new.last | (index == lanes - 1)
        parts = [Mux(index == k, new.data, kept) for k, kept in enumerate(held)]
        parts = [part & (index >= k).replicate(8 * size) for k, part in enumerate(parts)]
        m.d.comb += [
            queue.input.valid.eq(self.beats.valid & full),
            self.beats.ready.eq(queue.input.ready | ~full),
            row.data.eq(Cat(*parts, new.data & (index == lanes - 1).replicate(8 * size))),
            row.bytes.eq(index * size + new.bytes),
            row.last.eq(new.last),
        ]
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += index.eq(Mux(full, 0, index + 1))
            for k, kept in enumerate(held):
                with m.If(index == k):
                    m.d.sync += kept.eq(new.data)
        return m
