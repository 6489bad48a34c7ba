"""Decompressor lane: PlaneZip chunks in, tensors out (docs/architecture.md)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from planezip.hdl.block_parser import BlockParser
from planezip.hdl.decoder_types import DecoderGeometry, decode_report, decoded_beat
from planezip.hdl.emitter import Emitter
from planezip.hdl.intake import Intake
from planezip.hdl.plane_rebuild import PlaneRebuild
from planezip.hdl.running_sum import LATENCY as SUM_LATENCY
from planezip.hdl.running_sum import RunningSum
from planezip.hdl.types import beat, descriptor
from planezip.hdl.unpack import Unpack
from planezip.hdl.untranspose import Untranspose
from planezip.hdl.wires import registers
from planezip.model.format import DEFAULT, Parameters

__all__ = ["LATENCY_CYCLES", "DecompressorLane"]

LATENCY_CYCLES = 37  # from the last wire beat of a chunk to its first raw beat, at most
_ENTRIES = 64  # chunks that wait in the ring: short ones cover the arrival of a long one


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
    | 8-14 | :class:`planezip.hdl.unpack.Unpack` |
    | 14-16 | :class:`planezip.hdl.plane_rebuild.PlaneRebuild` |
    | 16-20 | :class:`planezip.hdl.untranspose.Untranspose` |
    | 20-24 | :class:`planezip.hdl.running_sum.RunningSum` |
    | 24- | :class:`planezip.hdl.emitter.Emitter` |

    What comes out of a chunk with a fault (docs/format.md, Errors):

    | fault | blocks before it | the block and the rest of the chunk | rest of the tensor |
    |---|---|---|---|
    | CHUNK_SIZE, STREAM_END | | zero beats, ``bad`` | the same; the wire is drained to ``last`` |
    | TAG to TAIL | data | zero beats, ``bad`` | decoded |
    | EXTRA | data | data | the wire is drained to ``last`` |

    So the count of bytes always holds, in the time of a good tensor. Each chunk's report
    names its own first fault; the first report with one is the tensor's.

    The ring of two chunks has one read port: control strings are read in phase 0, payloads
    in phases 1 to 3. Latency: the first raw beat of a chunk is valid at most
    ``LATENCY_CYCLES`` after its last wire beat was taken.

    Parameters
    ----------
    parameters : Parameters
        Blocks of S x S bits, see :class:`planezip.hdl.decoder_types.DecoderGeometry`. Encodings
        that are left out have no hardware, and are faults.
    beats_per_block : int
        Raw beats of a block, 4 or 2; a block takes four cycles all the same.

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

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = DecoderGeometry(parameters, beats_per_block)
        super().__init__(
            {
                "descriptor": In(stream.Signature(descriptor())),
                "wire": In(stream.Signature(beat(g.wire // 8))),
                "raw": Out(stream.Signature(decoded_beat(parameters, beats_per_block))),
                "report": Out(stream.Signature(decode_report(parameters))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        p, count = g.parameters, g.beats
        m.submodules.intake = intake = Intake(p, count)
        m.submodules.parser = parser = BlockParser(p, count)
        m.submodules.unpack = unpack = Unpack(p, count)
        m.submodules.rebuild = rebuild = PlaneRebuild(p, count)
        m.submodules.untranspose = untranspose = Untranspose(p)
        m.submodules.sums = sums = RunningSum(p)
        m.submodules.emitter = emitter = Emitter(p, count)
        phase = Signal(2)
        m.d.sync += phase.eq(phase + 1)

        # Wire beats and the entries of their chunks.
        wiring.connect(m, wiring.flipped(self.descriptor), intake.descriptor)
        wiring.connect(m, wiring.flipped(self.wire), intake.wire)
        m.d.comb += intake.oldest.eq(parser.oldest)
        self._entries(m, intake, parser)
        word = Mux(phase == 0, parser.word, unpack.word)
        ring = self._ring(m, intake, word)

        # The pipeline.
        planes = rebuild.planes
        m.d.comb += [
            parser.phase.eq(phase),
            parser.room.eq(emitter.room),
            parser.data.eq(ring),
            emitter.begun.eq(parser.begun),
            emitter.begun_last.eq(parser.begun_last),
            emitter.end.eq(parser.end),
            unpack.phase.eq(phase),
            unpack.block.eq(parser.block),
            unpack.data.eq(ring),
            rebuild.phase.eq(phase),
            rebuild.block.eq(parser.block),
            rebuild.slot.eq(unpack.slot),
            untranspose.line.eq(phase),
            untranspose.data.eq(planes.data),
            untranspose.width.eq(planes.width),
            untranspose.order.eq(planes.order),
            sums.first.eq(phase == 3),
            sums.data.eq(untranspose.beat),
        ]
        names = ("valid", "misplaced", "padding", "width", "dbx")
        flags = {name: getattr(planes, name) for name in names}
        for k in range(g.slots + SUM_LATENCY):
            if k == g.slots:
                m.d.comb += [sums.width.eq(flags["width"]), sums.on.eq(flags["dbx"])]
                del flags["width"], flags["dbx"]
            flags = registers(m, flags, f"flags_{k}")
        m.d.comb += [
            emitter.phase.eq(phase),
            emitter.valid.eq(flags["valid"]),
            emitter.misplaced.eq(flags["misplaced"]),
            emitter.padding.eq(flags["padding"]),
            emitter.data.eq(sums.sums),
        ]
        wiring.connect(m, emitter.raw, wiring.flipped(self.raw))
        wiring.connect(m, emitter.report, wiring.flipped(self.report))
        return m

    def _entries(self, m: Module, intake: Intake, parser: BlockParser) -> None:
        """Chunk entries on their way: in a memory, the oldest one in a register."""
        layout = intake.chunks.payload.shape()
        m.submodules.chunks = chunks = SyncFIFOBuffered(width=layout.size, depth=_ENTRIES)
        valid, entry = Signal(), Signal(layout, reset_less=True)
        m.d.comb += [
            chunks.w_data.eq(intake.chunks.payload),
            chunks.w_en.eq(intake.chunks.valid),
            intake.chunks.ready.eq(chunks.w_rdy),
            chunks.r_en.eq(~valid | parser.chunks.ready),
            parser.chunks.payload.eq(entry),
            parser.chunks.valid.eq(valid),
        ]
        with m.If(chunks.r_en):
            m.d.sync += [valid.eq(chunks.r_rdy), Value.cast(entry).eq(chunks.r_data)]

    def _ring(self, m: Module, intake: Intake, word: Value) -> Value:
        """Wire beats in, the words from ``word`` on out, bank by bank: each holds every
        ``banks``-th word, so that consecutive words come in a cycle."""
        g = self._geometry
        banks = []
        beats = g.banks // 4  # wire beats in a row of all banks
        select = beats.bit_length() - 1
        for k in range(g.banks):
            memory = Memory(shape=g.bank, depth=g.rows // beats, init=[])
            m.submodules[f"bank_{k}"] = memory
            write, read = memory.write_port(), memory.read_port(domain="sync")
            m.d.comb += [
                write.en.eq(intake.write & (intake.row[:select] == k // 4)),
                write.addr.eq(intake.row[select:]),
                write.data.eq(self.wire.payload.data[k % 4 * g.bank : (k % 4 + 1) * g.bank]),
                read.en.eq(1),
                read.addr.eq(word[g.bank_select :] + (word[: g.bank_select] > k)),
            ]
            banks.append(read.data)
        return Cat(banks)
