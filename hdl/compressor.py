"""Compressor lane: tensors in, PlaneZip chunks out (docs/architecture.md)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.chunk_buffer import ChunkBuffer
from planezip.hdl.delta import beat_bits
from planezip.hdl.framer import Framer, block_meta
from planezip.hdl.serializer import Serializer
from planezip.hdl.sizer import Sizer
from planezip.hdl.types import beat, chunk_report, descriptor
from planezip.model.format import DEFAULT, Parameters

__all__ = ["CompressorLane"]


class CompressorLane(wiring.Component):
    """Compresses tensors, one after the other, in the order of their descriptors.

    A tensor of B bytes takes at most 4 * ceil(B / 128) cycles, an empty one 1, back to
    back, while ``wire`` and ``report`` are ready. Latency: the first wire beat of a full chunk
    is valid 147 cycles after its first raw beat was taken (127 for the other beats of the
    chunk, 11 to size and record it, 9 in the serializer).

    Parameters
    ----------
    parameters : Parameters
        Encodings that are left out have no hardware.
    beats_per_block : int
        Raw beats of a block, two or more; with fewer than four a block still takes four cycles.

    Attributes
    ----------
    descriptor : In(stream of :func:`planezip.hdl.types.descriptor`)
    raw : In(stream of a beat's bits)
    wire : Out(stream of :func:`planezip.hdl.types.beat`)
        Twice as wide as ``raw``. Nothing comes out for a tensor in mode MEASURE, which does
        not wait for ``wire`` either.
    report : Out(stream of :func:`planezip.hdl.types.chunk_report`)
        One per chunk, in every mode; the one of a chunk may come before its bytes. Up to three
        wait for ``ready``, then ``raw`` stops.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._parameters = parameters
        self._beats_per_block = beats_per_block
        bits = beat_bits(parameters, beats_per_block)
        super().__init__(
            {
                "descriptor": In(stream.Signature(descriptor())),
                "raw": In(stream.Signature(unsigned(bits))),
                "wire": Out(stream.Signature(beat(bits // 4))),
                "report": Out(stream.Signature(chunk_report(parameters))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p, count = self._parameters, self._beats_per_block
        m.submodules.framer = framer = Framer(p, count)
        m.submodules.sizer = sizer = Sizer(p, count, block_meta(p))
        m.submodules.buffer = buffer = ChunkBuffer(p, count)
        m.submodules.serializer = serializer = Serializer(p, count)
        wiring.connect(m, wiring.flipped(self.descriptor), framer.descriptor)
        wiring.connect(m, wiring.flipped(self.raw), framer.raw)
        # Sizer and buffer take a beat together.
        m.d.comb += [
            sizer.beats.payload.eq(framer.beats.payload),
            buffer.raw.payload.eq(framer.beats.payload),
            sizer.beats.valid.eq(framer.beats.valid & buffer.raw.ready),
            buffer.raw.valid.eq(framer.beats.valid & sizer.beats.ready),
            framer.beats.ready.eq(sizer.beats.ready & buffer.raw.ready),
        ]
        wiring.connect(m, sizer.results, buffer.results)
        for name in ("chunks", "summaries", "beats"):
            wiring.connect(m, getattr(buffer, name), getattr(serializer, name))
        wiring.connect(m, serializer.wire, wiring.flipped(self.wire))
        wiring.connect(m, buffer.report, wiring.flipped(self.report))
        return m
