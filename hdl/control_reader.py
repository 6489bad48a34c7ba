"""Control reader: the start of a block's control string, out of the ring.

Cycles 0 to 2 of the decompressor's loop (:mod:`planezip.hdl.block_parser`):

| cycle | phase | work |
|---|---|---|
| 0 | 0 | position of the block, address of its control string |
| 1 | 1 | words of the ring aligned to units of 8 bits (odd blocks: reversed) |
| 2 | 2 | tag, mask or base, top plane of DBX; code parser loaded |

All positions count bits in the ring. Those of the odd blocks are kept negated, so both
streams count upwards.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import DecoderGeometry, block_end, chunk_entry
from planezip.hdl.delta import width_shape
from planezip.hdl.parser_shape import ParserShape
from planezip.hdl.summary import PlaneClass
from planezip.hdl.wires import any_of, both, registers, shifted, wire
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag

__all__ = ["ControlReader", "block_head"]


def block_head(parameters: Parameters, beats_per_block: int = 4) -> data.StructLayout:
    """A block before its plane codes are read.

    ``at``: position of its control string; ``starts`` and ``ends`` of the body, ``ends`` negated.
    ``skip``: units of mask or base; ``start``: one-hot, first code behind them. ``mask``: all ones
    where there is none; ``top``: DBX's plane w; ``run_bits``: of a run, prefix included.
    """
    g = DecoderGeometry(parameters, beats_per_block)
    end = block_end(parameters)
    shape = ParserShape.of(parameters, g.slots)
    position = unsigned(g.position_bits)
    same = ("error", "extra", "last_of_tensor", "tail", "index", "tag", "raw", "bypass", "discard")
    return data.StructLayout(
        {
            "valid": 1,
            "at": position,
            "starts": position,
            "ends": position,
            "odd": 1,
            "first": 1,
            "last": 1,
            "width": width_shape(parameters),
            "release": unsigned(g.row_bits),
            **{name: end[name].shape for name in (*same, "body_bytes")},
            "bad_tag": 1,
            "order": 1,
            "dbx": 1,
            "zbx": 1,
            "mask": unsigned(g.symbols),
            "base": unsigned(g.widest),
            "top": PlaneClass,
            "skip": range(max(g.symbols, g.widest) // shape.unit + 1),
            "start": unsigned(shape.span),
            "run_bits": range(3 + shape.run_bits[-1]),
        }
    )


class ControlReader(wiring.Component):
    """Begins a block every 4 cycles, in phase 0; ``head`` has it three cycles later.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    phase : In(2)
        Counts the cycles.
    chunks : In(stream of :func:`planezip.hdl.decoder_types.chunk_entry`)
    room : In(1)
        A block may be begun.
    front, back : In
        Where the blocks before in the two streams have ended.
    begun, begun_last : Out(1)
        A block is begun in this cycle; it is its chunk's last one.
    word : Out
        In phase 0: first of the words of the ring to be read.
    data : In
        In phase 1: the banks, as they are.
    load, window, start, pending, active, width : Out
        In phase 2: for the code parser.
    head : Out(:func:`block_head`)
        In phase 3.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = DecoderGeometry(parameters, beats_per_block)
        self._shape = shape = ParserShape.of(parameters, g.slots)
        super().__init__(
            {
                "phase": In(2),
                "chunks": In(stream.Signature(chunk_entry(parameters, beats_per_block))),
                "room": In(1),
                "front": In(g.position_bits),
                "back": In(g.position_bits),
                "begun": Out(1),
                "begun_last": Out(1),
                "word": Out(g.word_bits),
                "data": In(g.line),
                "load": Out(1),
                "window": Out(shape.window),
                "start": Out(shape.span),
                "pending": Out(1),
                "active": Out(1),
                "width": Out(width_shape(parameters)),
                "head": Out(block_head(parameters, beats_per_block)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        early = self._begin(m)  # holds in cycles 1 to 4
        control = self._control(m, early)  # holds in cycle 2
        late = registers(m, self._head(m, early, control), "control", self.phase == 2)
        for name, value in (early | late).items():
            if name not in ("word", "units"):
                m.d.comb += Value.cast(getattr(self.head, name)).eq(value)
        return m

    def _begin(self, m: Module) -> dict[str, Signal]:
        """Cycle 0: the block and its position."""
        g = self._geometry
        p, bank_bits = g.parameters, g.bank.bit_length() - 1
        # While there is no chunk: an entry of zeros, read as raw (no X in what is kept).
        entry = Signal(self.chunks.payload.shape())
        m.d.comb += entry.eq(Mux(self.chunks.valid, Value.cast(self.chunks.payload), 0))
        first = self.phase == 0
        raw_at = Signal(g.position_bits, reset_less=True)
        index = Signal(range(p.blocks_per_chunk))
        position = Signal(g.position_bits)
        begin_raw = Signal(g.position_bits)
        starts = wire(m, Cat(Const(0, 3), entry.start), "starts")
        ends = wire(m, -Cat(Const(0, 3), entry.end), "ends")[: g.position_bits]
        odd = index[0] & ~entry.raw
        last = index == entry.last_block
        m.d.comb += [
            self.begun.eq(first & self.chunks.valid & self.room),
            self.begun_last.eq(self.begun & last),
            self.chunks.ready.eq(self.begun & last),
            begin_raw.eq(Mux(index == 0, starts, raw_at)),
        ]
        with m.If(entry.raw):
            m.d.comb += position.eq(begin_raw)
        with m.Elif(odd):
            m.d.comb += position.eq(Mux(index == 1, ends, self.back))
        with m.Else():
            m.d.comb += position.eq(Mux(index == 0, starts, self.front))
        word = position[bank_bits:]
        m.d.comb += self.word.eq(Mux(odd, ~word - (g.banks - 1), word))
        with m.If(self.begun):
            m.d.sync += [index.eq(Mux(last, 0, index + 1)), raw_at.eq(begin_raw + p.block_bits)]
        copied = ("bypass", "discard", "width", "tail", "error", "extra", "release", "body_bytes")
        values = {
            "valid": self.begun,
            "at": position,
            "odd": odd,
            "first": index == 0,
            "last": last,
            "starts": starts,
            "ends": ends,
            "index": index,
            "word": self.word[: g.bank_select],
            "units": both(position[self._shape.unit.bit_length() - 1 : bank_bits]),
            **{name: getattr(entry, name) for name in copied},
            "raw": entry.raw | ~self.begun,
            "last_of_tensor": entry.last & last,
        }
        return registers(m, values, "early", first)

    def _control(self, m: Module, early: dict[str, Signal]) -> Signal:
        """Cycle 1: the control string, aligned to units."""
        g, unit_bits = self._geometry, self._shape.unit.bit_length() - 1
        turned = g.turned(m, self.data, early["word"])
        line = wire(m, Mux(early["odd"], turned[::-1], turned), "line")
        control = Signal(g.control, reset_less=True)
        m.d.sync += control.eq(shifted(m, line, early["units"], g.control, unit_bits))
        return control

    def _head(self, m: Module, early: dict[str, Signal], control: Value) -> dict[str, Value]:
        """Cycle 2: tag, mask or base, top plane."""
        g, shape = self._geometry, self._shape
        p, unit_bits = g.parameters, shape.unit.bit_length() - 1
        longest = max(g.symbols, g.widest)
        fine = early["at"][:unit_bits]
        aligned = control[: shape.unit + TAG_BITS + longest + 8]
        for level in range(unit_bits):
            aligned = wire(m, Mux(fine[level], aligned >> (1 << level), aligned), "aligned")
        tag = aligned[:TAG_BITS]
        field = aligned[TAG_BITS : TAG_BITS + longest]
        is_tag = {
            t: wire(m, ~early["raw"] & (tag == t), f"is_{t.name.lower()}") for t in p.encodings
        }
        zvc, dbx, bx, zbx = (
            is_tag.get(t, Const(0, 1)) for t in (Tag.ZVC, Tag.DBX, Tag.BX, Tag.ZBX)
        )
        masked, coded = zvc | zbx, dbx | bx | zbx
        # Bits of mask or base; window behind them; code of the top plane.
        skips: list[tuple[Value, int]] = [(~masked & ~dbx, 0)]
        top_codes: list[Value] = []
        for i, w in enumerate(p.symbol_bits):
            here = early["width"] == i
            skips += [(masked & here, p.symbols(w)), (dbx & here, w)]
            top_codes.append(aligned[TAG_BITS + w : TAG_BITS + w + 5] & here.replicate(5))
        window = [
            (control >> bits)[: shape.window] & on.replicate(shape.window) for on, bits in skips
        ]
        code = wire(m, any_of(top_codes), "top_code")
        verbatim, five = code[0], ~code[:3].any()
        one, run = ~code[0] & ~code[1] & code[2], ~code[0] & code[1]
        lengths = [(~dbx | run, 0), (dbx & verbatim, 1), (dbx & one, 3), (dbx & five, 5)]
        start = wire(
            m, any_of([Mux(on, 1 << (TAG_BITS + k), 0) for on, k in lengths]) << fine, "start"
        )
        m.d.comb += [
            self.load.eq(self.phase == 2),
            self.window.eq(any_of(window)),
            self.start.eq(start),
            self.pending.eq(dbx & run),
            self.active.eq(early["valid"] & coded),
            self.width.eq(early["width"]),
        ]
        mask = Mux(masked, field[: g.symbols], Const(-1, g.symbols))
        by_width = [early["width"] == i for i in range(len(p.symbol_bits))]
        full = [
            Mux(here, (1 << p.symbols(w)) - 1, 0)
            for here, w in zip(by_width, p.symbol_bits, strict=True)
        ]
        run_bits = [
            Mux(here, 2 + bits, 0) for here, bits in zip(by_width, shape.run_bits, strict=True)
        ]
        return {
            "tag": Mux(early["raw"], Tag.RAW, tag),
            "bad_tag": ~early["raw"] & ~Cat(is_tag.values()).any(),
            "dbx": dbx,
            "zbx": zbx,
            "order": ~coded,
            "run_bits": any_of(run_bits),
            "mask": mask & any_of(full),
            "base": field[: g.widest],
            "top": Cat(Mux(five, code[3], ~verbatim), five & code[4], five),
            "skip": any_of([Mux(on, bits >> unit_bits, 0) for on, bits in skips]),
            "start": start[: shape.span],
        }
