# amaranth: UnusedElaboratable=no
"""Engine: several lanes each way, fed and merged, with descriptors in and completions out."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.completer import Completer
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.dealer import Dealer
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.engine_types import (
    LENGTH_BITS,
    Activity,
    EngineGeometry,
    chunk_order,
    completion,
    engine_descriptor,
    tensor_end,
)
from planezip.hdl.instances import add
from planezip.hdl.merger import Merger, Packer
from planezip.hdl.queue import Queue
from planezip.hdl.rows import BeatsToRows, RowsToBeats
from planezip.hdl.splitter import Splitter
from planezip.hdl.types import beat, descriptor
from planezip.model.format import DEFAULT, Parameters

__all__ = ["CompressEngine", "DecompressEngine", "Engine"]

_DESCRIPTORS = 16
_COMPLETIONS = 8
_LANE_DESCRIPTORS = 8
_MODULES = {CompressorLane: "planezip_compressor", DecompressorLane: "planezip_decompressor"}


def _beats(size: int) -> stream.Signature:
    return stream.Signature(beat(size))


class _Direction(wiring.Component):
    """What both directions have: queues of descriptors, chunks, tensors and completions."""

    def __init__(self, geometry: EngineGeometry, instances: bool, **ports: Any) -> None:
        self._geometry = geometry
        self._instances = instances
        super().__init__(
            {
                "descriptor": In(stream.Signature(engine_descriptor())),
                "completion": Out(stream.Signature(completion(geometry.parameters))),
                "raw_activity": Out(Activity),
                "wire_activity": Out(Activity),
                **ports,
            }
        )

    def _queues(self, m: Module, dealer: Any, merger: Any, completer: Any) -> None:
        g = self._geometry
        now = Signal(LENGTH_BITS)
        m.d.sync += now.eq(now + 1)
        m.d.comb += [dealer.now.eq(now), completer.now.eq(now), completer.sent.eq(merger.sent)]
        order = chunk_order(g.lanes)
        for name, payload, depth, source, sink in (
            ("descriptors", engine_descriptor(), _DESCRIPTORS, None, dealer.descriptor),
            ("merge", order, g.chunks, dealer.merge, merger.merge),
            ("tally", order, g.chunks, dealer.tally, completer.tally),
            ("ends", tensor_end(), g.tensors, dealer.ends, completer.ends),
            ("completions", completion(g.parameters), _COMPLETIONS, completer.completion, None),
        ):
            m.submodules[name] = queue = Queue(payload, depth)
            before = wiring.flipped(self.descriptor) if source is None else source
            behind = wiring.flipped(self.completion) if sink is None else sink
            wiring.connect(m, before, queue.input)
            wiring.connect(m, queue.output, behind)

    def _lane(self, m: Module, lane: Any, k: int) -> Any:
        return add(m, lane, f"lane_{k}", _MODULES[type(lane)] if self._instances else "")

    def _lane_descriptors(self, m: Module, dealer: Any, lane: Any, k: int) -> None:
        m.submodules[f"descriptors_{k}"] = queue = Queue(descriptor(), _LANE_DESCRIPTORS)
        wiring.connect(m, dealer.descriptors[k], queue.input)
        wiring.connect(m, queue.output, lane.descriptor)


class CompressEngine(_Direction):
    """Compresses tensors, one after the other, with ``lanes`` lanes.

    Back to back a tensor of B bytes takes at most 4 * ceil(B / 128) / lanes cycles and one
    chunk's 128 / lanes, while ``wire`` and ``completion`` are ready; measured figures and the
    latency stand in docs/hardware.md.

    Parameters
    ----------
    parameters : Parameters
        Of a block of 1024 bits.
    lanes : int
        1, 2 or 4.
    instances : bool
        Lanes are instances of the Verilog module planezip_compressor, exported on its own.

    Attributes
    ----------
    descriptor : In(stream of :func:`planezip.hdl.engine_types.engine_descriptor`)
    raw : In(stream of :func:`planezip.hdl.types.beat`), 32 bytes per lane
        ``bytes`` and ``last`` are compared with the descriptor, but not needed.
    wire : Out(stream of :func:`planezip.hdl.types.beat`), 64 bytes per lane
    completion : Out(stream of :func:`planezip.hdl.engine_types.completion`)
        In the order of the descriptors.
    raw_activity, wire_activity : Out(:class:`planezip.hdl.engine_types.Activity`)
    """

    def __init__(
        self, parameters: Parameters = DEFAULT, lanes: int = 2, instances: bool = False
    ) -> None:
        g = EngineGeometry(parameters, lanes)
        super().__init__(g, instances, raw=In(_beats(g.raw)), wire=Out(_beats(g.wire)))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        p = g.parameters
        m.submodules.dealer = dealer = Dealer(p, g.lanes)
        m.submodules.packer = packer = Packer(g.wire, g.lanes)
        m.submodules.completer = completer = Completer(p, g.lanes, decompress=False)
        self._queues(m, dealer, packer, completer)
        wiring.connect(m, wiring.flipped(self.raw), dealer.raw)
        wiring.connect(m, packer.output, wiring.flipped(self.wire))
        m.d.comb += [
            self.raw_activity.eq(dealer.activity),
            self.wire_activity.eq(packer.activity),
        ]
        for k in range(g.lanes):
            lane = self._lane(m, CompressorLane(p), k)
            m.submodules[f"intake_{k}"] = intake = RowsToBeats(g.lane_raw, g.lanes, g.raw_rows)
            m.submodules[f"outlet_{k}"] = outlet = BeatsToRows(g.lane_wire, g.lanes, g.wire_rows)
            self._lane_descriptors(m, dealer, lane, k)
            wiring.connect(m, dealer.rows[k], intake.rows)
            m.d.comb += [
                lane.raw.payload.eq(intake.beats.payload.data),
                lane.raw.valid.eq(intake.beats.valid),
                intake.beats.ready.eq(lane.raw.ready),
            ]
            wiring.connect(m, lane.wire, outlet.beats)
            wiring.connect(m, outlet.rows, packer.rows[k])
            wiring.connect(m, lane.report, completer.reports[k])
        return m


class DecompressEngine(_Direction):
    """Decompresses tensors, one after the other, with ``lanes`` lanes.

    The rate is that of :class:`CompressEngine`, while the stream is there in time (a beat a
    cycle is) and ``raw`` and ``completion`` are ready. A stream with a fault gives an error in its
    completion, zeros from the fault to the end of its chunk (to the end of the tensor where
    the next chunk cannot be found), and takes exactly ``wire_bytes`` bytes, so that the next
    tensor is not touched.

    Parameters
    ----------
    parameters, lanes, instances
        As in :class:`CompressEngine`.

    Attributes
    ----------
    descriptor, completion, raw_activity, wire_activity
        As in :class:`CompressEngine`.
    wire : In(stream of :func:`planezip.hdl.types.beat`), 64 bytes per lane
        ``bytes`` and ``last`` are compared with the descriptor, but not needed.
    raw : Out(stream of :func:`planezip.hdl.types.beat`), 32 bytes per lane
    """

    def __init__(
        self, parameters: Parameters = DEFAULT, lanes: int = 2, instances: bool = False
    ) -> None:
        g = EngineGeometry(parameters, lanes)
        super().__init__(g, instances, wire=In(_beats(g.wire)), raw=Out(_beats(g.raw)))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        p = g.parameters
        m.submodules.splitter = splitter = Splitter(p, g.lanes)
        m.submodules.merger = merger = Merger(g.raw, g.lanes)
        m.submodules.completer = completer = Completer(p, g.lanes, decompress=True)
        self._queues(m, splitter, merger, completer)
        wiring.connect(m, wiring.flipped(self.wire), splitter.wire)
        wiring.connect(m, merger.output, wiring.flipped(self.raw))
        m.d.comb += [
            self.wire_activity.eq(splitter.activity),
            self.raw_activity.eq(merger.activity),
        ]
        for k in range(g.lanes):
            lane = self._lane(m, DecompressorLane(p), k)
            m.submodules[f"intake_{k}"] = intake = RowsToBeats(g.lane_wire, g.lanes, g.intake_rows)
            m.submodules[f"outlet_{k}"] = outlet = BeatsToRows(g.lane_raw, g.lanes, g.raw_rows)
            self._lane_descriptors(m, splitter, lane, k)
            wiring.connect(m, splitter.rows[k], intake.rows)
            wiring.connect(m, intake.beats, lane.wire)
            decoded = lane.raw
            m.d.comb += [
                outlet.beats.payload.data.eq(decoded.payload.data),
                outlet.beats.payload.bytes.eq(decoded.payload.bytes),
                outlet.beats.payload.last.eq(decoded.payload.last),
                outlet.beats.valid.eq(decoded.valid),
                decoded.ready.eq(outlet.beats.ready),
            ]
            wiring.connect(m, outlet.rows, merger.rows[k])
            wiring.connect(m, lane.report, completer.reports[k])
        return m


class Engine(wiring.Component):
    """Both directions side by side, at full rate at the same time; they share nothing.

    Parameters
    ----------
    parameters, lanes, instances
        As in :class:`CompressEngine`; ``lanes`` each way.

    Attributes
    ----------
    compress : the ports of :class:`CompressEngine`
    decompress : the ports of :class:`DecompressEngine`
    """

    def __init__(
        self, parameters: Parameters = DEFAULT, lanes: int = 2, instances: bool = False
    ) -> None:
        self._parts = (
            CompressEngine(parameters, lanes, instances),
            DecompressEngine(parameters, lanes, instances),
        )
        super().__init__(
            {
                name: Out(part.signature)
                for name, part in zip(("compress", "decompress"), self._parts, strict=True)
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for name, part in zip(("compress", "decompress"), self._parts, strict=True):
            m.submodules[name] = part
            wiring.connect(m, part, wiring.flipped(getattr(self, name)))
        return m
