"""Emitter: decoded blocks wait until all their faults are known and the output takes them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import (
    BLOCKS_IN_FLIGHT,
    CHUNKS_IN_FLIGHT,
    DecoderGeometry,
    block_end,
    decode_report,
    decoded_beat,
)
from planezip.hdl.wires import registers, wire
from planezip.model.errors import ErrorCode
from planezip.model.format import DEFAULT, Parameters, Tag

__all__ = ["END_BLOCKS", "Emitter"]

END_BLOCKS = 4  # blocks that are between a block's end and its slots here


class Emitter(wiring.Component):
    """Takes a block in 4 cycles and can't refuse it: ``room`` says beforehand.

    A fault makes the block and the rest of its chunk come out as zero beats with ``bad``
    set. A block leaves from the third cycle after its last beat on, a beat a cycle; blocks
    of a discarded tensor don't wait for ``raw``.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    begun, begun_last : In(1)
        A block enters the pipeline; it is its chunk's last one.
    room : Out(1)
        A block may enter.
    end : In(:func:`planezip.hdl.decoder_types.block_end`)
        In phase 3, ``END_BLOCKS`` blocks before the slots of the block end.
    phase : In(2)
        Number of the slot.
    valid : In(1), data : In(slot), misplaced : In(1), padding : In(1)
        A slot of symbols; POSITION and PADDING faults seen with it.
    raw : Out(stream of :func:`planezip.hdl.decoder_types.decoded_beat`)
    report : Out(stream of :func:`planezip.hdl.decoder_types.decode_report`)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = DecoderGeometry(parameters, beats_per_block)
        super().__init__(
            {
                "begun": In(1),
                "begun_last": In(1),
                "room": Out(1),
                "end": In(block_end(parameters)),
                "phase": In(2),
                "valid": In(1),
                "data": In(g.slot),
                "misplaced": In(1),
                "padding": In(1),
                "raw": Out(stream.Signature(decoded_beat(parameters, beats_per_block))),
                "report": Out(stream.Signature(decode_report(parameters))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        p = g.parameters
        size = g.beat // 8
        depth = BLOCKS_IN_FLIGHT
        end = self.end
        for k in range(END_BLOCKS):
            late = Signal(end.shape(), name=f"end_{k}", reset_less=True)
            with m.If(self.phase == g.slots - 1):
                m.d.sync += late.eq(end)
            end = late
        m.submodules.beats = memory = Memory(shape=g.beat, depth=g.beats * depth, init=[])
        write, read = memory.write_port(), memory.read_port(domain="sync")

        # Beats in; faults of the block.
        block = Signal(range(depth))
        part = min(8, g.slot)
        starts = range(0, g.slot, part)
        here = self.phase << (g.slot.bit_length() - 1)
        partial = end.last_of_tensor & (end.tail != 0)
        over = wire(m, Cat(partial & (end.tail <= (here + k)[3:]) for k in starts), "over")
        behind = Cat(bit.replicate(part) for bit in over)
        strays = wire(m, (self.data & behind).any() & ~end.bypass, "strays")
        misplaced, padding, tail = Signal(), Signal(), Signal()
        last_beat = wire(m, self.valid & (self.phase == g.slots - 1), "last_beat")
        now_misplaced = misplaced | self.misplaced
        now_padding = padding | self.padding
        now_tail = tail | strays
        kept = self.data & ~behind
        per_beat = g.slots // g.beats  # slots
        if per_beat == 2:
            before = Signal(g.slot, reset_less=True)
            m.d.sync += before.eq(kept)
            kept = Cat(before, kept)
        m.d.comb += [
            write.en.eq(self.valid & (self.phase[0] if per_beat == 2 else 1)),
            write.addr.eq(Cat(self.phase[per_beat - 1 :], block)),
            write.data.eq(kept),
        ]
        with m.If(self.valid):
            m.d.sync += [
                misplaced.eq(now_misplaced & ~last_beat),
                padding.eq(now_padding & ~last_beat),
                tail.eq(now_tail & ~last_beat),
            ]
        fault = Signal(4)
        with m.If(end.error != 0):
            m.d.comb += fault.eq(end.error)
        with m.Elif(now_misplaced):
            m.d.comb += fault.eq(ErrorCode.POSITION)
        with m.Elif(end.trailing):
            m.d.comb += fault.eq(ErrorCode.TRAILING)
        with m.Elif(now_padding):
            m.d.comb += fault.eq(ErrorCode.PADDING)
        with m.Elif(now_tail):
            m.d.comb += fault.eq(ErrorCode.TAIL)
        with m.If(last_beat):
            m.d.sync += block.eq(Mux(block == depth - 1, 0, block + 1))

        # A cycle later: faults and counts of the chunk.
        unused = ("error", "trailing", "bypass")
        names = [name for name in end.shape().members if name not in unused]
        fields = {name: getattr(end, name) for name in names} | {"fault": fault}
        done = registers(m, fields, "done", last_beat)
        closes, ends = Signal(), Signal()  # a block, a chunk
        m.d.sync += [closes.eq(last_beat), ends.eq(closes & done["last_of_chunk"])]
        first = Signal(init=1)  # the next block is its chunk's first one
        error = Signal(4, reset_less=True)
        place = Signal(range(p.blocks_per_chunk), reset_less=True)
        counts = [
            Signal(p.blocks_per_chunk.bit_length(), name=f"count_{t.name}", reset_less=True)
            for t in Tag
        ]
        is_bad = wire(m, ~first & (error != 0), "is_bad")
        good = wire(m, ~is_bad & (done["fault"] == 0), "good")
        with m.If(closes):
            m.d.sync += first.eq(done["last_of_chunk"])
            m.d.sync += [
                k.eq(Mux(first, 0, k) + ((done["tag"] == t) & good))
                for t, k in zip(Tag, counts, strict=True)
            ]
            with m.If(~is_bad):
                m.d.sync += [error.eq(done["fault"]), place.eq(done["index"])]
        # Another cycle later: the report.
        reports = SyncFIFOBuffered(width=self.report.payload.shape().size, depth=CHUNKS_IN_FLIGHT)
        m.submodules.reports = reports
        report = data.View(decode_report(p), reports.w_data)
        m.d.comb += [
            reports.w_en.eq(ends),
            report.body_bytes.eq(done["body_bytes"]),
            *[report.blocks[t].eq(k) for t, k in zip(Tag, counts, strict=True)],
            report.raw.eq(done["raw"]),
            report.last.eq(done["last_of_tensor"]),
            report.error.eq(Mux(error != 0, error, Mux(done["extra"], ErrorCode.EXTRA, 0))),
            report.block.eq(Mux(error != 0, place, 0)),
            self.report.valid.eq(reports.r_rdy),
            Value.cast(self.report.payload).eq(reports.r_data),
            reports.r_en.eq(self.report.ready),
        ]

        # Beats out.
        leaving = data.StructLayout({"tail": end.tail.shape(), "last": 1, "bad": 1, "discard": 1})
        queue = SyncFIFOBuffered(width=leaving.size, depth=depth)
        m.submodules.blocks = queue
        new, head = data.View(leaving, queue.w_data), data.View(leaving, queue.r_data)
        m.d.comb += [
            queue.w_en.eq(closes),
            new.tail.eq(Mux(done["last_of_tensor"], done["tail"], 0)),
            new.last.eq(done["last_of_tensor"]),
            new.bad.eq(~good),
            new.discard.eq(done["discard"]),
        ]
        position, leaves = Signal(range(g.beats)), Signal(range(depth))
        out, held = self.raw.payload, Signal()
        bad, discard = Signal(), Signal()
        moves = ~held | self.raw.ready | discard
        # Bytes left from this beat on; 0 stands for a whole block.
        start = position << (size.bit_length() - 1)
        bytes_left = (Mux(head.tail == 0, p.block_bits // 8, head.tail) - start)[:8]
        ends_here = bytes_left <= size
        last_read = queue.r_rdy & moves & ends_here
        m.d.comb += [
            read.en.eq(queue.r_rdy & moves),
            read.addr.eq(Cat(position, leaves)),
            queue.r_en.eq(last_read),
            self.raw.valid.eq(held & ~discard),
            out.data.eq(read.data & (~bad).replicate(g.beat)),
            out.bad.eq(bad),
        ]
        with m.If(moves):
            m.d.sync += held.eq(queue.r_rdy)
        with m.If(queue.r_rdy & moves):
            m.d.sync += [
                position.eq(Mux(ends_here, 0, position + 1)),
                leaves.eq(Mux(ends_here, Mux(leaves == depth - 1, 0, leaves + 1), leaves)),
                bad.eq(head.bad),
                discard.eq(head.discard),
                out.bytes.eq(Mux(ends_here, bytes_left, size)),
                out.last.eq(head.last & ends_here),
            ]

        # Credits.
        blocks, chunks = Signal(range(depth + 1)), Signal(range(CHUNKS_IN_FLIGHT + 1))
        taken = self.report.valid & self.report.ready
        m.d.sync += [
            blocks.eq(blocks + self.begun - last_read),
            chunks.eq(chunks + self.begun_last - taken),
        ]
        m.d.comb += self.room.eq((blocks != depth) & (chunks != CHUNKS_IN_FLIGHT))
        return m
