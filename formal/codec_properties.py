"""decode(encode(x)) = x for every block x, and the hardware that chooses the encoding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from formal.check import Check
from formal.naive import Decoder, Encoder, Texts, code_of, values_of
from formal.prove import Property
from formal.sizes import SMALL, TINY
from planezip.hdl.comparator import Comparator
from planezip.hdl.sizer import Sizer
from planezip.hdl.summary import plane_class
from planezip.model.format import TAG_BITS, Parameters, PlaneCode, Tag

__all__ = ["Selection", "properties"]


class Selection(wiring.Component):
    """Every encoding of a block and the hardware's choice: winner, its size, its strings."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self.encoders = {tag: Encoder(parameters, tag) for tag in Tag}
        most = len(self.encoders[Tag.RAW].control)
        super().__init__(
            {
                "block": In(parameters.block_bits),
                "tag": Out(TAG_BITS),
                "bits": Out(range(2 * most)),
                "control": Out(most),
                "control_bits": Out(range(most + 1)),
                "payload": Out(most),
                "payload_bits": Out(range(most + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.comparator = comparator = Comparator(self._parameters)
        m.d.comb += [self.tag.eq(comparator.tag), self.bits.eq(comparator.bits)]
        for tag, encoder in self.encoders.items():
            m.submodules[tag.name] = encoder
            m.d.comb += encoder.block.eq(self.block)
            if tag != Tag.RAW:
                size = encoder.control_bits + encoder.payload_bits
                m.d.comb += comparator.sizes[tag.name].eq(size)
            with m.If(self.tag == tag):
                m.d.comb += [
                    getattr(self, name).eq(getattr(encoder, name))
                    for name in ("control", "control_bits", "payload", "payload_bits")
                ]
        return m


def _decoded(check: Check, parameters: Parameters, tag: Tag, encoded: Any) -> Decoder:
    check.m.submodules[f"decoder_{tag.name}"] = decoder = Decoder(parameters, tag)
    string = encoded.control | (encoded.payload << encoded.control_bits)
    check.m.d.comb += decoder.string.eq(string)
    return decoder


def round_trip(parameters: Parameters, tag: Tag) -> Check:
    """A block and its length come back."""
    dut = Encoder(parameters, tag)
    check = Check(dut)
    block = check.feed(dut.block, "block")
    decoder = _decoded(check, parameters, tag, dut)
    check.equal(decoder.block, block)
    check.equal(decoder.bits, dut.control_bits + dut.payload_bits)
    return check


def selected(parameters: Parameters) -> Check:
    """The winner is the smallest, the lowest tag of those, and decodes to the block."""
    dut = Selection(parameters)
    check = Check(dut)
    block = check.feed(dut.block, "block")
    check.always(dut.bits <= TAG_BITS + parameters.block_bits)
    for tag, encoder in dut.encoders.items():
        size = check.wire(encoder.control_bits + encoder.payload_bits)
        check.always(dut.bits <= size)
        check.always((dut.tag <= tag) | (dut.bits < size))
        here = dut.tag == tag
        decoder = _decoded(check, parameters, tag, encoder)
        check.equal(decoder.block, block, here)
        check.equal(dut.bits, size, here)
    check.always(dut.tag <= max(Tag))
    return check


def sized(parameters: Parameters, beats: int) -> Check:
    """The sizer's choice, size, non-zero symbols and classes for two blocks in a row."""
    dut = Sizer(parameters, beats)
    check = Check(dut)
    blocks = [check.constant(parameters.block_bits, f"block_{k}") for k in range(2)]
    place = Signal(range(2 * beats + 1))
    size = parameters.block_bits // beats
    parts = [block[k : k + size] for block in blocks for k in range(0, len(block), size)]
    beat = dut.beats.payload.beat
    check.m.d.comb += [
        dut.beats.valid.eq(place < 2 * beats),
        beat.data.eq(Array(parts)[place]),
        beat.first.eq(place % beats == 0),
        beat.last.eq(place % beats == beats - 1),
    ]
    check.m.d.sync += place.eq(place + (dut.beats.valid & dut.beats.ready))
    naive = Selection(parameters)
    check.m.submodules.naive = naive
    count = Signal(range(3))
    check.m.d.sync += count.eq(count + dut.results.valid)
    check.m.d.comb += naive.block.eq(Mux(count == 0, blocks[0], blocks[1]))
    summary, valid = dut.results.payload.summary, dut.results.valid
    check.always(~valid | (count < 2))
    check.equal(summary.tag, naive.tag, valid)
    check.equal(summary.bits, naive.bits, valid)
    check.always(~valid | (summary.bits <= TAG_BITS + parameters.block_bits))
    check.always((check.cycle(2 * beats + 16) < 2 * beats + 15) | (count == 2))
    w = parameters.symbol_bits[0]
    symbols = [naive.block[k : k + w] for k in range(0, parameters.block_bits, w)]
    nonzero = sum((Value.cast(s.any()) for s in symbols[1:]), Value.cast(symbols[0].any()))
    check.equal(summary.nonzero, nonzero, valid)
    for tag in (Tag.DBX, Tag.BX, Tag.ZBX):
        classes = _classes(check, parameters, tag, symbols)
        seen = [Value.cast(summary.planes[k]) for k in range(w)]
        if tag == Tag.DBX:
            seen.insert(0, Value.cast(summary.extra))
        check.equal(Cat(seen), Cat(classes), valid & (summary.tag == tag))
    return check


def _classes(check: Check, p: Parameters, tag: Tag, symbols: list[Value]) -> list[Value]:
    """Naive classes of a block's planes, top plane first."""
    w, texts = p.symbol_bits[0], Texts(check.m)
    values, n = values_of(texts, p, tag, symbols)
    planes = p.planes(tag, w)
    pre = [texts.wire(Cat(v[k] for v in values)) for k in range(planes)]
    result = []
    for k in reversed(range(planes)):
        plane = texts.wire(pre[k] ^ pre[k + 1]) if k + 1 < planes else pre[k]
        found: Value = Value.cast(0)
        for code, fits in code_of(plane, pre[k], n).items():
            if code != PlaneCode.ZERO_RUN:
                found = Mux(fits, plane_class(code).value, found)
        result.append(check.wire(found[:3]))
    return result


def properties() -> Iterator[Property]:
    """Round trip of each encoding and of the selection; the sizer against it."""
    for tag in Tag:
        yield Property(
            f"{tag.name} 4x4: decode(encode(x)) = x",
            partial(round_trip, TINY, tag),
            quick=tag != Tag.DBX,
        )
    for tag in (Tag.RAW, Tag.ZVC):
        yield Property(f"{tag.name} 8x8: decode(encode(x)) = x", partial(round_trip, SMALL, tag))
    yield Property(
        "selection 4x4: smallest, lowest tag, decodes, at most raw plus tag",
        partial(selected, TINY),
        quick=True,
    )
    yield Property(
        "sizer 4x4: choice, size and classes of two blocks in a row",
        partial(sized, TINY, 2),
        depth=20,
        quick=True,
    )
