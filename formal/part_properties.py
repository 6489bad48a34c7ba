"""Parts of the lanes against naive models, at full size where a solver can do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from formal.check import Check
from formal.naive import Texts, log2_of, lowest
from formal.prove import Property
from formal.sizes import PAIRED, SMALL, TINY
from planezip.hdl.compaction import keep_flags
from planezip.hdl.comparator import Comparator
from planezip.hdl.delta import Delta, beat_bits, width_shape, xor_adjacent
from planezip.hdl.gather import destinations, gather
from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import PayloadPacker, PayloadPlaces
from planezip.hdl.plane_coder import CodePacker, PlaneCoder
from planezip.hdl.position import PositionEncoder
from planezip.hdl.summary import PlaneClass
from planezip.hdl.transpose import Transpose
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, PlaneCode, Tag

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
        lanes = _parts(self.data, self._bits)
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


def _parts(value: Value, size: int) -> list[Value]:
    return [value[k : k + size] for k in range(0, len(value), size)]


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
    out, total = Array(_parts(dut.out, bits)), Value.cast(Const(0))
    for k, lane in enumerate(_parts(data, bits)):
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
        symbols = _parts(data, w)
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
        symbols = [older[-w:], *_parts(before, w)]
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
    rows = Array(part for b in blocks for part in _parts(b, g.beat_bits))
    marks = Array(part for mark in written for part in _parts(mark, g.lanes))
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
        lanes = zip(_parts(blocks[k], g.lane_bits), written[k], strict=True)
        bits = Cat(lane & mark.replicate(g.lane_bits) for lane, mark in lanes)
        here = (block == k + 1) & (cycle < 4 * count)
        check.equal(dut.data, Array(_parts(bits, g.beat_bits))[slot], here & ~planes[k])
        for index, w in enumerate(p.symbol_bits):
            # A wide symbol is written as a whole.
            group = w // g.lane_bits
            whole = [Cat(mark).all() | ~Cat(mark).any() for mark in _parts(written[k], group)]
            check.require((widths[k] != index) | Cat(whole).all())
            slices = Cat(bits[i + plane] for plane in reversed(range(w))
                         for i in range(0, p.block_bits, w))  # fmt: skip
            naive = Array(_parts(slices, g.beat_bits))[slot]
            check.equal(dut.data, naive, here & planes[k] & (widths[k] == index))
    return check


def _zero_code(t: Texts, run: Value, number: Value, run_bits: int) -> Any:
    """A zero plane that ends a run of one (``run`` not set) or more."""
    field = Cat(Const(PlaneCode.ZERO_RUN.prefix[0], 2), Value.cast(number)[:run_bits])
    return t.choose(run, t.fixed(field, 2 + run_bits), t.fixed(*PlaneCode.ZERO.prefix))


def coded(p: Parameters) -> Check:
    """Codes of a slot and their string, from the classes of its planes."""
    dut = _Coder(p)
    check = Check(dut)
    t, coder, g = Texts(check.m), dut.coder, Geometry(p)
    names = ("tag", "width", "has_extra", "next_zero", "slot", "run_in")
    tag, width, has_extra, next_zero, slot, run_in = (
        check.feed(getattr(dut, name), name) for name in names
    )
    classes = [check.feed(dut.extra, "extra"), *_parts(check.feed(dut.planes, "planes"), 3)]
    known = [kind.value for kind in PlaneClass]
    for kind in classes:
        check.require(Cat(kind == value for value in known).any())
    check.require(width < len(p.symbol_bits))
    check.require((tag == Tag.DBX) | (tag == Tag.BX) | (tag == Tag.ZBX))
    check.require(has_extra == ((tag == Tag.DBX) & (slot == 0)))
    check.require(~run_in | (slot != 0) | has_extra)
    check.require((slot != 3) | ~next_zero)
    for index, w in enumerate(p.symbol_bits):
        here, count = width == index, g.planes(w)
        zero = [kind == PlaneClass.ZERO for kind in classes[: count + 1]]
        for which in (Tag.DBX, Tag.BX):
            run_bits = p.run_bits(which, w)
            texts = []
            for k in range(count + 1):
                follows = zero[k + 1] if k < count else next_zero
                before: Value = run_in
                if k == 1:
                    before = Mux(has_extra, zero[0], run_in)
                elif k:
                    before = zero[k - 1]
                else:
                    before = Const(0)
                number = w - count * slot - k
                code = _zero_code(t, before, check.wire(number[:8]), run_bits)
                code = t.when(~follows, code)
                for kind in PlaneClass:
                    if kind != PlaneClass.ZERO:
                        prefix = PlaneCode[kind.name].prefix
                        code = t.choose(classes[k] == kind, t.fixed(*prefix), code)
                texts.append(t.when(has_extra, code) if k == 0 else code)
            whole = t.join(texts)
            now = here & ((tag == Tag.DBX) == (which == Tag.DBX))
            check.equal(dut.bits, whole.value, now)
            check.equal(dut.length, whole.length, now)
            check.equal(coder.run_out, zero[count], now)
    return check


class _Coder(wiring.Component):
    """Plane coder and code packer."""

    def __init__(self, p: Parameters) -> None:
        self.coder, self._packer = PlaneCoder(p), CodePacker(p)
        ports = self.coder.signature.members
        names = ("tag", "width", "has_extra", "next_zero", "slot", "run_in")
        super().__init__(
            {
                **{name: ports[name] for name in names},
                "extra": In(3),
                "planes": In(3 * Geometry(p).units),
                "bits": Out(len(self._packer.bits)),
                "length": Out(len(self._packer.length)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.coder, m.submodules.packer = self.coder, self._packer
        for name in ("tag", "width", "has_extra", "next_zero", "slot", "run_in"):
            m.d.comb += getattr(self.coder, name).eq(getattr(self, name))
        m.d.comb += [
            Value.cast(self.coder.extra).eq(self.extra),
            Value.cast(self.coder.planes).eq(self.planes),
            self._packer.codes.eq(self.coder.codes),
            self.bits.eq(self._packer.bits),
            self.length.eq(self._packer.length),
        ]
        return m


def positions(p: Parameters) -> Check:
    """Verbatim planes as they are, positions of one or two ones, else nothing."""
    dut = PositionEncoder(p)
    check = Check(dut)
    g = Geometry(p)
    data, width = check.feed(dut.data, "data"), check.feed(dut.width, "width")
    verbatim = check.feed(dut.verbatim, "verbatim")
    places = check.feed(dut.positions, "positions")
    check.require(width < len(p.symbol_bits))
    for index, w in enumerate(p.symbol_bits):
        n = p.symbols(w)
        here, span = width == index, n // g.unit_bits
        pieces = zip(_parts(data, n), _parts(verbatim, span), _parts(places, span), strict=True)
        for k, (plane, copied, placed) in enumerate(pieces):
            some = [plane == 1 << j for j in range(n)] + [plane == 3 << j for j in range(n - 1)]
            check.require(~here | ~copied.any() | (copied.all() & ~placed.any()))
            check.require(~here | (placed[1:] == 0))
            check.require(~here | ~placed[0] | Cat(some).any())
            naive = Mux(copied[0], plane, Mux(placed[0], lowest(plane), 0))
            check.equal(dut.units[k * n : (k + 1) * n], naive, here)
    return check


def placed(p: Parameters) -> Check:
    """Each unit begins where the one before ends; the lengths are those of the cycle before."""
    dut = PayloadPlaces(p)
    check = Check(dut)
    check.m.d.comb += dut.enable.eq(1)
    g = Geometry(p)
    start, begun = check.feed(dut.start, "start"), Signal()
    check.m.d.sync += begun.eq(1)
    names = ("width", "planes", "verbatim", "positions", "shares", "position_bits", "symbol_bits")
    i: dict[str, Signal] = {}
    for name in names:
        now = check.feed(getattr(dut, name), name)
        i[name] = Signal.like(now, name=f"taken_{name}")
        check.m.d.sync += i[name].eq(now)
    check.require(~begun | (i["width"] < len(p.symbol_bits)))
    check.require(i["position_bits"] <= log2_of(Const(g.symbols)))
    shares = _parts(i["shares"], g.unit_bits.bit_length())
    for share in shares:
        check.require(share <= g.unit_bits)
    ring = g.beat_bits.bit_length() - 1
    starts = _parts(dut.places, ring)
    for index, w in enumerate(p.symbol_bits):
        here, span = i["width"] == index, p.symbols(w) // g.unit_bits
        at: Value = start
        for k in range(g.units):
            both = i["verbatim"][k] & i["positions"][k]
            check.require(~here | ~both)
            check.equal(starts[k], at[:ring], begun & here & i["planes"])
            length = Mux(i["verbatim"][k], shares[k % span], 0)
            if k % span == 0:
                length = Mux(i["positions"][k], i["position_bits"], length)
            at = check.wire((at + length)[: len(dut.end)])
        check.equal(dut.end, at, begun & here & i["planes"])
    for k in range(g.units):
        check.equal(starts[k], (start + k * g.unit_bits)[:ring], begun & ~i["planes"])
    check.equal(dut.end, (start + i["symbol_bits"])[: len(dut.end)], begun & ~i["planes"])
    return check


def packs(p: Parameters) -> Check:
    """Units in a ring at places one behind the other, a cycle later."""
    dut = PayloadPacker(p)
    check = Check(dut)
    g = Geometry(p)
    check.m.d.comb += dut.enable.eq(1)
    units = _parts(check.feed(dut.units, "units"), g.unit_bits)
    bits = g.beat_bits.bit_length() - 1
    at: Value = check.free(bits, "start")
    starts, naive = [], Value.cast(Const(0, g.beat_bits))
    for k, unit in enumerate(units):
        length = check.free(range(g.unit_bits + 1), f"length_{k}")
        check.require(length <= g.unit_bits)
        check.require((unit >> length) == 0)
        starts.append(at)
        wide = Cat(unit, Const(0, 2 * g.beat_bits - len(unit))) << at
        naive = check.wire(naive | wide[: g.beat_bits] | wide[g.beat_bits : 2 * g.beat_bits])
        at = check.wire((at + length)[:bits])
    before, begun = Signal(g.beat_bits), Signal()
    check.m.d.comb += dut.places.eq(Cat(starts))
    check.m.d.sync += [before.eq(naive), begun.eq(1)]
    check.equal(dut.ring, before, begun)
    return check


_PAIR: Sequence[tuple[str, Parameters, int]] = (("8x8", SMALL, 4), ("16x4 and 8x8", PAIRED, 4))


def properties() -> Iterator[Property]:
    """Naive models of the parts."""
    yield Property("comparator: least size, lowest tag", comparator, quick=True)
    yield Property("gather of 8 lanes: compaction", partial(gathers, 8, 8), quick=True)
    yield Property("gather of 16 lanes: compaction", partial(gathers, 16, 16))
    yield Property("beat: zeros, planes XORed", partial(beats, DEFAULT), quick=True)
    yield Property("delta: differences over blocks", partial(deltas, DEFAULT, 4), "induction", 2)
    yield Property("coder: codes of a slot, packed", partial(coded, DEFAULT))
    yield Property("positions: of a slot's planes", partial(positions, DEFAULT))
    for name, p, count in (("4x4", TINY, 2), *_PAIR):
        yield Property(
            f"transpose {name}: three blocks",
            partial(transposes, p, count),
            depth=4 * count + 1,
            quick=name == "4x4",
        )
    for name, p, count in _PAIR:
        yield Property(
            f"delta {name}: differences over blocks", partial(deltas, p, count), "induction", 2
        )
        yield Property(f"coder {name}: codes of a slot, packed", partial(coded, p), quick=True)
        yield Property(f"positions {name}: of a slot's planes", partial(positions, p), quick=True)
        yield Property(
            f"payload places {name}: sums of lengths", partial(placed, p), depth=2, quick=True
        )
        yield Property(f"payload packer {name}: units in a ring", partial(packs, p), depth=2)
