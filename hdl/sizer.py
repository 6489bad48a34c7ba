"""Sizer: the smallest encoding of each block, its size and the classes of its planes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.compaction import keep_flags
from planezip.hdl.comparator import Comparator
from planezip.hdl.delta import Delta, by_width, first_symbol, strobe, symbol_beat
from planezip.hdl.plane_cost import PlaneCost, count
from planezip.hdl.plane_status import PlaneStatus, block_classes, classes
from planezip.hdl.summary import PlaneClass, block_summary
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag
from planezip.model.reference import select

__all__ = ["MINIMUM_CYCLES", "Sizer", "block_result", "sized_block"]

MINIMUM_CYCLES = 4  # between the ends of two blocks: classes are used until the choice is made


def block_result(parameters: Parameters = DEFAULT, meta: Any = 0) -> data.StructLayout:
    """Result of a block: its summary, and ``meta`` as it came in."""
    return data.StructLayout(
        {
            "summary": block_summary(parameters),
            "meta": unsigned(0) if meta == 0 else meta,
        }
    )


def sized_block(
    symbols: Sequence[int], w: int, parameters: Parameters = DEFAULT
) -> tuple[Tag, int, int, list[PlaneClass]]:
    """Software model: winner, its bits, non-zero symbols, classes of its planes (top first)."""
    best = select(symbols, w, parameters)
    planes = block_classes(best.tag, symbols, w) if best.tag in (Tag.DBX, Tag.BX, Tag.ZBX) else []
    return best.tag, best.bits, sum(s != 0 for s in symbols), planes


class Sizer(wiring.Component):
    """Sizes all encodings of each block and chooses one.

    A block of ``beats_per_block`` beats every max(beats_per_block, 4) cycles; ``results``
    is valid 7 cycles after the cycle in which the block's last beat was taken (1: beat
    register; 2: planes of BX and ZBX, deltas; 3: their classes, planes of DBX; 4: counts,
    classes of DBX; 5: products, counts of DBX; 6: sizes; 7: choice).

    Parameters
    ----------
    parameters : Parameters
        Encodings that are left out have no hardware.
    beats_per_block : int
    meta : shape
        Of what goes with a block.

    Attributes
    ----------
    beats : In(stream of {beat: :func:`symbol_beat`, meta})
        ``meta`` is taken with the last beat of a block. ``ready`` does not depend on
        ``valid``; it stays high if a block has four beats or more.
    results : Out(strobe of :func:`block_result`)
    """

    def __init__(
        self, parameters: Parameters = DEFAULT, beats_per_block: int = 4, meta: Any = 0
    ) -> None:
        self._parameters = parameters
        self._beats_per_block = beats_per_block
        beats = data.StructLayout(
            {
                "beat": symbol_beat(parameters, beats_per_block),
                "meta": unsigned(0) if meta == 0 else meta,
            }
        )
        super().__init__(
            {
                "beats": In(stream.Signature(beats)),
                "results": Out(strobe(block_result(parameters, meta))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p = self._parameters
        taken = Signal()
        m.d.comb += taken.eq(self.beats.valid & self.beats.ready)
        self._pace(m, taken)

        # 1: beat register.
        valid = Signal()
        item = Signal.like(self.beats.payload, reset_less=True)
        beat = item.beat
        m.d.sync += [valid.eq(taken), item.eq(self.beats.payload)]
        keep = Signal(len(beat.data) // p.symbol_bits[0])
        m.d.comb += keep.eq(keep_flags(beat.data, beat.width, p))

        # 2: non-zero parts; what goes with the block.
        total_parts = p.block_bits // p.symbol_bits[0]
        parts = Signal(range(total_parts + 1), reset_less=True)
        with m.If(valid):
            m.d.sync += parts.eq(Mux(beat.first, 0, parts) + count(m, list(keep), "kept"))
        strobes = Signal(6)  # strobes[k]: the end of a block is in register k + 1
        width = Signal.like(beat.width, reset_less=True)
        meta = Signal(Shape.cast(self.beats.payload.shape()["meta"].shape), reset_less=True)
        m.d.comb += strobes[0].eq(valid & beat.last)
        m.d.sync += [
            strobes[1:].eq(strobes[:-1]),
            width.eq(beat.width),
            meta.eq(Value.cast(item.meta)),
        ]

        # 3: held until the choice is made.
        held_parts, held_width = Signal.like(parts), Signal.like(width)
        held_meta = Signal.like(meta)
        with m.If(strobes[1]):
            m.d.sync += [held_parts.eq(parts), held_width.eq(width), held_meta.eq(meta)]
        shifts = [(w // p.symbol_bits[0]).bit_length() - 1 for w in p.symbol_bits]
        nonzero = Signal(range(p.symbols_per_block + 1))
        m.d.comb += nonzero.eq(by_width(held_width, [held_parts >> shift for shift in shifts]))

        # 2 to 5: classes and sizes; 6: the choice.
        m.submodules.comparator = comparator = Comparator(p)
        results: dict[Tag, Value] = {}
        for tags in (p.encodings & {Tag.DBX}, p.encodings & {Tag.BX, Tag.ZBX}):
            if not tags:
                continue
            name = "deltas" if Tag.DBX in tags else "symbols"
            m.submodules[f"status_{name}"] = status = PlaneStatus(p, self._beats_per_block, tags)
            m.submodules[f"cost_{name}"] = cost = PlaneCost(p, tags)
            if Tag.DBX in tags:
                self._deltas(m, valid, beat, status)
            else:
                m.d.comb += [
                    status.beats.valid.eq(valid),
                    status.beats.payload.data.eq(beat.data),
                    status.beats.payload.keep.eq(keep),
                    status.beats.payload.width.eq(beat.width),
                    status.beats.payload.first.eq(beat.first),
                    status.beats.payload.last.eq(beat.last),
                ]
            m.d.comb += [
                cost.classes.eq(status.results),
                cost.nonzero.eq(nonzero),
                cost.width.eq(held_width),
            ]
            for tag in tags:
                results[tag] = status.results[tag.name]
                m.d.comb += comparator.sizes[tag.name].eq(cost.sizes[tag.name])
        if Tag.ZVC in p.encodings:
            fixed = by_width(held_width, [TAG_BITS + p.symbols(w) for w in p.symbol_bits])
            zvc = Signal.like(comparator.sizes.ZVC, reset_less=True)
            m.d.sync += zvc.eq(fixed + held_parts * p.symbol_bits[0])
            m.d.comb += comparator.sizes.ZVC.eq(zvc)

        # 7: the result. The classes of DBX come a cycle later than the others and still hold.
        chosen = Signal(classes(p), reset_less=True)
        out = Signal.like(self.results.payload, reset_less=True)
        planes: Value = chosen
        if Tag.DBX in results:
            planes = Mux(out.summary.tag == Tag.DBX, results[Tag.DBX], chosen)
        if {Tag.BX, Tag.ZBX} <= results.keys():
            fewer = comparator.sizes.ZBX < comparator.sizes.BX
            m.d.sync += chosen.eq(Mux(fewer, results[Tag.ZBX], results[Tag.BX]))
        elif results.keys() - {Tag.DBX}:
            m.d.sync += chosen.eq(results[max(results)])
        m.d.sync += [
            self.results.valid.eq(strobes[5]),
            out.summary.tag.eq(comparator.tag),
            out.summary.nonzero.eq(nonzero),
            out.summary.bits.eq(comparator.bits),
            Value.cast(out.meta).eq(held_meta),
        ]
        m.d.comb += [
            self.results.payload.eq(out),
            Cat(self.results.payload.summary.extra, self.results.payload.summary.planes).eq(planes),
        ]
        return m

    def _deltas(self, m: Module, valid: Value, beat: Any, status: PlaneStatus) -> None:
        """Deltas of the beats, to the status of DBX."""
        p = self._parameters
        m.submodules.delta = delta = Delta(p, self._beats_per_block)
        made = delta.deltas.payload
        count = len(made.tops)
        absent = first_symbol(made.width, count, p) & made.first.replicate(count)
        m.d.comb += [
            delta.beats.valid.eq(valid),
            delta.beats.payload.eq(beat),
            delta.deltas.ready.eq(1),
            status.beats.valid.eq(delta.deltas.valid),
            status.beats.payload.data.eq(made.data),
            status.beats.payload.tops.eq(made.tops),
            status.beats.payload.keep.eq(~absent),
            status.beats.payload.width.eq(made.width),
            status.beats.payload.first.eq(made.first),
            status.beats.payload.last.eq(made.last),
        ]

    def _pace(self, m: Module, taken: Value) -> None:
        """At least four cycles from the end of a block to the end of the next."""
        pause = max(0, MINIMUM_CYCLES - self._beats_per_block)
        if not pause:
            m.d.comb += self.beats.ready.eq(1)
            return
        wait = Signal(range(pause + 1))
        m.d.comb += self.beats.ready.eq(wait == 0)
        with m.If(taken & self.beats.payload.beat.last):
            m.d.sync += wait.eq(pause)
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
