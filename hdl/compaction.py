"""Compaction: the zero symbols of a beat drop out, the others move together.

All works on *parts* of the narrowest symbol width; a wider symbol is several neighbouring
parts that are kept or dropped together, so that every width shares the wires. Pass 2
needs it for ZVC (compacted beats) and ZBX (compacted blocks, :class:`Append`); pass 1
sizes ZBX without it (``hdl/plane_status.py``).
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.model.format import DEFAULT, Parameters
from planezip.model.reference import bits_of, number_of, split_symbols

__all__ = ["Append", "BeatCompaction", "compact", "keep_flags", "nonzero_symbols", "row"]


def nonzero_symbols(block: bytes, w: int) -> bytes:
    """Software model: the non-zero symbols of ``block`` in order, then zero bytes."""
    kept = [bit for s in split_symbols(block, w) if s for bit in bits_of(s, w)]
    return number_of(kept).to_bytes(len(block), "little")


def row(parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> data.StructLayout:
    """Compacted parts: ``data`` (a beat, zero above), ``parts`` (valid ones), ``last`` of block."""
    bits = parameters.block_bits // beats_per_block
    return data.StructLayout(
        {"data": unsigned(bits), "parts": range(bits // parameters.symbol_bits[0] + 1), "last": 1}
    )


def keep_flags(beat: Value, width: Value, parameters: Parameters) -> Value:
    """Bit per part of ``beat``: the symbol that the part belongs to is not zero.

    ``width`` is an index into ``parameters.symbol_bits``.
    """
    narrow = parameters.symbol_bits[0]
    flags = parts = [beat[k : k + narrow].any() for k in range(0, len(beat), narrow)]
    for index, w in enumerate(parameters.symbol_bits[1:], start=1):
        group = w // narrow
        wide = [Cat(parts[k : k + group]).any() for k in range(0, len(parts), group)]
        flags = [Mux(width == index, wide[k // group], flag) for k, flag in enumerate(flags)]
    return Cat(flags)


def compact(m: Module, beat: Value, keep: Value) -> tuple[Value, Value]:
    """Combinational: the parts of ``beat`` that ``keep`` marks, moved down, and their number.

    Parts that are not kept must be zero. Each part moves by the number of dropped parts
    below it, lowest bit of that number first: no two parts ever meet.
    """
    count = len(keep)
    levels = count.bit_length() - 1
    # Dropped parts among 0 ... k, by parallel prefix sums.
    sums = [~keep[k] for k in range(count)]
    for level in range(levels):
        after = Signal((level + 2) * count, name=f"dropped_{level}")
        for k, field in enumerate(_split(after, level + 2)):
            below = (k >> level << level) - 1  # last part of the group before
            m.d.comb += field.eq(sums[k] + sums[below] if k >> level & 1 else sums[k])
        sums = _split(after, level + 2)
    # The distance of a part travels with it; a dropped part, all zero, may stay.
    items = [
        Cat(part, Mux(keep[k], sums[k][:levels], 0))
        for k, part in enumerate(_split(beat, len(beat) // count))
    ]
    size = len(items[0])
    for level in range(levels):
        step = 1 << level
        after = Signal(count * size, name=f"moved_{level}")
        moves = [item[size - levels + level] for item in items]
        for k, field in enumerate(_split(after, size)):
            value = items[k] & ~moves[k].replicate(size)
            if k + step < count:
                value |= items[k + step] & moves[k + step].replicate(size)
            m.d.comb += field.eq(value)
        items = _split(after, size)
    return Cat(item[: size - levels] for item in items), count - sums[-1]


def _split(value: Value, size: int) -> list[Value]:
    return [value[k : k + size] for k in range(0, len(value), size)]


class BeatCompaction(wiring.Component):
    """Compacts each beat on its own: its non-zero symbols move to the low end.

    One beat a cycle, latency 1 cycle.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    beats : In(stream of {data, width, last})
        ``width`` indexes ``parameters.symbol_bits``; ``last`` beat of its block.
    rows : Out(stream of :func:`row`)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._parameters = parameters
        rows = row(parameters, beats_per_block)
        beats = data.StructLayout(
            {
                "data": rows["data"].shape,
                "width": range(max(2, len(parameters.symbol_bits))),
                "last": 1,
            }
        )
        super().__init__(
            {"beats": In(stream.Signature(beats)), "rows": Out(stream.Signature(rows))}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        beat = self.beats.payload
        keep = Signal(len(beat.data) // self._parameters.symbol_bits[0])
        m.d.comb += keep.eq(keep_flags(beat.data, beat.width, self._parameters))
        parts, count = compact(m, beat.data, keep)
        m.d.comb += self.beats.ready.eq(self.rows.ready | ~self.rows.valid)
        with m.If(self.beats.ready):
            m.d.sync += self.rows.valid.eq(self.beats.valid)
        with m.If(self.beats.ready & self.beats.valid):
            m.d.sync += [
                self.rows.payload.data.eq(parts),
                self.rows.payload.parts.eq(count),
                self.rows.payload.last.eq(beat.last),
            ]
        return m


class Append(wiring.Component):
    """Joins the compacted beats of a block into full rows.

    Takes one row a cycle and gives at most one a cycle: full rows, then at the end of
    each block one more with what is left (1 to all parts; none left: ``parts`` = 0), which
    has ``last`` set. A row comes out combinationally with the beat that overfills it, the
    last row of a block in the cycle after the block's last beat at the earliest, together
    with the first beat of the next block: no cycle is lost between blocks.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    beats : In(stream of :func:`row`)
    rows : Out(stream of :func:`row`)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._size = parameters.symbol_bits[0]
        rows = row(parameters, beats_per_block)
        super().__init__({"beats": In(stream.Signature(rows)), "rows": Out(stream.Signature(rows))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        beat, out, size = self.beats.payload, self.rows.payload, self._size
        count = len(beat.data) // size
        held = Signal(len(beat.data))  # zero above the held parts
        parts = Signal(range(count + 1))  # parts held
        done = Signal()  # the held parts are the end of a block
        # The beat rotated upwards by the parts that are held.
        offset = Signal(range(count))
        total = Signal(range(2 * count + 1))
        m.d.comb += [
            offset.eq(Mux(done, 0, parts)),
            total.eq(beat.parts + Mux(done, 0, parts)),
        ]
        rotated = beat.data
        for level in range(len(offset)):
            after = Signal(len(beat.data), name=f"rotated_{level}")
            m.d.comb += after.eq(Mux(offset[level], rotated.rotate_left(size << level), rotated))
            rotated = after
        below = Cat((k < parts).replicate(size) for k in range(count))  # parts that are held
        merged = Signal(len(beat.data))
        m.d.comb += merged.eq(held | (rotated & ~below))
        # A full row leaves when more than a row is there, the end of a block by itself.
        full = ~done & (total > count)
        send = Signal()
        m.d.comb += [
            send.eq(done | full & self.beats.valid),
            self.rows.valid.eq(send),
            out.data.eq(Mux(done, held, merged)),
            out.parts.eq(Mux(done, parts, count)),
            out.last.eq(done),
            self.beats.ready.eq(self.rows.ready | ~send),
        ]
        with m.If(done & self.rows.ready):
            m.d.sync += [held.eq(0), parts.eq(0), done.eq(0)]
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += [
                held.eq(Mux(full, rotated & below, Mux(done, beat.data, merged))),
                parts.eq(Mux(full, total - count, total)),
                done.eq(beat.last),
            ]
        return m
