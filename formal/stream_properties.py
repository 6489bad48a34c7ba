"""Every stream port of every component: stable until taken, and offered without being asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Signal

from formal.check import Check
from formal.prove import Property
from formal.sizes import BARE, SMALL, TINY
from formal.stand_ins import AnyEngine, any_lanes
from formal.streams import Setup, offered, outputs, separate, stable
from planezip.hdl.align import Aligner, Narrow
from planezip.hdl.axi_registers import AxiRegisters
from planezip.hdl.chunk_buffer import ChunkBuffer
from planezip.hdl.completer import Completer
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.dealer import Dealer
from planezip.hdl.decoder_types import DecoderGeometry
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.delta import Delta
from planezip.hdl.emitter import Emitter
from planezip.hdl.engine import CompressEngine, DecompressEngine, Engine
from planezip.hdl.engine_types import engine_descriptor
from planezip.hdl.framer import Framer
from planezip.hdl.intake import Intake
from planezip.hdl.merger import Merger, Packer
from planezip.hdl.payload_path import PayloadPath
from planezip.hdl.queue import Queue
from planezip.hdl.register_bank import RegisterBank
from planezip.hdl.rows import BeatsToRows, RowsToBeats
from planezip.hdl.serializer import Serializer
from planezip.hdl.splitter import Splitter
from planezip.model.format import DEFAULT

__all__ = ["COMPONENTS", "EXCEPTIONS", "WHOLE", "Component", "properties"]


def _fifo(path: str, depth: int) -> tuple[str, ...]:
    """Invariant of Amaranth's SyncFIFO: what is between its two addresses is its level."""
    place = max(depth - 1, 1).bit_length()
    level = depth.bit_length()
    width = max(place, level) + 1

    def grown(name: str, bits: int) -> str:
        return f"((_ zero_extend {width - bits}) {{{path}.{name}}})"

    def number(value: int) -> str:
        return f"(_ bv{value} {width})"

    produce, consume = grown("w_port__addr", place), grown("r_port__addr", place)
    return (
        f"(bvult {produce} {number(depth)})",
        f"(bvult {consume} {number(depth)})",
        f"(bvule {grown('level', level)} {number(depth)})",
        f"(= {produce} (bvurem (bvadd {consume} {grown('level', level)}) {number(depth)}))",
    )


def _string_waits(check: Check) -> None:
    """PayloadPath: its control string stands still while it does."""
    dut: Any = check.dut
    string, halted = Signal.like(dut.string), Signal()
    check.m.d.sync += [string.eq(dut.string), halted.eq(~dut.enable)]
    check.require(~halted | (dut.string == string))


def _rows_are_freed(check: Check) -> None:
    """Intake: rows of the ring are freed, never taken, from outside."""
    dut: Any = check.dut
    used, row = Signal.like(dut.row), Signal.like(dut.row)
    now = (dut.row - dut.oldest)[: len(row)]
    check.m.d.sync += [used.eq(now), row.eq(dut.row)]
    check.require((dut.row != row) | (now <= used))


@dataclass(frozen=True)
class Component:
    """A component with what its induction needs."""

    name: str
    make: Callable[[], Any]
    setup: Setup | None = None
    lemmas: tuple[tuple[str, tuple[str, ...]], ...] = ()
    reach: int = 12  # cycles within which every output offers something
    quick: bool = False


_REPORTS = (("report", _fifo("dut.reports", 3)),)
# A tensor whose chunks are read (states HEADER to ROWS, 1 to 3) has bytes.
_RAW_BYTES = engine_descriptor()["raw_bytes"]
_SPLITTER = (
    "(=> (and (bvuge {dut.state} #b001) (bvule {dut.state} #b011)) (distinct "
    f"((_ extract {_RAW_BYTES.offset + _RAW_BYTES.width - 1} {_RAW_BYTES.offset}) {{dut.info}})"
    f" (_ bv0 {_RAW_BYTES.width})))",
)
_ROW_BITS = DecoderGeometry(DEFAULT, 4).row_bits
_ROW_AFTER = f"(= {{dut.row_after}} (bvadd {{dut.row}} (_ bv1 {_ROW_BITS})))"

COMPONENTS = (
    Component("delta", Delta, quick=True),
    Component("framer", Framer, quick=True),
    Component("aligner", Aligner),
    Component("narrow", partial(Narrow, 8, 2), quick=True),
    Component("payload_path 8x8", partial(PayloadPath, SMALL), _string_waits),
    Component("payload_path", PayloadPath, _string_waits),
    Component("chunk_buffer 4x4", partial(ChunkBuffer, TINY, 2), None, _REPORTS, quick=True),
    Component("chunk_buffer 8x8", partial(ChunkBuffer, SMALL), None, _REPORTS),
    Component("serializer 8x8", partial(Serializer, SMALL)),
    Component("serializer", Serializer),
    Component("intake", Intake, _rows_are_freed, (("chunks", (_ROW_AFTER,)),), quick=True),
    Component("emitter", Emitter),
    Component(
        "compressor 4x4",
        partial(CompressorLane, TINY, 2),
        None,
        (("report", _fifo("dut.buffer.reports", 3)),),
        reach=24,
    ),
    Component("decompressor 4x4", partial(DecompressorLane, TINY, 2), reach=52),
    Component("queue", partial(Queue, 8, 4), quick=True),
    Component("rows_to_beats", partial(RowsToBeats, 2, 2, 4), quick=True),
    Component("beats_to_rows", partial(BeatsToRows, 2, 2, 4), quick=True),
    Component("merger", partial(Merger, 4, 2), quick=True),
    Component("packer", partial(Packer, 4, 2), quick=True),
    Component("dealer", partial(Dealer, DEFAULT, 2)),
    Component(
        "splitter",
        partial(Splitter, DEFAULT, 2),
        None,
        (("tally", _SPLITTER),),
    ),
    Component("completer, compressing", partial(Completer, BARE, 2, False)),
    Component("completer, decompressing", partial(Completer, BARE, 2, True)),
    Component("register_bank", partial(RegisterBank, DEFAULT), quick=True),
    Component("compressing engine, any lanes", partial(any_lanes, CompressEngine, BARE, 2)),
    Component("decompressing engine, any lanes", partial(any_lanes, DecompressEngine, BARE, 2)),
    Component("axi_registers", partial(AxiRegisters, DEFAULT, 2)),
    Component("axi_engine, any engine", partial(AnyEngine, DEFAULT, 2)),
)
WHOLE: Mapping[str, Callable[[], Any]] = {
    "delta": Delta,
    "framer": Framer,
    "aligner": Aligner,
    "narrow": partial(Narrow, 64, 16),
    "payload_path": PayloadPath,
    "chunk_buffer": ChunkBuffer,
    "serializer": Serializer,
    "compressor": CompressorLane,
    "intake": Intake,
    "emitter": Emitter,
    "decompressor": DecompressorLane,
    "rows_to_beats": partial(RowsToBeats, 32, 2, 68),
    "beats_to_rows": partial(BeatsToRows, 64, 2, 36),
    "dealer": partial(Dealer, DEFAULT, 2),
    "splitter": partial(Splitter, DEFAULT, 2),
    "merger": partial(Merger, 64, 2),
    "packer": partial(Packer, 128, 2),
    "completer, compressing": partial(Completer, DEFAULT, 2, False),
    "completer, decompressing": partial(Completer, DEFAULT, 2, True),
    "register_bank": partial(RegisterBank, DEFAULT),
    "queue": partial(Queue, 128, 16),
    "axi_registers": partial(AxiRegisters, DEFAULT, 2),
    "axi_engine, any engine": partial(AnyEngine, DEFAULT, 2),
    "compressing engine": partial(CompressEngine, BARE, 2),
    "decompressing engine": partial(DecompressEngine, BARE, 2),
}
"""Components for the search in the netlist: at full size where no other is named."""
EXCEPTIONS: Mapping[type, str] = {
    Engine: "both engines side by side; its ports are theirs",
}
"""Components with an output stream that are not in the list, and why."""


def properties() -> Iterator[Property]:
    """Two properties per port."""
    for component in COMPONENTS:
        lemmas = dict(component.lemmas)
        made = component.make()
        made._MustUse__used = True  # only its ports are looked at: no warning of Amaranth
        for port, _ in outputs(made):
            arguments = (component.make, port, component.setup)
            yield Property(
                f"{component.name}: {port} holds until ready",
                partial(stable, *arguments),
                "induction",
                1,
                partial(stable, *arguments, broken=True),
                "the component sees ready = 1",
                within=component.reach + 2,
                lemmas=lemmas.get(port, ()),
                quick=component.quick,
            )
            yield Property(
                f"{component.name}: {port} is offered before ready",
                partial(offered, *arguments),
                "cover",
                component.reach,
                partial(offered, *arguments, broken=True),
                "valid is gated with ready",
                quick=component.quick,
            )
    for name, make in WHOLE.items():
        yield Property(
            f"{name}: no combinational path from ready to valid",
            partial(separate, make),
            "netlist",
            0,
            partial(separate, make, broken=True),
            "valid is gated with ready",
            quick=name in ("delta", "framer", "narrow", "intake"),
        )
