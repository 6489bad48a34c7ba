"""Codes and payload of a slot's planes, against naive models, at full size where it can be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from formal.check import Check
from formal.naive import Texts, log2_of, lowest
from formal.prove import Property
from formal.sizes import PAIRED, SMALL
from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import PayloadPacker, PayloadPlaces
from planezip.hdl.plane_coder import CodePacker, PlaneCoder
from planezip.hdl.position import PositionEncoder
from planezip.hdl.summary import PlaneClass
from planezip.hdl.wires import parts_of
from planezip.model.format import DEFAULT, Parameters, PlaneCode, Tag

__all__ = ["properties"]


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
    classes = [check.feed(dut.extra, "extra"), *parts_of(check.feed(dut.planes, "planes"), 3)]
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
        pieces = zip(
            parts_of(data, n), parts_of(verbatim, span), parts_of(places, span), strict=True
        )
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
    shares = parts_of(i["shares"], g.unit_bits.bit_length())
    for share in shares:
        check.require(share <= g.unit_bits)
    ring = g.beat_bits.bit_length() - 1
    starts = parts_of(dut.places, ring)
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
    units = parts_of(check.feed(dut.units, "units"), g.unit_bits)
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


def properties() -> Iterator[Property]:
    """Naive models of these parts."""
    yield Property("coder: codes of a slot, packed", partial(coded, DEFAULT))
    yield Property("positions: of a slot's planes", partial(positions, DEFAULT))
    for name, p in (("8x8", SMALL), ("16x4 and 8x8", PAIRED)):
        yield Property(f"coder {name}: codes of a slot, packed", partial(coded, p), quick=True)
        yield Property(f"positions {name}: of a slot's planes", partial(positions, p), quick=True)
        yield Property(
            f"payload places {name}: sums of lengths", partial(placed, p), depth=2, quick=True
        )
        yield Property(f"payload packer {name}: units in a ring", partial(packs, p), depth=2)
