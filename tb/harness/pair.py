# amaranth: UnusedElaboratable=no
"""Compressor and decompressor against each other; the golden codec only watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decoder_types import decode_report, decoded_beat
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.instances import add
from planezip.hdl.types import chunk_report, descriptor
from planezip.model.format import DEFAULT, Parameters
from tb.harness.expected import Records, compressor_records, decompressor_records, join_reports
from tb.harness.tensors import Tensor

__all__ = ["LanePair", "pair_records", "pair_report"]

_DEPTH = 16  # tensors and reports that one lane may be ahead of the other


def pair_report(parameters: Parameters) -> data.StructLayout:
    """The reports of both lanes about the same chunk."""
    return data.StructLayout(
        {"written": chunk_report(parameters), "read": decode_report(parameters)}
    )


class LanePair(wiring.Component):
    """Raw tensors in and out again; the wire between the lanes stalls at random.

    Each side of a queue of two wire beats pauses in three of eight cycles. The lanes are instances
    of Verilog modules of their own names.
    """

    def __init__(self, parameters: Parameters = DEFAULT) -> None:
        self._parameters = parameters
        super().__init__(
            {
                "descriptor": In(stream.Signature(descriptor())),
                "raw": In(stream.Signature(unsigned(parameters.block_bits // 4))),
                "decoded": Out(stream.Signature(decoded_beat(parameters))),
                "report": Out(stream.Signature(pair_report(parameters))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p = self._parameters
        compressor = add(m, CompressorLane(p), "compressor", "compressor")
        decompressor = add(m, DecompressorLane(p), "decompressor", "decompressor")
        wiring.connect(m, wiring.flipped(self.raw), compressor.raw)
        wiring.connect(m, decompressor.raw, wiring.flipped(self.decoded))

        # A descriptor goes to both lanes.
        second = self._queue(m, "second", self.descriptor.payload, decompressor.descriptor, _DEPTH)
        m.d.comb += [
            compressor.descriptor.payload.eq(self.descriptor.payload),
            compressor.descriptor.valid.eq(self.descriptor.valid & second.w_rdy),
            self.descriptor.ready.eq(compressor.descriptor.ready & second.w_rdy),
            second.w_en.eq(self.descriptor.valid & self.descriptor.ready),
        ]

        # The wire: a pause on either side, the second one only between two beats.
        noise = Signal(16, init=1)
        m.d.sync += noise.eq(Mux(noise[0], noise >> 1 ^ 0xB400, noise >> 1))
        link = SyncFIFOBuffered(width=len(Value.cast(compressor.wire.payload)), depth=2)
        m.submodules.link = link
        offered = Signal()
        m.d.sync += offered.eq(decompressor.wire.valid & ~decompressor.wire.ready)
        goes = link.w_rdy & (noise[1:4] > 2)
        m.d.comb += [
            link.w_data.eq(compressor.wire.payload),
            link.w_en.eq(compressor.wire.valid & goes),
            compressor.wire.ready.eq(goes),
            Value.cast(decompressor.wire.payload).eq(link.r_data),
            decompressor.wire.valid.eq(link.r_rdy & (offered | (noise[8:11] > 2))),
            link.r_en.eq(decompressor.wire.valid & decompressor.wire.ready),
        ]

        # Reports in pairs.
        written = SyncFIFOBuffered(width=len(Value.cast(compressor.report.payload)), depth=_DEPTH)
        m.submodules.written = written
        m.d.comb += [
            written.w_data.eq(compressor.report.payload),
            written.w_en.eq(compressor.report.valid),
            compressor.report.ready.eq(written.w_rdy),
            self.report.valid.eq(written.r_rdy & decompressor.report.valid),
            Value.cast(self.report.payload.written).eq(written.r_data),
            Value.cast(self.report.payload.read).eq(decompressor.report.payload),
            written.r_en.eq(self.report.valid & self.report.ready),
            decompressor.report.ready.eq(self.report.valid & self.report.ready),
        ]
        return m

    @staticmethod
    def _queue(m: Module, name: str, payload: Any, port: Any, depth: int) -> SyncFIFOBuffered:
        """A queue of payloads in front of an input port."""
        queue = SyncFIFOBuffered(width=len(Value.cast(payload)), depth=depth)
        m.submodules[name] = queue
        m.d.comb += [
            queue.w_data.eq(payload),
            Value.cast(port.payload).eq(queue.r_data),
            port.valid.eq(queue.r_rdy),
            queue.r_en.eq(port.ready),
        ]
        return queue


def pair_records(tensors: Sequence[Tensor]) -> Records:
    """Raw words in, the same tensors out, and both lanes' reports of each chunk."""
    written, read = compressor_records(tensors), decompressor_records(tensors)
    return Records(
        written.descriptors,
        written.input,
        read.output,
        join_reports(written.reports, read.reports, pair_report(DEFAULT)),
    )
