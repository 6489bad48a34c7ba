"""Block parser: where each block of a chunk starts, and what its control string says.

The loop of the decompressor. A block starts where the block before it in its own stream
ends, that is two blocks before; a block may be begun every 4 cycles, so the loop takes 8:

| cycle | phase | work |
|---|---|---|
| 0 | 0 | position of the block, address of its control string |
| 1 | 1 | words of the ring aligned to units of 8 bits (odd blocks: reversed) |
| 2 | 2 | tag, mask or base, top plane of DBX; code parser loaded |
| 3-6 | 3-2 | code parser |
| 7 | 3 | length of the payload; end of the block |
| 8 | 0 | faults; the block is handed on |

All positions count bits in the ring. Those of the odd blocks are kept negated, so both
streams count upwards.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.code_parser import CodeParser
from planezip.hdl.decoder_types import DecoderGeometry, block_end, chunk_entry, parsed_block
from planezip.hdl.wires import any_of, wire
from planezip.model.errors import ErrorCode
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag, log2_ceil

__all__ = ["BlockParser"]


class BlockParser(wiring.Component):
    """Begins a block every 4 cycles; ``block`` has it in the cycles 8 to 11 (phases 0 to 3).

    Parameters
    ----------
    parameters : Parameters

    Attributes
    ----------
    phase : In(2)
        Counts the cycles.
    chunks : In(stream of :func:`planezip.hdl.decoder_types.chunk_entry`)
    room : In(1)
        A block may be begun.
    begun, begun_last : Out(1)
        A block is begun in this cycle; it is its chunk's last one.
    word : Out
        In phase 0: first of the four words of the ring to be read.
    data : In
        In phase 1: the banks, as they are.
    block : Out(:func:`planezip.hdl.decoder_types.parsed_block`)
    end : Out(:func:`planezip.hdl.decoder_types.block_end`), end_valid : Out(1)
        In phase 0, together with ``block``.
    oldest : Out
        Row of the ring from which on it is still needed.
    """

    def __init__(self, parameters: Parameters = DEFAULT) -> None:
        self._geometry = g = DecoderGeometry(parameters)
        super().__init__(
            {
                "phase": In(2),
                "chunks": In(stream.Signature(chunk_entry(parameters))),
                "room": In(1),
                "begun": Out(1),
                "begun_last": Out(1),
                "word": Out(g.word_bits),
                "data": In(g.wire),
                "block": Out(parsed_block(parameters)),
                "end": Out(block_end(parameters)),
                "end_valid": Out(1),
                "oldest": Out(g.row_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        p = g.parameters
        m.submodules.codes = codes = CodeParser(p)
        unit = codes.shape.unit
        unit_bits, bank_bits = unit.bit_length() - 1, g.bank.bit_length() - 1
        # While there is no chunk: an entry of zeros, read as raw (no X in what is kept).
        entry = Signal(chunk_entry(p))
        m.d.comb += entry.eq(Mux(self.chunks.valid, Value.cast(self.chunks.payload), 0))
        phase = [self.phase == k for k in range(4)]
        kinds = p.encodings

        # Cycle 0: the block and its position.
        front, back = Signal(g.position_bits), Signal(g.position_bits)
        raw_at = Signal(g.position_bits)
        index = Signal(range(p.blocks_per_chunk))
        position = Signal(g.position_bits)
        begin_raw = Signal(g.position_bits)
        starts = wire(m, Cat(Const(0, 3), entry.start), "starts")
        ends = wire(m, -Cat(Const(0, 3), entry.end), "ends")[: g.position_bits]
        odd = index[0] & ~entry.raw
        last = index == entry.last_block
        m.d.comb += [
            self.begun.eq(phase[0] & self.chunks.valid & self.room),
            self.begun_last.eq(self.begun & last),
            self.chunks.ready.eq(self.begun & last),
            begin_raw.eq(Mux(index == 0, starts, raw_at)),
        ]
        with m.If(entry.raw):
            m.d.comb += position.eq(begin_raw)
        with m.Elif(odd):
            m.d.comb += position.eq(Mux(index == 1, ends, back))
        with m.Else():
            m.d.comb += position.eq(Mux(index == 0, starts, front))
        first_word = position[bank_bits:]
        m.d.comb += self.word.eq(Mux(odd, ~first_word - 3, first_word))
        with m.If(self.begun):
            m.d.sync += [index.eq(Mux(last, 0, index + 1)), raw_at.eq(begin_raw + p.block_bits)]
        early = {
            "valid": self.begun,
            "at": position,
            "odd": odd,
            "first": index == 0,
            "last": last,
            "starts": starts,
            "ends": ends,
            "index": index,
            "word": self.word[:2],
            **{
                name: getattr(entry, name)
                for name in ("bypass", "discard", "width", "tail", "error", "extra")
            },
            "raw": entry.raw | ~self.begun,
            "last_of_tensor": entry.last & last,
            "release": entry.release,
            "body_bytes": entry.body_bytes,
        }
        e = _copy(m, early, phase[0], "early")  # cycles 1 to 4

        # Cycle 1: control string aligned to units.
        banks = [self.data[k : k + g.bank] for k in range(0, g.wire, g.bank)]
        turned = wire(
            m,
            Cat(
                any_of([banks[(k + b) % 4] & (e["word"] == b).replicate(g.bank) for b in range(4)])
                for k in range(4)
            ),
            "turned",
        )
        line = wire(m, Mux(e["odd"], turned[::-1], turned), "line")
        most = max(p.symbols(w) for w in p.symbol_bits)  # longest mask
        longest = max(most, g.widest)
        kept = longest + codes.shape.window + unit
        for level in range(bank_bits - unit_bits):
            line = wire(m, Mux(e["at"][unit_bits + level], line >> (unit << level), line), "line")
        control = Signal(kept)
        m.d.sync += control.eq(line[:kept])

        # Cycle 2: tag, mask or base, top plane.
        fine = e["at"][:unit_bits]
        aligned = control[: unit + TAG_BITS + longest + 8]
        for level in range(unit_bits):
            aligned = wire(m, Mux(fine[level], aligned >> (1 << level), aligned), "aligned")
        tag = aligned[:TAG_BITS]
        field = aligned[TAG_BITS : TAG_BITS + longest]
        is_tag = {t: wire(m, ~e["raw"] & (tag == t), f"is_{t.name.lower()}") for t in kinds}
        masked = any_of([is_tag.get(Tag.ZVC, Const(0)), is_tag.get(Tag.ZBX, Const(0))])
        dbx, zbx = (is_tag.get(t, Const(0, 1)) for t in (Tag.DBX, Tag.ZBX))
        coded = any_of([is_tag.get(t, Const(0, 1)) for t in (Tag.DBX, Tag.BX, Tag.ZBX)])
        bad_tag = ~e["raw"] & ~Cat(is_tag.values()).any()
        # Bits of mask or base; window behind them; code of the top plane.
        skips: list[tuple[Value, int]] = [(~masked & ~dbx, 0)]
        top_codes: list[tuple[Value, Value]] = []
        for i, w in enumerate(p.symbol_bits):
            here = e["width"] == i
            skips += [(masked & here, p.symbols(w)), (dbx & here, w)]
            top_codes.append((here, aligned[TAG_BITS + w : TAG_BITS + w + 5]))
        windows = [
            (control >> bits)[: codes.shape.window] & on.replicate(codes.shape.window)
            for on, bits in skips
        ]
        top_code = wire(m, any_of([code & on.replicate(5) for on, code in top_codes]), "top_code")
        verbatim, five = top_code[0], ~top_code[:3].any()
        one, run = ~top_code[0] & ~top_code[1] & top_code[2], ~top_code[0] & top_code[1]
        top_class = Cat(Mux(five, top_code[3], ~verbatim), five & top_code[4], five)
        once = [
            (~dbx, 0),
            (dbx & verbatim, 1),
            (dbx & one, 3),
            (dbx & five, 5),
            (dbx & run, 0),
        ]
        start = wire(
            m,
            any_of([Mux(on, 1 << (TAG_BITS + k), 0) for on, k in once]) << fine,
            "start",
        )
        m.d.comb += [
            codes.load.eq(phase[2]),
            codes.window.eq(any_of(windows)),
            codes.start.eq(start),
            codes.pending.eq(dbx & run),
            codes.active.eq(e["valid"] & coded),
            codes.width.eq(e["width"]),
        ]
        full = any_of(
            [Mux(e["width"] == i, (1 << p.symbols(w)) - 1, 0) for i, w in enumerate(p.symbol_bits)]
        )
        c = _copy(
            m,
            {
                "tag": Mux(e["raw"], Tag.RAW, tag),
                "bad_tag": bad_tag,
                "dbx": dbx,
                "zbx": zbx,
                "order": ~coded,
                "masked": masked,
                "run_bits": any_of(
                    [
                        Mux(e["width"] == i, 2 + bits, 0)
                        for i, bits in enumerate(codes.shape.run_bits)
                    ]
                ),
                "mask": Mux(masked, field[:most], Const((1 << most) - 1, most)) & full,
                "base": field[: g.widest],
                "top": top_class,
                "skip": any_of([Mux(on, bits >> unit_bits, 0) for on, bits in skips]),
                "start": start,
            },
            phase[2],
            "control",
        )  # cycles 3 to 6

        # Cycle 3: width of the planes and of a position.
        ones = _count(m, c["mask"]) - c["dbx"]
        n = wire(m, ones[: g.symbols.bit_length()], "ones")
        thresholds = Cat(n > (1 << k) for k in range(log2_ceil(g.symbols)))
        field_bits = _count(m, thresholds)
        late = {**{k: e[k] for k in early if k != "word"}, **c, "n": n, "field": field_bits}
        d = _copy(m, late, phase[3], "late")  # cycles 4 to 7

        # Cycles 4 to 7: classes, and the length of the payload.
        classes = Signal(3 * g.widest)
        group = 3 * codes.shape.planes
        for k in range(g.widest // codes.shape.planes):
            with m.If(phase[k] & codes.valid):
                m.d.sync += classes[k * group : (k + 1) * group].eq(codes.classes)
        length = Signal(range(2 * p.block_bits))  # so far
        each = [codes.classes.as_value()[k : k + 3] for k in range(0, group, 3)]
        now_full = _count(m, Cat(codes.valid & ~k[0] & ~k[2] for k in each))
        now_short = _count(m, Cat(codes.valid & k[0] & k[2] for k in each))
        top = d["top"]
        at_first = Mux(
            d["order"],
            any_of(
                [
                    Mux(d["width"] == i, d["n"] << log2_ceil(w), 0)
                    for i, w in enumerate(p.symbol_bits)
                ]
            ),
            Mux(
                d["dbx"] & ~top[0] & ~top[2],
                d["n"],
                Mux(d["dbx"] & top[0] & top[2], d["field"], 0),
            ),
        )
        total = Signal.like(length)
        m.d.comb += total.eq(
            Mux(phase[0], at_first, length) + now_full * d["n"] + now_short * d["field"]
        )
        m.d.sync += length.eq(total)

        # Cycle 7: end of the block.
        rest = Mux(d["order"], d["start"], codes.rest)
        place = Cat(
            any_of([rest[k] for k in range(len(codes.rest)) if k >> b & 1])
            for b in range(len(codes.rest).bit_length())
        )
        wrong = codes.wrong & ~d["order"]
        spent = wire(
            m,
            ((d["skip"] + Mux(d["order"], 0, codes.units)) << unit_bits)
            + place
            + Mux(wrong, d["run_bits"], 0)
            - d["at"][:unit_bits],
            "spent",
        )  # control bits of a coded block
        spent = Mux(d["raw"], 0, spent[:12])
        behind = wire(m, d["at"] + spent, "behind")[: g.position_bits]
        after = wire(m, d["at"] + spent + total, "after")[: g.position_bits]
        was_front = Mux(d["first"], d["starts"], front)
        was_back = Mux(d["first"], d["ends"], back)
        with m.If(phase[3] & d["valid"] & ~d["raw"]):
            m.d.sync += [
                front.eq(Mux(d["odd"], was_front, after)),
                back.eq(Mux(d["odd"], after, was_back)),
            ]
        done = _copy(
            m,
            {
                **{k: d[k] for k in late if k not in ("at", "starts", "ends", "skip", "start")},
                "behind": behind,
                "after": after,
                "left": (-(was_front + was_back))[: g.position_bits],
                "spent": spent,
                "total": total,
                "wrong": wrong,
                "classes": Cat(
                    classes[:-group],
                    Mux(codes.valid & phase[3], codes.classes, classes[-group:]),
                ),
            },
            phase[3],
            "done",
        )  # cycles 8 to 11

        # Cycle 8: faults.
        left = done["left"]
        used = wire(m, done["spent"] + done["total"], "used")
        fault = Mux(
            left < TAG_BITS,
            ErrorCode.OVERRUN,
            Mux(
                done["bad_tag"],
                ErrorCode.TAG,
                Mux(
                    done["spent"] > left,
                    ErrorCode.OVERRUN,
                    Mux(done["wrong"], ErrorCode.RUN, Mux(used > left, ErrorCode.OVERRUN, 0)),
                ),
            ),
        )
        error = Signal(4)
        m.d.comb += error.eq(Mux(done["error"] != 0, done["error"], Mux(done["raw"], 0, fault)))
        unused = wire(m, left - used, "unused")[: g.position_bits]
        broken = Signal()  # the chunk has had a fault
        now_broken = wire(m, (error != 0) | (broken & ~done["first"]), "now_broken")
        payload = Mux(done["odd"], -done["after"], done["behind"])[: g.position_bits]
        end, block = self.end, self.block
        pads = done["last"] & ~done["raw"]
        m.d.comb += [
            self.end_valid.eq(phase[0] & done["valid"]),
            end.error.eq(error),
            end.trailing.eq(pads & (unused >= 8)),
            end.last_of_chunk.eq(done["last"]),
            end.tag.eq(done["tag"]),
            block.start.eq(payload),
            block.pad.eq(unused[:3]),
            block.pad_below.eq(pads & done["odd"]),
            block.pad_above.eq(pads & ~done["odd"]),
            block.classes.eq(done["classes"]),
            *[
                getattr(end, name).eq(done[name])
                for name in (
                    *("extra", "last_of_tensor", "tail", "index", "raw", "bypass", "discard"),
                    "body_bytes",
                )
            ],
            *[
                Value.cast(getattr(block, name)).eq(done[name])
                for name in ("valid", "width", "order", "dbx", "zbx", "mask", "base", "top")
            ],
            block.n.eq(done["n"]),
            block.field.eq(done["field"]),
        ]
        with m.If(phase[0] & done["valid"]):
            m.d.sync += broken.eq(now_broken)
        # All reads of the block are done after phase 3.
        with m.If(phase[3] & done["valid"]):
            with m.If(done["last"]):
                m.d.sync += self.oldest.eq(done["release"])
            with m.Elif(~broken & ~done["odd"]):
                m.d.sync += self.oldest.eq(done["behind"][-g.row_bits :])
        return m


def _copy(m: Module, values: dict[str, Any], when: Value, name: str) -> dict[str, Signal]:
    """Registers that take ``values`` at the end of a cycle with ``when``."""
    result = {}
    for key, value in values.items():
        value = Value.cast(value)
        result[key] = Signal(len(value), name=f"{name}_{key}")
        with m.If(when):
            m.d.sync += result[key].eq(value)
    return result


def _count(m: Module, bits: Value) -> Value:
    """Number of ones."""
    sums: list[Value] = [bits[k] for k in range(len(bits))]
    while len(sums) > 1:
        sums = [
            wire(m, sums[k] + sums[k + 1], "count") if k + 1 < len(sums) else sums[k]
            for k in range(0, len(sums), 2)
        ]
    return sums[0]
