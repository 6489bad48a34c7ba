"""Order and progress of chunks over several lanes: dealing, merging, and both together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring

from formal.check import Check
from formal.prove import Property
from formal.sizes import BARE
from formal.streams import driven
from planezip.hdl.dealer import Dealer
from planezip.hdl.engine_types import chunk_order
from planezip.hdl.merger import Merger, Packer
from planezip.hdl.queue import Queue
from planezip.hdl.splitter import Splitter

__all__ = ["properties"]

_LANES = 2
_CHUNKS = 3  # of the two tensors together
_ROW_BYTES = 2  # of what a lane gives
_WAITS = 1  # cycles that a lane may lose over a chunk
_PAUSES = 1  # cycles in which the output is not ready, of all
_QUEUED = 2  # chunks between dealing and merging, so that their queue is full now and then
_CHUNK_BYTES = BARE.chunk_bits // 8
_COMPRESSED = 24  # cycles within which all chunks have come out
_DECOMPRESSED = 26
_WIRE_BYTES = 384  # of a stream, at most


class _Order(Elaboratable):
    """A dealer and a merger with the queue of the order between them, as in the engine.

    ``swapped``: the queue says the other lane. ``overfull``: what does not fit into it is lost.
    """

    def __init__(self, dealer: Any, merger: Any, swapped: bool, overfull: bool) -> None:
        self.dealer, self.merger = dealer, merger
        self._swapped, self._overfull = swapped, overfull

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.dealer, m.submodules.merger = self.dealer, self.merger
        m.submodules.merge = queue = Queue(chunk_order(_LANES), _QUEUED)
        wiring.connect(m, queue.output, self.merger.merge)
        given, taken = self.dealer.merge, queue.input
        m.d.comb += [
            taken.valid.eq(given.valid),
            taken.payload.eq(given.payload),
            taken.payload.lane.eq(given.payload.lane ^ self._swapped),
            given.ready.eq(taken.ready | self._overfull),
        ]
        return m


def _lane(check: Check, k: int, dut: _Order, number: Value) -> None:
    """Any lane: of each chunk it makes one row or two, with the chunk's number, in order.

    It takes rows and gives rows when it likes, the last one of a chunk when it has all of it,
    and holds back for no more than ``_WAITS`` cycles over a chunk. Bit 7 of a row says that it
    is the chunk's last one.
    """
    m = check.m
    task, rows, out = dut.dealer.descriptors[k], dut.dealer.rows[k], dut.merger.rows[k]
    m.submodules[f"tasks_{k}"] = tasks = Queue(number.shape(), 2)
    m.d.comb += [
        tasks.input.valid.eq(task.valid),
        tasks.input.payload.eq(number),
        task.ready.eq(tasks.input.ready),
    ]
    late_in, late_out = check.free(1, f"late_in_{k}"), check.free(1, f"late_out_{k}")
    short = check.constant(_CHUNKS, f"short_{k}")  # chunks of one row
    whole = Signal(2, name=f"whole_{k}")  # chunks of which all rows are here
    spent = Signal(range(_WAITS + 1), name=f"spent_{k}")
    second, held = Signal(name=f"second_{k}"), Signal(name=f"held_{k}")
    may_wait = spent != _WAITS
    final = check.wire(second | short.bit_select(tasks.output.payload, 1))
    takes_not = check.wire(rows.valid & late_in & may_wait)
    able = check.wire(tasks.output.valid & (~final | (whole != 0)))
    gives_not = check.wire(able & ~held & late_out & may_wait)
    moves = check.wire(out.valid & out.ready)
    done = check.wire(moves & final)
    m.d.comb += [
        rows.ready.eq(~takes_not & (whole < 2)),
        out.valid.eq(able & ~gives_not),
        out.payload.data.eq(Cat(tasks.output.payload, Const(0, 7 - len(number)), final)),
        out.payload.bytes.eq(_ROW_BYTES),
        out.payload.last.eq(final),
        tasks.output.ready.eq(done),
    ]
    m.d.sync += [
        held.eq(out.valid & ~out.ready),
        whole.eq(whole + (rows.valid & rows.ready & rows.payload.last) - done),
        spent.eq(Mux(done, 0, spent + (takes_not | gives_not))),
        second.eq(Mux(moves, ~final, second)),
    ]


def _tensors(check: Check, dealer: Any) -> tuple[Value, Value]:
    """Two tensors of any lengths, with and without headers: chunks of the first, of both."""
    m = check.m
    modes = [check.constant(1, f"mode_{k}") for k in range(2)]
    lengths = [check.constant(range(_CHUNKS * _CHUNK_BYTES + 1), f"bytes_{k}") for k in range(2)]
    wires = [check.constant(range(_WIRE_BYTES + 1), f"wire_bytes_{k}") for k in range(2)]
    counts = [check.wire((n + _CHUNK_BYTES - 1) // _CHUNK_BYTES) for n in lengths]
    total = check.wire(counts[0] + counts[1])
    check.require(total <= _CHUNKS)
    for wire_bytes in wires:
        check.require(wire_bytes <= _WIRE_BYTES)
    asked = Signal(2)
    port = dealer.descriptor
    m.d.comb += [
        port.valid.eq(asked < 2),
        Value.cast(port.payload.mode).eq(Array(modes)[asked[0]]),
        port.payload.raw_bytes.eq(Array(lengths)[asked[0]]),
        port.payload.wire_bytes.eq(Array(wires)[asked[0]]),
    ]
    m.d.sync += asked.eq(asked + (port.valid & port.ready))
    return counts[0], total


def in_order(
    dealer: Callable[..., Any],
    merger: Callable[..., Any],
    source: str,
    *,
    within: int = 0,
    swapped: bool = False,
    overfull: bool = False,
) -> Check:
    """What the lanes make of two tensors' chunks comes out in the order of dealing, and no more.

    All beats are one and the same word over and over, any: that is what the headers say.
    ``within``: only that all has come out by that cycle (bounded liveness).
    """
    dut = _Order(dealer(BARE, _LANES), merger(_ROW_BYTES, _LANES), swapped, overfull)
    check = Check(dut)
    first, total = _tensors(check, dut.dealer)
    beats = getattr(dut.dealer, source)
    word = check.constant(16, "word")
    check.m.d.comb += [
        beats.valid.eq(1),
        beats.payload.data.eq(word.replicate(len(beats.payload.data) // 16)),
    ]
    number, turn, ends = Signal(range(_CHUNKS + 1)), Signal(range(_CHUNKS + 1)), Signal(2)
    for k in range(_LANES):
        _lane(check, k, dut, number)
    dealt = Cat(port.valid & port.ready for port in dut.dealer.descriptors)
    out = dut.merger.output
    paused = Signal(range(_PAUSES + 1))
    pause = check.wire(out.valid & check.free(1, "pause") & (paused != _PAUSES))
    check.m.d.comb += [
        out.ready.eq(~pause),
        dut.dealer.tally.ready.eq(1),
        dut.dealer.ends.ready.eq(1),
    ]
    final = out.payload.data[7]
    check.m.d.sync += [
        paused.eq(paused + pause),
        number.eq(number + dealt.any()),
        turn.eq(turn + (out.valid & out.ready & final)),
        ends.eq(ends + (dut.dealer.ends.valid & dut.dealer.ends.ready)),
    ]
    if within:
        done = (turn == total) & (number == total) & (ends == 2)
        check.always((check.cycle(within) < within) | done)
        return check
    check.always(~dealt.all() & (~dealt.any() | (number < total)))
    check.equal(out.payload.data[: len(turn)], turn, out.valid)
    check.always(~out.valid | (turn < number))
    check.equal(out.payload.bytes, _ROW_BYTES, out.valid)
    border = (turn + 1 == first) | (turn + 1 == total)
    check.equal(out.payload.last, final & border, out.valid)
    return check


def merged(size: int, lanes: int) -> Check:
    """Merger: each row goes out next, from the lane whose turn it is, and none waits for another.

    A row that is there when its turn comes is taken as soon as the output is free: the order
    of dealing cannot block as long as each lane gives the chunks that it was dealt.
    """
    check, readies = driven(partial(Merger, size, lanes))
    dut: Any = check.dut
    turn, out = dut.merge, dut.output
    free = check.wire(~out.valid | readies["output"])
    moves = []
    taken = Signal(len(Value.cast(out.payload)))
    for k, port in enumerate(dut.rows):
        here = check.wire(turn.valid & (turn.payload.lane == k))
        check.always(port.ready == (free & here))
        row = port.payload
        moves.append(check.wire(port.valid & port.ready))
        after = Cat(row.data, row.bytes, row.last & turn.payload.last)
        with check.m.If(moves[-1]):
            check.m.d.sync += taken.eq(after)
    some = check.wire(Cat(moves).any())
    ends = Cat(move & port.payload.last for move, port in zip(moves, dut.rows, strict=True))
    check.always(turn.ready == ends.any())
    moved, kept = Signal(), Signal()
    check.m.d.sync += [moved.eq(some), kept.eq(out.valid & ~readies["output"])]
    check.always(out.valid == (moved | kept))
    check.equal(out.payload, taken, moved)
    return check


def properties() -> Iterator[Property]:
    """Both directions of an engine, and the merger alone."""
    for name, parts, within in (
        ("dealer and packer", (Dealer, Packer, "raw"), _COMPRESSED),
        ("splitter and merger", (Splitter, Merger, "wire"), _DECOMPRESSED),
    ):
        yield Property(
            f"{name}: chunks in the order of dealing",
            partial(in_order, *parts),
            "bmc",
            within,
            partial(in_order, *parts, swapped=True),
            "the queue of the order says the other lane",
        )
        yield Property(
            f"{name}: every chunk comes out, in a bounded number of cycles",
            partial(in_order, *parts, within=within),
            "bmc",
            within + 1,
            partial(in_order, *parts, within=within, overfull=True),
            "the queue of the order loses what does not fit",
        )
    yield Property(
        "merger: rows in the order of dealing, none waits for another",
        partial(merged, 4, 2),
        "induction",
        1,
        quick=True,
    )
