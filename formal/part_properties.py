"""Parts that blocks and beats of symbols go through, against naive models, mostly at full size."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from formal.check import Check
from formal.prove import Property
from formal.sizes import PAIRED, SMALL, TINY
from planezip.hdl.compaction import keep_flags
from planezip.hdl.comparator import Comparator
from planezip.hdl.delta import Delta, beat_bits, width_shape, xor_adjacent
from planezip.hdl.gather import destinations, gather
from planezip.hdl.geometry import Geometry
from planezip.hdl.transpose import Transpose
from planezip.hdl.wires import parts_of
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag

__all__ = ["Beat", "Gather", "properties"]


class Gather(wiring.Component):
    """The compaction network of ``lanes`` lanes."""

    def __init__(self, lanes: int, bits: int) -> None:
        self._lanes, self._bits = lanes, bits
        super().__init__(
            {
                "data": In(lanes * bits),
                "keep": In(lanes),
                "offset": In(lanes.bit_length() - 1),
                "out": Out(lanes * bits),
                "arrived": Out(lanes),
                "count": Out(range(lanes + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        places, count = destinations(m, self.keep, self.offset)
        lanes = parts_of(self.data, self._bits)
        out, arrived = gather(m, lanes, self.keep, places)
        m.d.comb += [self.out.eq(Cat(out)), self.arrived.eq(arrived), self.count.eq(count)]
        return m


class Beat(wiring.Component):
    """What is done to a beat of symbols without a register: zeros found, planes XORed."""

    def __init__(self, parameters: Parameters = DEFAULT, beats: int = 4) -> None:
        self._p = parameters
        bits = beat_bits(parameters, beats)
        parts = bits // parameters.symbol_bits[0]
        super().__init__(
            {
                "data": In(bits),
                "tops": In(parts),
                "width": In(width_shape(parameters)),
                "keep": Out(parts),
                "xored": Out(bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += [
            self.keep.eq(keep_flags(self.data, self.width, self._p)),
            self.xored.eq(xor_adjacent(self.data, self.tops, self.width, self._p)),
        ]
        return m


def comparator() -> Check:
    """The winner's size is the least, and no lower tag has it."""
    dut = Comparator()
    check = Check(dut)
    sizes = {Tag.RAW: Const(TAG_BITS + DEFAULT.block_bits)}
    for tag in sorted(DEFAULT.encodings - {Tag.RAW}):
        sizes[tag] = check.feed(dut.sizes[tag.name], tag.name)
    for tag, size in sizes.items():
        check.always(dut.bits <= size)
        check.always((dut.tag != tag) | (dut.bits == size))
        check.always((dut.tag <= tag) | (dut.bits < size))
    check.always(dut.tag <= max(Tag))
    return check


def gathers(lanes: int, bits: int) -> Check:
    """Kept lanes stand side by side from the offset on, in order."""
    dut = Gather(lanes, bits)
    check = Check(dut)
    data, keep = check.feed(dut.data, "data"), check.feed(dut.keep, "keep")
    place = check.feed(dut.offset, "offset")
    out, total = Array(parts_of(dut.out, bits)), Value.cast(Const(0))
    for k, lane in enumerate(parts_of(data, bits)):
        check.always(~keep[k] | dut.arrived.bit_select(place, 1))
        check.equal(out[place], lane, keep[k])
        place = check.wire((place + keep[k])[: len(dut.offset)])
        total = check.wire(total + keep[k])
    check.always(dut.count == total)
    arrived = sum((dut.arrived[k] for k in range(1, lanes)), Value.cast(dut.arrived[0]))
    check.always(arrived == total)
    return check


def beats(p: Parameters) -> Check:
    """Zeros and XOR symbol by symbol."""
    dut = Beat(p)
    check = Check(dut)
    data, tops = check.feed(dut.data, "data"), check.feed(dut.tops, "tops")
    width = check.feed(dut.width, "width")
    check.require(width < len(p.symbol_bits))
    narrow = p.symbol_bits[0]
    for index, w in enumerate(p.symbol_bits):
        here, group = width == index, w // narrow
        # A top bit belongs to a symbol's uppermost part; the others have none.
        rest = Cat(tops[k] & (k % group != group - 1) for k in range(len(tops)))
        check.require(~here | ~rest.any())
        symbols = parts_of(data, w)
        keep = Cat(s.any().replicate(group) for s in symbols)
        check.equal(dut.keep, keep, here)
        ends = [tops[k * group + group - 1] for k in range(len(symbols))]
        naive = [s ^ Cat(s[1:], top) for s, top in zip(symbols, ends, strict=True)]
        check.equal(dut.xored, Cat(naive), here)
    return check


def deltas(p: Parameters, beats_per_block: int) -> Check:
    """Symbol minus the one before, over the beats of two blocks."""
    dut = Delta(p, beats_per_block)
    check = Check(dut)
    width = check.constant(width_shape(p), "width")
    check.require(width < len(p.symbol_bits))
    data = check.free(len(dut.beats.payload.data), "data")
    place = Signal(range(beats_per_block))
    beat, out = dut.beats.payload, dut.deltas.payload
    check.m.d.comb += [
        dut.beats.valid.eq(1),
        dut.deltas.ready.eq(1),
        beat.data.eq(data),
        beat.width.eq(width),
        beat.first.eq(place == 0),
        beat.last.eq(place == beats_per_block - 1),
    ]
    before, older, was_first, begun = (
        Signal.like(data), Signal.like(data), Signal(), Signal(),
    )  # fmt: skip
    check.m.d.sync += [
        place.eq(place + 1), before.eq(data), older.eq(before), was_first.eq(beat.first),
        begun.eq(1),
    ]  # fmt: skip
    check.always(dut.deltas.valid == begun)
    for index, w in enumerate(p.symbol_bits):
        here = begun & (width == index)
        group = w // p.symbol_bits[0]
        symbols = [older[-w:], *parts_of(before, w)]
        for k in range(1, len(symbols)):
            difference = check.wire((symbols[k] - symbols[k - 1])[: w + 1])
            if k == 1:
                difference = Mux(was_first, 0, difference)
            top = out.tops[(k - 1) * group : k * group]
            check.equal(Cat(out.data[(k - 1) * w : k * w], top[-1]), difference, here)
            check.equal(top[:-1], 0, here)
    return check


def transposes(p: Parameters, beats_per_block: int) -> Check:
    """Three blocks, each read while the next is written; lanes not written read as zero."""
    dut = Transpose(p, beats_per_block)
    check = Check(dut)
    g = Geometry(p, beats_per_block)
    count, line_bits = beats_per_block, beats_per_block.bit_length() - 1
    blocks = [check.constant(p.block_bits, f"block_{k}") for k in range(3)]
    written = [check.constant(count * g.lanes, f"written_{k}") for k in range(3)]
    widths = [check.constant(width_shape(p), f"width_{k}") for k in range(3)]
    planes = [check.constant(1, f"planes_{k}") for k in range(3)]
    for width in widths:
        check.require(width < len(p.symbol_bits))
    cycle = check.cycle(4 * count)
    block, slot = Signal(range(5)), Signal(line_bits)
    check.m.d.comb += [block.eq(cycle >> line_bits), slot.eq(cycle)]
    rows = Array(part for b in blocks for part in parts_of(b, g.beat_bits))
    marks = Array(part for mark in written for part in parts_of(mark, g.lanes))
    check.m.d.comb += [
        dut.write.eq(cycle < 3 * count),
        dut.write_slot.eq(slot),
        dut.row.eq(rows[cycle]),
        dut.written.eq(marks[cycle]),
        dut.line.eq(slot.replicate(g.lanes)),
        dut.width.eq(Array(widths)[block]),
        dut.planes.eq(Array(planes)[block]),
        dut.start.eq(slot == count - 1),
        dut.read_slot.eq(slot),
        dut.read_width.eq(Array([Const(0), *widths])[block]),
        dut.read_planes.eq(Array([Const(0), *planes])[block]),
    ]
    for k in range(3):
        lanes = zip(parts_of(blocks[k], g.lane_bits), written[k], strict=True)
        bits = Cat(lane & mark.replicate(g.lane_bits) for lane, mark in lanes)
        here = (block == k + 1) & (cycle < 4 * count)
        check.equal(dut.data, Array(parts_of(bits, g.beat_bits))[slot], here & ~planes[k])
        for index, w in enumerate(p.symbol_bits):
            # A wide symbol is written as a whole.
            group = w // g.lane_bits
            whole = [Cat(mark).all() | ~Cat(mark).any() for mark in parts_of(written[k], group)]
            check.require((widths[k] != index) | Cat(whole).all())
            slices = Cat(bits[i + plane] for plane in reversed(range(w))
                         for i in range(0, p.block_bits, w))  # fmt: skip
            naive = Array(parts_of(slices, g.beat_bits))[slot]
            check.equal(dut.data, naive, here & planes[k] & (widths[k] == index))
    return check


def properties() -> Iterator[Property]:
    """Naive models of these parts."""
    yield Property("comparator: least size, lowest tag", comparator, quick=True)
    yield Property("gather of 8 lanes: compaction", partial(gathers, 8, 8), quick=True)
    yield Property("gather of 16 lanes: compaction", partial(gathers, 16, 16))
    yield Property("beat: zeros, planes XORed", partial(beats, DEFAULT), quick=True)
    yield Property(
        "delta: differences over blocks",
        partial(deltas, DEFAULT, 4),
        "induction",
        2,
        within=3,
        seed=2,
    )
    for name, p, count in (("4x4", TINY, 2), ("8x8", SMALL, 4), ("16x4 and 8x8", PAIRED, 4)):
        yield Property(
            f"transpose {name}: three blocks",
            partial(transposes, p, count),
            depth=4 * count + 1,
            quick=name == "4x4",
        )
        if p != TINY:
            yield Property(
                f"delta {name}: differences over blocks", partial(deltas, p, count), "induction", 2
            )
