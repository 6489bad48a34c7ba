"""Chunk buffer: raw blocks wait here until their chunk is sized; then pass 2 reads them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from planezip.hdl.delta import beat_bits, strobe
from planezip.hdl.framer import block_meta, framed_beat
from planezip.hdl.sizer import MINIMUM_CYCLES, block_result
from planezip.hdl.summary import block_summary, chunk_record
from planezip.hdl.types import Mode, chunk_report
from planezip.model.format import DEFAULT, Parameters, Tag

__all__ = ["ChunkBuffer", "read_order", "ring_blocks"]

_REPORTS = 3  # chunks of one block that are between their last beat and their report
_LATENCY = 10  # cycles from the last beat of a chunk to its first read


def read_order(blocks: int, raw: bool) -> list[int]:
    """Software model: blocks of a chunk in the order of the stream (docs/format.md)."""
    every = list(range(blocks))
    return every if raw else every[::2] + every[1::2][::-1]


def ring_blocks(parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> int:
    """Blocks in the ring: two chunks, and what comes in before the first one is read."""
    cycles = max(beats_per_block, MINIMUM_CYCLES)
    return 2 * parameters.blocks_per_chunk + -(-_LATENCY // cycles)


class ChunkBuffer(wiring.Component):
    """Ring of raw blocks, a summary of each, and a record of each chunk.

    A beat a cycle in and out. The first beat of a chunk is valid 11 cycles after its last
    one was taken (7 of them: the sizer's), if the chunk before is read by then; its record
    and a summary are valid a cycle before the first beat that they belong to.

    Pass 2 reads a chunk in the order of the stream, so its blocks become free together, when
    the last one is read. While a full chunk is read, the next one is written, and behind it
    the blocks that arrive until the first is read to its end: at the latest 4 * 32 + latency
    cycles after its last beat, whatever the lengths of the chunks. So two chunks and the
    blocks of that latency (3) hold all that is under way.

    The summary memory has a row per block: its summary, and, in the row of a chunk's first
    block, the chunk's record. (A queue of records of its own would hold up to 33 of them.)
    Tensors in mode MEASURE are not stored: they give reports only, whatever pass 2 does.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int
        Two or more: a record is read with the first beat of its chunk and used with the last
        beat of a block.

    Attributes
    ----------
    raw : In(stream of :func:`planezip.hdl.framer.framed_beat`)
    results : In(strobe of :func:`planezip.hdl.sizer.block_result`)
        Of the blocks of ``raw``, in order, at least four cycles apart.
    chunks, summaries, beats : Out(stream)
        ``hdl/summary.py``.
    report : Out(stream of :func:`planezip.hdl.types.chunk_report`)
        A chunk stored as it is counts its blocks as RAW. With three reports waiting no chunk
        is completed.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        if beats_per_block < 2:
            raise ValueError(f"beats_per_block must be two or more, not {beats_per_block!r}")
        self._parameters = parameters
        self._beats_per_block = beats_per_block
        self._blocks = ring_blocks(parameters, beats_per_block)
        bits = beat_bits(parameters, beats_per_block)
        super().__init__(
            {
                "raw": In(stream.Signature(framed_beat(parameters, beats_per_block))),
                "results": In(strobe(block_result(parameters, block_meta(parameters)))),
                "chunks": Out(stream.Signature(chunk_record(parameters))),
                "summaries": Out(stream.Signature(block_summary(parameters))),
                "beats": Out(stream.Signature(unsigned(bits))),
                "report": Out(stream.Signature(chunk_report(parameters))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p, count = self._parameters, self._beats_per_block
        bits = len(self.beats.payload)
        m.submodules.blocks = blocks = Memory(
            shape=unsigned(bits), depth=self._blocks * count, init=[]
        )
        summary_bits, record_bits = block_summary(p).size, chunk_record(p).size
        # Lanes of the summary memory: one for the record, the others for the summary.
        self._lane = min(
            range(record_bits, record_bits + summary_bits),
            key=lambda lane: lane * (1 + -(-summary_bits // lane)),
        )
        lanes = 1 + -(-summary_bits // self._lane)
        m.submodules.summaries = rows = Memory(
            shape=data.ArrayLayout(unsigned(self._lane), lanes), depth=self._blocks, init=[]
        )
        self._slot = range(self._blocks)
        self._frees = Signal()  # the blocks of a chunk, `_freed` of them, are free
        self._freed = Signal(range(p.blocks_per_chunk + 1))
        self._chunk_done = Signal()  # a stored chunk's record is written in this cycle
        self._write(m, blocks.write_port())
        self._size(m, rows.write_port(granularity=1))
        self._read(m, blocks.read_port(), rows.read_port())
        return m

    def _next(self, slot: Value, step: int) -> Value:
        """The slot ``step`` further on in the ring; ``step`` may be negative."""
        if step > 0:
            return Mux(slot >= self._blocks - step, slot + step - self._blocks, slot + step)[
                : len(slot)
            ]
        return Mux(slot < -step, slot + step + self._blocks, slot + step)[: len(slot)]

    def _write(self, m: Module, port: Any) -> None:
        """Beats go to the ring; a block needs a free slot, a chunk's end a place for its report."""
        beat, meta = self.raw.payload.beat, self.raw.payload.meta
        used = Signal(range(self._blocks + 1))
        slot = Signal(self._slot)
        position = Signal(range(self._beats_per_block))
        owed = Signal(range(_REPORTS + 1))
        stored = Signal()
        moves = Signal()
        room = (used != self._blocks) | ~stored | ~beat.first
        m.d.comb += [
            stored.eq(meta.mode != Mode.MEASURE),
            self.raw.ready.eq(room & ((owed != _REPORTS) | ~meta.last_of_chunk)),
            moves.eq(self.raw.valid & self.raw.ready),
            port.addr.eq(Cat(position, slot)),
            port.data.eq(beat.data),
            port.en.eq(moves & stored),
        ]
        with m.If(moves & stored):
            m.d.sync += position.eq(position + 1)
            with m.If(beat.last):
                m.d.sync += slot.eq(self._next(slot, 1))
        opened = moves & stored & beat.first
        m.d.sync += used.eq(Mux(self._frees, used - self._freed + opened, used + opened))
        reported = self.report.valid & self.report.ready
        m.d.sync += owed.eq(owed + (moves & meta.last_of_chunk) - reported)

    def _size(self, m: Module, port: Any) -> None:
        """Sizes are added up; with the last block of a chunk its record and report are made."""
        p = self._parameters
        block_bytes = p.block_bits // 8
        result, meta = self.results.payload.summary, self.results.payload.meta
        # Bits of the blocks, less those of raw ones, and 7: the sign says which are fewer bytes.
        raw_bits = p.block_bits * p.blocks_per_chunk
        surplus = Signal(range(7 - raw_bits, 3 * p.blocks_per_chunk + 8))
        blocks = Signal(range(p.blocks_per_chunk + 1))
        counts = [Signal.like(blocks, name=f"count_{tag.name}") for tag in Tag]
        slot, first_slot = Signal(self._slot), Signal(self._slot)
        last = Signal()  # the block before was the last one of its chunk
        done = Signal.like(meta)
        fresh = Signal(init=1)
        with m.If(self.results.valid):
            m.d.sync += [
                surplus.eq(Mux(fresh, 7, surplus) + result.bits - p.block_bits),
                blocks.eq(Mux(fresh, 0, blocks) + 1),
                fresh.eq(meta.last_of_chunk),
                done.eq(meta),
            ]
            for tag, number in zip(Tag, counts, strict=True):
                m.d.sync += number.eq(Mux(fresh, 0, number) + (result.tag == tag.value))
        m.d.sync += last.eq(self.results.valid & meta.last_of_chunk)

        # A cycle later: the chunk's record and report.
        bypass, measure = done.mode == Mode.BYPASS, done.mode == Mode.MEASURE
        raw = bypass | (surplus >= 0)
        cut = bypass & done.last_of_tensor & (done.tail != 0)
        more = Mux(raw, Mux(cut, done.tail - block_bytes, 0), surplus >> 3)  # than raw blocks
        record = Signal(chunk_record(p))
        m.d.comb += [
            record.blocks.eq(blocks),
            record.body_bytes.eq(blocks * block_bytes + more),
            record.padding.eq(~surplus[:3]),
            record.width.eq(done.width),
            record.raw.eq(raw),
            record.bypass.eq(bypass),
            record.last.eq(done.last_of_tensor),
        ]
        lane = self._lane
        m.d.comb += [
            self._chunk_done.eq(last & ~measure),
            port.addr.eq(Mux(last, first_slot, slot)),
            port.data.as_value().eq(Cat(record.as_value() | Const(0, lane), result.as_value())),
            port.en.eq(
                Mux(
                    last,
                    ~measure,
                    ((1 << len(port.en)) - 2)
                    & (self.results.valid & (meta.mode != Mode.MEASURE)).replicate(len(port.en)),
                )
            ),
        ]
        with m.If(self.results.valid & (meta.mode != Mode.MEASURE)):
            m.d.sync += slot.eq(self._next(slot, 1))
        with m.If(self._chunk_done):
            m.d.sync += first_slot.eq(slot)

        m.submodules.reports = reports = fifo.SyncFIFO(width=chunk_report(p).size, depth=_REPORTS)
        report = data.View(chunk_report(p), reports.w_data)
        m.d.comb += [
            reports.w_en.eq(last),
            report.body_bytes.eq(record.body_bytes),
            report.raw.eq(raw),
            report.last.eq(done.last_of_tensor),
            self.report.valid.eq(reports.r_rdy),
            self.report.payload.eq(reports.r_data),
            reports.r_en.eq(self.report.ready),
        ]
        for tag, number in zip(Tag, counts, strict=True):
            kept = blocks if tag == Tag.RAW else 0
            m.d.comb += report.blocks[tag.value].eq(Mux(raw, kept, number))

    def _read(self, m: Module, port: Any, rows: Any) -> None:
        """A complete chunk is read in the order of the stream, a beat a cycle."""
        p, count = self._parameters, self._beats_per_block
        waiting = Signal(range(self._blocks + 1))  # complete chunks that are not begun
        busy = Signal()  # in the middle of a chunk
        base, slot = Signal(self._slot), Signal(self._slot)
        index = Signal(range(p.blocks_per_chunk))
        position = Signal(range(count))
        # The record is in the row that was read last, later on in a register: soon enough for
        # what follows from it, unless a block has two beats only.
        fresh = Signal()
        held = Signal(chunk_record(p), reset_less=True)
        record = self.chunks.payload
        row = rows.data.as_value()
        with m.If(fresh):
            m.d.sync += [held.eq(record), fresh.eq(0)]

        first, last = position == 0, position == count - 1
        begin, issue = Signal(), Signal()
        asked = Signal()  # a beat that is to be read, a cycle after its summary
        asked_at = Signal(len(port.addr), reset_less=True)
        asked_end = Signal()  # it is the last one of its chunk
        free = ~self.beats.valid | self.beats.ready
        free_summary = ~first | ~self.summaries.valid | self.summaries.ready
        free_chunk = busy | ~self.chunks.valid | self.chunks.ready
        m.d.comb += [
            record.eq(Mux(fresh, row[: len(record.as_value())], held)),
            self.summaries.payload.eq(row[self._lane :]),
            self.beats.payload.eq(port.data),
            issue.eq((busy | (waiting != 0)) & (~asked | free) & free_summary & free_chunk),
            begin.eq(issue & ~busy),
            port.addr.eq(asked_at),
            port.en.eq(asked & free),
            rows.addr.eq(slot),
            rows.en.eq(issue & first),
        ]
        for valid, starts, ready in (
            (asked, issue, free),
            (self.beats.valid, asked & free, self.beats.ready),
            (self.summaries.valid, issue & first, self.summaries.ready),
            (self.chunks.valid, begin, self.chunks.ready),
        ):
            with m.If(starts):
                m.d.sync += valid.eq(1)
            with m.Elif(ready):
                m.d.sync += valid.eq(0)
        m.d.sync += waiting.eq(Mux(begin, waiting - ~self._chunk_done, waiting + self._chunk_done))

        known = record if count == 2 else held
        # Where next: 0, 2, 4, ..., then the odd ones downwards; raw ones just upwards.
        top = index + 1 >= known.blocks  # the last block in natural order
        near = index + 2 >= known.blocks
        down = ~known.raw & index[0]
        turn = ~known.raw & ~index[0] & near
        end = Mux(known.raw | (known.blocks == 1), top, index == 1)
        base_after = base + known.blocks
        with m.If(begin):
            m.d.sync += [fresh.eq(1), busy.eq(1)]
        # The chunk's blocks are free with its last read, while its record is still there.
        m.d.comb += [self._frees.eq(asked_end & free), self._freed.eq(known.blocks)]
        with m.If(free):
            m.d.sync += asked_end.eq(0)
        with m.If(issue):
            m.d.sync += [position.eq(position + 1), asked_at.eq(Cat(position, slot))]
            with m.If(last):
                with m.If(end):
                    after = Mux(base_after >= self._blocks, base_after - self._blocks, base_after)
                    m.d.sync += [base.eq(after), slot.eq(after), index.eq(0), busy.eq(0)]
                    m.d.sync += asked_end.eq(1)
                with m.Elif(down):
                    m.d.sync += [slot.eq(self._next(slot, -2)), index.eq(index - 2)]
                with m.Elif(turn & top):
                    m.d.sync += [slot.eq(self._next(slot, -1)), index.eq(index - 1)]
                with m.Elif(turn | known.raw):
                    m.d.sync += [slot.eq(self._next(slot, 1)), index.eq(index + 1)]
                with m.Else():
                    m.d.sync += [slot.eq(self._next(slot, 2)), index.eq(index + 2)]
