"""Block parser: where each block of a chunk starts, and what its control string says.

The loop of the decompressor. A block starts where the block before it in its own stream
ends, that is two blocks before; a block may be begun every 4 cycles, so the loop takes 8:

| cycle | phase | work |
|---|---|---|
| 0-2 | 0-2 | :class:`planezip.hdl.control_reader.ControlReader` |
| 3-6 | 3-2 | :class:`planezip.hdl.code_parser.CodeParser` |
| 7 | 3 | length of the payload; end of the block |
| 8 | 0 | faults; the block is handed on |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.code_parser import CodeParser, parse_codes
from planezip.hdl.control_reader import ControlReader
from planezip.hdl.decoder_types import DecoderGeometry, block_end, chunk_entry, parsed_block
from planezip.hdl.summary import PlaneClass
from planezip.hdl.wires import any_of, registers, wire
from planezip.model.errors import ErrorCode
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag, log2_ceil

__all__ = ["BlockParser", "ParsedBlock", "parsed"]


@dataclass(frozen=True)
class ParsedBlock:
    """What the parser finds: ``control`` and ``payload`` are lengths in bits; ``error`` or 0."""

    error: int
    tag: int
    mask: int
    base: int
    classes: tuple[PlaneClass, ...]
    control: int
    payload: int


def parsed(bits: int, left: int, w: int, p: Parameters = DEFAULT) -> ParsedBlock:
    """Software model: the block whose control string begins at bit 0 of ``bits``.

    ``left``: bits that the body has left for it.
    """
    n = p.symbols(w)
    tag = bits & ((1 << TAG_BITS) - 1)
    used, mask, base = TAG_BITS, (1 << n) - 1, 0
    if tag in (Tag.ZVC, Tag.ZBX):
        mask = bits >> used & mask
        used += n
    if tag == Tag.DBX:
        base = bits >> used & ((1 << w) - 1)
        used += w
    classes: list[PlaneClass] = []
    wrong = False
    payload = w * mask.bit_count()
    if tag in (Tag.DBX, Tag.BX, Tag.ZBX):
        planes, run_bits = p.planes(Tag(tag), w), p.run_bits(Tag(tag), w)
        classes, length, wrong = parse_codes(bits >> used, planes, run_bits)
        used += length
        width = n - 1 if tag == Tag.DBX else mask.bit_count()
        each = {PlaneClass.VERBATIM: width}
        each |= dict.fromkeys((PlaneClass.PAIR, PlaneClass.ONE), log2_ceil(width))
        payload = sum(each.get(kind, 0) for kind in classes)
    error = 0
    if left < TAG_BITS:
        error = ErrorCode.OVERRUN
    elif tag not in p.encodings:
        error = ErrorCode.TAG
    elif used > left:
        error = ErrorCode.OVERRUN
    elif wrong:
        error = ErrorCode.RUN
    elif used + payload > left:
        error = ErrorCode.OVERRUN
    return ParsedBlock(error, tag, mask, base, tuple(classes), used, payload)


class BlockParser(wiring.Component):
    """Begins a block every 4 cycles; ``block`` has it in the cycles 8 to 11 (phases 0 to 3).

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    phase, chunks, room, begun, begun_last, word, data
        As of :class:`planezip.hdl.control_reader.ControlReader`.
    block : Out(:func:`planezip.hdl.decoder_types.parsed_block`)
    end : Out(:func:`planezip.hdl.decoder_types.block_end`)
        Together with ``block``.
    oldest : Out
        Row of the ring from which on it is still needed.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._beats_per_block = beats_per_block
        self._geometry = g = DecoderGeometry(parameters, beats_per_block)
        super().__init__(
            {
                "phase": In(2),
                "chunks": In(stream.Signature(chunk_entry(parameters, beats_per_block))),
                "room": In(1),
                "begun": Out(1),
                "begun_last": Out(1),
                "word": Out(g.word_bits),
                "data": In(g.line),
                "block": Out(parsed_block(parameters, beats_per_block)),
                "end": Out(block_end(parameters)),
                "oldest": Out(g.row_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        p = g.parameters
        m.submodules.reader = reader = ControlReader(p, self._beats_per_block)
        m.submodules.codes = codes = CodeParser(p, g.slots)
        wiring.connect(m, wiring.flipped(self.chunks), reader.chunks)
        m.d.comb += [
            *[getattr(reader, k).eq(getattr(self, k)) for k in ("phase", "room", "data")],
            *[getattr(self, k).eq(getattr(reader, k)) for k in ("begun", "begun_last", "word")],
            *[
                getattr(codes, k).eq(getattr(reader, k))
                for k in ("load", "window", "start", "pending", "active", "width")
            ],
        ]
        # Cycle 3: width of the planes and of a position.
        head = {
            name: Value.cast(getattr(reader.head, name)) for name in reader.head.shape().members
        }
        ones = _count(m, head["mask"]) - head["dbx"]
        n = wire(m, ones[: g.symbols.bit_length()], "ones")
        field = _count(m, Cat(n > (1 << k) for k in range(log2_ceil(g.symbols))))
        late = registers(m, {**head, "n": n, "field": field}, "late", self.phase == 3)
        done = self._ended(m, codes, late)
        front, back = self._positions(m, done, late)
        m.d.comb += [reader.front.eq(front), reader.back.eq(back)]
        self._judged(m, registers(m, done, "done", self.phase == 3))
        return m

    def _ended(self, m: Module, codes: CodeParser, d: dict[str, Signal]) -> dict[str, Value]:
        """Cycles 4 to 7: classes, length of the payload, and the end of the block."""
        g = self._geometry
        p, unit_bits = g.parameters, codes.shape.unit.bit_length() - 1
        phase = [self.phase == k for k in range(g.slots)]
        group = 3 * codes.shape.planes
        classes = Signal(3 * g.widest - group, reset_less=True)
        for k in range(g.slots - 1):
            with m.If(phase[k]):
                m.d.sync += classes[k * group : (k + 1) * group].eq(codes.classes)
        each = [codes.classes.as_value()[k : k + 3] for k in range(0, group, 3)]
        now_full = _count(m, Cat(codes.valid & ~k[0] & ~k[2] for k in each))
        now_short = _count(m, Cat(codes.valid & k[0] & k[2] for k in each))
        top = d["top"]
        symbols = any_of(
            [Mux(d["width"] == i, d["n"] << log2_ceil(w), 0) for i, w in enumerate(p.symbol_bits)]
        )
        extra = Mux(top[0] ^ top[2], 0, Mux(top[0], d["field"], d["n"]))
        at_first = Mux(d["order"], symbols, Mux(d["dbx"], extra, 0))
        length = Signal(range(2 * p.block_bits), reset_less=True)  # so far
        total = Signal.like(length)
        m.d.comb += total.eq(
            Mux(phase[0], at_first, length) + now_full * d["n"] + now_short * d["field"]
        )
        m.d.sync += length.eq(total)
        rest = Mux(d["order"], d["start"], codes.rest)
        place = Cat(
            any_of([rest[k] for k in range(len(rest)) if k >> b & 1])
            for b in range((len(rest) - 1).bit_length())
        )
        wrong = codes.wrong & ~d["order"]
        units = d["skip"] + Mux(d["order"], 0, codes.units)
        control = (units << unit_bits) + place + Mux(wrong, d["run_bits"], 0)
        spent = wire(m, control - d["at"][:unit_bits], "spent")[:12]
        return {
            **{k: d[k] for k in d if k not in ("starts", "ends", "skip", "start", "run_bits")},
            "spent": Mux(d["raw"], 0, spent),
            "total": total,
            "wrong": wrong,
            "classes": Cat(classes, codes.classes),
        }

    def _positions(
        self, m: Module, done: dict[str, Value], d: dict[str, Signal]
    ) -> tuple[Signal, Signal]:
        """Cycle 7: where the next blocks of the two streams start."""
        g = self._geometry
        front, back = (Signal(g.position_bits, name=k, reset_less=True) for k in ("front", "back"))
        was_front = Mux(d["first"], d["starts"], front)
        was_back = Mux(d["first"], d["ends"], back)
        behind = wire(m, d["at"] + done["spent"], "behind")[: g.position_bits]
        after = wire(m, d["at"] + done["spent"] + done["total"], "after")[: g.position_bits]
        with m.If((self.phase == 3) & d["valid"] & ~d["raw"]):
            m.d.sync += [
                front.eq(Mux(d["odd"], was_front, after)),
                back.eq(Mux(d["odd"], after, was_back)),
            ]
        done |= {
            "behind": behind,
            "after": after,
            "left": (-(was_front + was_back))[: g.position_bits],
        }
        del done["at"]
        return front, back

    def _judged(self, m: Module, done: dict[str, Signal]) -> None:
        """Cycle 8: faults; the block is handed on."""
        g = self._geometry
        left = done["left"]
        used = wire(m, done["spent"] + done["total"], "used")
        fault = Signal(done["error"].shape())
        with m.If(left < TAG_BITS):
            m.d.comb += fault.eq(ErrorCode.OVERRUN)
        with m.Elif(done["bad_tag"]):
            m.d.comb += fault.eq(ErrorCode.TAG)
        with m.Elif(done["spent"] > left):
            m.d.comb += fault.eq(ErrorCode.OVERRUN)
        with m.Elif(done["wrong"]):
            m.d.comb += fault.eq(ErrorCode.RUN)
        with m.Elif(used > left):
            m.d.comb += fault.eq(ErrorCode.OVERRUN)
        error = wire(m, Mux(done["error"] != 0, done["error"], Mux(done["raw"], 0, fault)), "error")
        unused = wire(m, left - used, "unused")[: g.position_bits]
        pads = done["last"] & ~done["raw"]
        end, block = self.end, self.block
        given: dict[str, Any] = {
            "error": error,
            "trailing": pads & (unused >= 8),
            "last_of_chunk": done["last"],
        }
        for name in end.shape().members:
            m.d.comb += getattr(end, name).eq(given.get(name, done.get(name)))
        given = {
            "start": Mux(done["odd"], -done["after"], done["behind"]),
            "pad": unused[:3],
            "pad_below": pads & done["odd"],
            "pad_above": pads & ~done["odd"],
        }
        for name in block.shape().members:
            m.d.comb += Value.cast(getattr(block, name)).eq(given.get(name, done.get(name)))
        broken = Signal(reset_less=True)  # the chunk has had a fault
        with m.If((self.phase == 0) & done["valid"]):
            m.d.sync += broken.eq((error != 0) | (broken & ~done["first"]))
        # All reads of the block are done after phase 3.
        with m.If((self.phase == 3) & done["valid"]):
            with m.If(done["last"]):
                m.d.sync += self.oldest.eq(done["release"])
            with m.Elif(~broken & ~done["odd"]):
                m.d.sync += self.oldest.eq(done["behind"][-g.row_bits :])


def _count(m: Module, bits: Value) -> Value:
    """Number of ones."""
    sums: list[Value] = [bits[k] for k in range(len(bits))]
    while len(sums) > 1:
        sums = [
            wire(m, sums[k] + sums[k + 1], "count") if k + 1 < len(sums) else sums[k]
            for k in range(0, len(sums), 2)
        ]
    return sums[0]
