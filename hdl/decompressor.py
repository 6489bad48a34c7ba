"""Decompressor lane: PlaneZip chunks in, tensors out (docs/architecture.md)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from planezip.hdl.block_parser import BlockParser
from planezip.hdl.decoder_types import DecoderGeometry, chunk_entry, decode_report, decoded_beat
from planezip.hdl.emitter import Emitter
from planezip.hdl.intake import Intake
from planezip.hdl.plane_rebuild import PlaneRebuild
from planezip.hdl.running_sum import LATENCY as SUM_LATENCY
from planezip.hdl.running_sum import RunningSum
from planezip.hdl.types import beat, descriptor
from planezip.hdl.unpack import Unpack
from planezip.hdl.untranspose import Untranspose
from planezip.model.format import DEFAULT, Parameters

__all__ = ["LATENCY_CYCLES", "DecompressorLane"]

LATENCY_CYCLES = 39  # from the last wire beat of a chunk to its first raw beat, at most
_ENTRIES = 32  # chunks that wait in the ring: short ones cover the arrival of a long one


class DecompressorLane(wiring.Component):
    """Decompresses tensors, one after the other, in the order of their descriptors.

    A tensor of B bytes takes at most 4 * ceil(B / 128) cycles, an empty one 1, back to
    back, for every legal stream that is there in time (a beat a cycle is always in time)
    while ``raw`` and ``report`` are ready.

    Nothing in the pipeline stalls: a block begins every 4 cycles, in phase 0 of a counter, if
    a chunk is there as a whole and the output has room for the block. Slot k of a block
    is ``k`` cycles behind slot 0, which passes

    | cycle | part |
    |---|---|
    | 0-8 | :class:`planezip.hdl.block_parser.BlockParser` |
    | 8-15 | :class:`planezip.hdl.unpack.Unpack` |
    | 15-19 | :class:`planezip.hdl.plane_rebuild.PlaneRebuild` |
    | 19-23 | :class:`planezip.hdl.untranspose.Untranspose` |
    | 23-28 | :class:`planezip.hdl.running_sum.RunningSum` |
    | 28- | :class:`planezip.hdl.emitter.Emitter` |

    What comes out of a chunk with a fault (docs/format.md, Errors):

    | fault | blocks before it | the block and the rest of the chunk | rest of the tensor |
    |---|---|---|---|
    | CHUNK_SIZE, STREAM_END | | zero beats, ``bad`` | the same; the wire is drained to ``last`` |
    | TAG to TAIL | data | zero beats, ``bad`` | decoded |
    | EXTRA | data | data | the wire is drained to ``last`` |

    So the count of bytes always holds, in the time of a good tensor. Each chunk's report
    names its own first fault; the first report with one is the tensor's.

    The ring of two chunks has one read port: control strings are read in phase 0, payloads
    in phases 1 to 3.

    Parameters
    ----------
    parameters : Parameters
        Of a block of 1024 bits.

    Attributes
    ----------
    descriptor : In(stream of :func:`planezip.hdl.types.descriptor`)
    wire : In(stream of :func:`planezip.hdl.types.beat`)
        A tensor whose stream has no byte at all must have one beat of 0 bytes.
    raw : Out(stream of :func:`planezip.hdl.decoder_types.decoded_beat`)
        Nothing comes out for a tensor in mode MEASURE.
    report : Out(stream of :func:`planezip.hdl.decoder_types.decode_report`)
        One per chunk, in every mode.
    """

    def __init__(self, parameters: Parameters = DEFAULT) -> None:
        self._geometry = g = DecoderGeometry(parameters)
        super().__init__(
            {
                "descriptor": In(stream.Signature(descriptor())),
                "wire": In(stream.Signature(beat(g.wire // 8))),
                "raw": Out(stream.Signature(decoded_beat(parameters))),
                "report": Out(stream.Signature(decode_report(parameters))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        p = g.parameters
        m.submodules.intake = intake = Intake(p)
        m.submodules.parser = parser = BlockParser(p)
        m.submodules.unpack = unpack = Unpack(p)
        m.submodules.rebuild = rebuild = PlaneRebuild(p)
        m.submodules.untranspose = untranspose = Untranspose(p)
        m.submodules.sums = sums = RunningSum(p)
        m.submodules.emitter = emitter = Emitter(p)
        phase = Signal(2)
        m.d.sync += phase.eq(phase + 1)

        # Wire beats and the entries of their chunks.
        wiring.connect(m, wiring.flipped(self.descriptor), intake.descriptor)
        wiring.connect(m, wiring.flipped(self.wire), intake.wire)
        m.submodules.chunks = chunks = SyncFIFOBuffered(width=chunk_entry(p).size, depth=_ENTRIES)
        m.d.comb += [
            chunks.w_data.eq(intake.chunks.payload),
            chunks.w_en.eq(intake.chunks.valid),
            intake.chunks.ready.eq(chunks.w_rdy),
            Value.cast(parser.chunks.payload).eq(chunks.r_data),
            parser.chunks.valid.eq(chunks.r_rdy),
            chunks.r_en.eq(parser.chunks.ready),
            intake.oldest.eq(parser.oldest),
        ]
        # The ring: four banks, so that four words from any one on come in a cycle.
        word = Mux(phase == 0, parser.word, unpack.word)
        banks = []
        for k in range(4):
            memory = Memory(shape=g.bank, depth=g.rows, init=[])
            m.submodules[f"bank_{k}"] = memory
            write, read = memory.write_port(), memory.read_port(domain="sync")
            m.d.comb += [
                write.en.eq(intake.write),
                write.addr.eq(intake.row),
                write.data.eq(self.wire.payload.data[k * g.bank : (k + 1) * g.bank]),
                read.en.eq(1),
                read.addr.eq(word[2:] + (word[:2] > k)),
            ]
            banks.append(read.data)

        # The pipeline.
        planes = rebuild.planes
        m.d.comb += [
            parser.phase.eq(phase),
            parser.room.eq(emitter.room),
            parser.data.eq(Cat(banks)),
            emitter.begun.eq(parser.begun),
            emitter.begun_last.eq(parser.begun_last),
            emitter.end.eq(parser.end),
            emitter.end_valid.eq(parser.end_valid),
            unpack.phase.eq(phase),
            unpack.block.eq(parser.block),
            unpack.data.eq(Cat(banks)),
            rebuild.phase.eq(phase),
            rebuild.block.eq(parser.block),
            rebuild.slot.eq(unpack.slot),
            untranspose.line.eq(phase + 1),
            untranspose.data.eq(planes.data),
            untranspose.width.eq(planes.width),
            untranspose.order.eq(planes.order),
            sums.first.eq(phase == 3),
            sums.data.eq(untranspose.beat),
        ]
        flags = Cat(planes.valid, planes.misplaced, planes.padding, planes.width, planes.dbx)
        for k in range(g.beats + SUM_LATENCY):
            if k == g.beats:
                m.d.comb += [sums.width.eq(flags[3:-1]), sums.on.eq(flags[-1])]
            late = Signal(len(flags), name=f"flags_{k}")
            m.d.sync += late.eq(flags)
            flags = late
        m.d.comb += [
            emitter.phase.eq(phase),
            emitter.valid.eq(flags[0]),
            emitter.misplaced.eq(flags[1]),
            emitter.padding.eq(flags[2]),
            emitter.data.eq(sums.sums),
        ]
        wiring.connect(m, emitter.raw, wiring.flipped(self.raw))
        wiring.connect(m, emitter.report, wiring.flipped(self.report))
        return m
