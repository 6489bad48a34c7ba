"""Whole lanes and what bounds their output: the stream of a tensor, progress, beats."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value

from formal.check import Check
from formal.codec_properties import Selection
from formal.naive import Text, Texts
from formal.prove import Property
from formal.sizes import TINY
from formal.streams import driven
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.intake import Intake
from planezip.hdl.types import Mode
from planezip.model.format import DEFAULT, HEADER_BYTES, Parameters, Tag

__all__ = ["properties"]

_BEATS = 2  # of a block of TINY
_DECODED = 52  # within which one has left the decompressor
_CYCLES = 34  # within which a chunk of two blocks has left the compressor

# The blocks left are counted in HEADER, BODY and LOST (1 to 3); IDLE and DRAIN have none.
_IN_TENSOR = "(and (bvuge {dut.state} #b001) (bvule {dut.state} #b011))"
_INTAKE = (
    "(bvule {dut.state} #b100)",
    f"(=> {_IN_TENSOR} (= {{left}} (bvadd (concat #b0 {{dut.behind}} {{dut.final}}) (_ bv1 34))))",
    f"(=> (not {_IN_TENSOR}) (= {{left}} (_ bv0 34)))",
)


def _tensor(check: Check, p: Parameters) -> tuple[Value, Value, list[Any]]:
    """A tensor of up to one chunk, any bytes: length, padded bits, its blocks' encodings."""
    size = check.constant(range(p.chunk_bits // 8 + 1), "raw_bytes")
    check.require(size <= p.chunk_bits // 8)
    bits = check.constant(p.chunk_bits, "tensor")
    padded = Cat(bits[8 * k : 8 * k + 8] & (size > k).replicate(8) for k in range(len(bits) // 8))
    padded = check.wire(padded)
    blocks = []
    for k in range(p.blocks_per_chunk):
        check.m.submodules[f"selection_{k}"] = selection = Selection(p)
        check.m.d.comb += selection.block.eq(padded[k * p.block_bits : (k + 1) * p.block_bits])
        blocks.append(selection)
    return size, padded, blocks


def _chunk(check: Check, p: Parameters, size: Value, padded: Value, blocks: list[Any]) -> Any:
    """The chunk of two blocks or one, from the format: string, body bytes, raw, count of blocks."""
    t = Texts(check.m)
    two = check.wire(size > p.block_bits // 8)
    most = p.block_bits + 3
    front, back = (
        [Text(b.control, b.control_bits, most), Text(b.payload, b.payload_bits, most)]
        for b in blocks
    )
    first = t.join(front)
    second = t.when(two, t.join([back[1], t.reversed(back[0])]))
    bits = check.wire(first.length + second.length)
    coded_bytes = check.wire((bits + 7)[3:])
    raw_bytes = Mux(two, p.chunk_bits // 8, p.block_bits // 8)
    raw = check.wire(coded_bytes >= raw_bytes)
    body_bytes = check.wire(Mux(raw, raw_bytes, coded_bytes))
    gap = (8 * coded_bytes - second.length)[: (2 * most).bit_length()]
    coded = first.value | (second.value << gap)
    body = Mux(raw, padded, coded)[: p.chunk_bits]
    return check.wire(Cat(Const(0, 0), body_bytes | Const(0, 16), body)), body_bytes, raw, two


def compressed(p: Parameters, mode: Mode = Mode.STREAM) -> Check:
    """Wire beats and report of a tensor of up to two blocks, whatever its bytes and the pauses.

    With the wire always ready everything has left after ``_CYCLES``.
    """
    dut = CompressorLane(p, _BEATS)
    check = Check(dut)
    size, padded, blocks = _tensor(check, p)
    string, body_bytes, raw, two = _chunk(check, p, size, padded, blocks)
    total = check.wire(Mux(size == 0, 0, body_bytes + HEADER_BYTES))
    _feed(check, dut, size, mode, padded)
    paused = check.constant(1, "paused")
    pause = check.free(1, "pause")
    check.m.d.comb += [
        dut.wire.ready.eq(~(paused & pause)),
        dut.report.ready.eq(~(paused & pause)),
    ]
    beat = dut.wire.payload
    width = len(beat.data)
    step = width // 8
    count = Signal(range(-(-(p.chunk_bits // 8 + HEADER_BYTES) // step) + 2))
    moves = dut.wire.valid & dut.wire.ready
    check.m.d.sync += count.eq(count + moves)
    left = check.wire((total - count * step)[: len(total) + 1])
    parts = Array(string[k : k + width] for k in range(0, len(string), width))
    final = left <= step
    beats = check.wire((total + step - 1)[step.bit_length() - 1 :])
    check.always(~dut.wire.valid | (count < beats))
    mask = Cat((left > k).replicate(8) for k in range(step))
    there = dut.wire.valid & (count < beats)
    check.equal(beat.data, parts[count] & Mux(final, mask, -1), there)
    check.equal(beat.bytes, Mux(final, left, step), there)
    check.equal(beat.last, final, there)
    report, reports = dut.report.payload, Signal(2)
    check.m.d.sync += reports.eq(reports + (dut.report.valid & dut.report.ready))
    check.always(~dut.report.valid | ((reports == 0) & (size != 0)))
    check.equal(report.body_bytes, body_bytes, dut.report.valid)
    check.always(~dut.report.valid | (report.body_bytes <= p.chunk_bits // 8))
    check.equal(report.raw, raw, dut.report.valid)
    check.equal(report.last, 1, dut.report.valid)
    for tag in Tag:
        chosen = (blocks[0].tag == tag) + Value.cast(two & (blocks[1].tag == tag))
        stored = (1 + two) if tag == Tag.RAW else Const(0)
        check.equal(report.blocks[tag], Mux(raw, stored, chosen), dut.report.valid)
    done = (count == beats) & (reports == (size != 0))
    check.always(paused | (check.cycle(_CYCLES) < _CYCLES) | done)
    return check


def _feed(check: Check, dut: Any, size: Value, mode: Mode, padded: Value) -> None:
    """One descriptor and its bytes, as soon as they are taken."""
    asked, at = Signal(), Signal(range(len(padded) // len(dut.raw.payload) + 1))
    step = len(dut.raw.payload)
    m = check.m
    m.d.comb += [
        dut.descriptor.valid.eq(~asked),
        dut.descriptor.payload.raw_bytes.eq(size),
        dut.descriptor.payload.mode.eq(mode),
        dut.raw.valid.eq(at * (step // 8) < size),
        dut.raw.payload.eq(Array(padded[k : k + step] for k in range(0, len(padded), step))[at]),
    ]
    m.d.sync += [
        asked.eq(asked | dut.descriptor.ready),
        at.eq(at + (dut.raw.valid & dut.raw.ready)),
    ]


def decompressed(p: Parameters) -> Check:
    """What the format says of a tensor of up to two blocks gives its bytes, without a fault."""
    dut = DecompressorLane(p, _BEATS)
    check = Check(dut)
    size, padded, blocks = _tensor(check, p)
    string, body_bytes, raw, _ = _chunk(check, p, size, padded, blocks)
    total = check.wire(Mux(size == 0, 0, body_bytes + HEADER_BYTES))
    width = len(dut.wire.payload.data)
    step = width // 8
    at = Signal(range(len(string) // width + 2))
    left = check.wire((total - at * step)[: len(total) + 1])
    more = check.wire(at * step < total)
    beat = dut.wire.payload
    check.m.d.comb += [
        dut.wire.valid.eq(more),
        beat.data.eq(Array(string[k : k + width] for k in range(0, len(string), width))[at]),
        beat.bytes.eq(Mux(left <= step, left, step)),
        beat.last.eq(left <= step),
    ]
    check.m.d.sync += at.eq(at + (dut.wire.valid & dut.wire.ready))
    count, reports = _ask_and_count(check, dut, size, Const(0))
    out = dut.raw.payload
    parts = Array(_parts(padded, len(out.data)))
    here = dut.raw.valid & (count < size)
    check.equal(out.data, parts[check.wire(count[(len(out.data) // 8).bit_length() - 1 :])], here)
    check.always(~dut.raw.valid | ~out.bad)
    report = dut.report.payload
    check.equal(report.body_bytes, body_bytes, dut.report.valid)
    check.equal(report.error, 0, dut.report.valid)
    check.equal(report.raw, raw, dut.report.valid)
    done = (count == size) & (reports == (size != 0))
    check.always((check.cycle(_DECODED) < _DECODED) | done)
    return check


def bounded_beats(p: Parameters, more: int = 0) -> Check:
    """Any wire beats: bytes out never exceed the descriptor's, ``last`` comes with the last one.

    If beats keep coming and the output is ready, all bytes come within ``_DECODED`` cycles.
    ``more``: the lane is told so many bytes more.
    """
    dut = DecompressorLane(p, _BEATS)
    check = Check(dut)
    size = check.constant(range(p.chunk_bits // 8 + 1), "raw_bytes")
    check.require(size <= p.chunk_bits // 8)
    valid = check.free(1, "wire_valid")
    payload = check.feed(dut.wire.payload, "wire_payload")
    step = len(payload.data) // 8
    waits, before = Signal(), Signal(len(Value.cast(payload)))
    paused = check.constant(1, "paused")
    pause = check.free(1, "pause")
    check.m.d.comb += dut.wire.valid.eq(valid | ~paused)
    check.m.d.sync += [
        waits.eq(dut.wire.valid & ~dut.wire.ready),
        before.eq(Value.cast(payload)),
    ]
    check.require(~waits | (dut.wire.valid & (Value.cast(payload) == before)))
    check.require(payload.bytes <= step)
    check.require((payload.bytes == step) | payload.last)
    count, reports = _ask_and_count(check, dut, size, paused & pause, more)
    check.always(~dut.report.valid | (dut.report.payload.body_bytes <= p.chunk_bits // 8))
    done = (count == size) & (reports == (size != 0))
    check.always(paused | (check.cycle(_DECODED) < _DECODED) | done)
    return check


def _ask_and_count(
    check: Check, dut: Any, size: Value, pause: Value, more: int = 0
) -> tuple[Value, Value]:
    """One descriptor; bytes and reports that came out, and the rules for their number."""
    asked, count, reports = Signal(), Signal(range(2 * (1 << len(size)))), Signal(2)
    out = dut.raw.payload
    check.m.d.comb += [
        dut.descriptor.valid.eq(~asked),
        dut.descriptor.payload.raw_bytes.eq(size + more),
        dut.descriptor.payload.mode.eq(Mode.STREAM),
        dut.raw.ready.eq(~pause),
        dut.report.ready.eq(~pause),
    ]
    check.m.d.sync += [
        asked.eq(asked | dut.descriptor.ready),
        count.eq(count + Mux(dut.raw.valid & dut.raw.ready, out.bytes, 0)),
        reports.eq(reports + (dut.report.valid & dut.report.ready)),
    ]
    after = check.wire(count + out.bytes)
    check.always(~dut.raw.valid | (out.bytes != 0))
    check.always(~dut.raw.valid | (after <= size))
    check.always(~dut.raw.valid | (out.last == (after == size)))
    check.always(~dut.report.valid | ((reports == 0) & (size != 0)))
    check.equal(dut.report.payload.last, 1, dut.report.valid)
    return count, reports


def _parts(value: Value, size: int) -> list[Value]:
    return [value[k : k + size] for k in range(0, len(value), size)]


def bounded_chunks(p: Parameters) -> Check:
    """Intake: chunks never have more blocks than the descriptor, whatever bytes come in."""
    check, readies = driven(partial(Intake, p))
    dut: Any = check.dut
    entry, new = dut.chunks.payload, dut.descriptor.payload
    block = p.block_bits // 8
    left = Signal(len(new.raw_bytes) - (block.bit_length() - 1) + 1, name="left")
    taken = dut.descriptor.valid & dut.descriptor.ready
    pushed = dut.chunks.valid & readies["chunks"]
    here = check.wire(entry.last_block + 1)
    with check.m.If(taken):
        shift = block.bit_length() - 1
        blocks = (new.raw_bytes >> shift) + new.raw_bytes[:shift].any()
        check.m.d.sync += left.eq(blocks)
    with check.m.Elif(pushed):
        check.m.d.sync += left.eq(left - here)
    check.always(~dut.chunks.valid | (here <= left))
    check.always(~dut.chunks.valid | (entry.last == (here == left)))
    check.always(~dut.chunks.valid | (here == p.blocks_per_chunk) | (here == left))
    check.always(~taken | (left == 0) | (pushed & (here == left)))
    return check


def properties() -> Iterator[Property]:
    """Compressor and decompressor."""
    yield Property(
        "compressor 4x4: stream, report and progress of a tensor",
        partial(compressed, TINY),
        depth=_CYCLES + 1,
    )
    yield Property(
        "decompressor 4x4: bytes and progress of a tensor",
        partial(decompressed, TINY),
        depth=_DECODED + 1,
    )
    yield Property(
        "decompressor 4x4: no more bytes than the descriptor has, for any beats",
        partial(bounded_beats, TINY),
        "bmc",
        _DECODED + 1,
        partial(bounded_beats, TINY, 1),
        "the lane is told a byte more than the descriptor has",
    )
    yield Property(
        "intake: no more blocks than the descriptor has, for any bytes",
        partial(bounded_chunks, DEFAULT),
        "induction",
        1,
        within=5,
        lemmas=_INTAKE,
        quick=True,
    )
