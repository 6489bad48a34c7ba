"""Bits of a block in an encoding with planes, from the classes of its planes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.comparator import size_bits
from planezip.hdl.delta import by_width, width_shape
from planezip.hdl.plane_status import classes
from planezip.hdl.summary import PlaneClass
from planezip.model.format import DEFAULT, TAG_BITS, Parameters, Tag, log2_ceil

__all__ = ["PlaneCost", "count", "planes_bits"]


def planes_bits(
    tag: Tag, planes: Sequence[PlaneClass], nonzero: int, w: int, parameters: Parameters = DEFAULT
) -> int:
    """Software model: size in bits, tag included, of a block with these classes (top first).

    ``nonzero`` is the number of non-zero symbols of the block.
    """
    symbols = parameters.symbols(w)
    n = {Tag.DBX: symbols - 1, Tag.BX: symbols, Tag.ZBX: nonzero}[tag]
    bits = TAG_BITS + {Tag.DBX: w, Tag.BX: 0, Tag.ZBX: symbols}[tag]
    run = 0
    for plane in [*planes, None]:
        if plane == PlaneClass.ZERO:
            run += 1
            continue
        bits += (0, 3)[run] if run < 2 else 2 + parameters.run_bits(tag, w)
        run = 0
        if plane == PlaneClass.VERBATIM:
            bits += 1 + n
        elif plane is not None:
            bits += 5 + (log2_ceil(n) if plane in (PlaneClass.PAIR, PlaneClass.ONE) else 0)
    return bits


def count(m: Module, flags: Sequence[Value], name: str) -> Value:
    """Number of flags that are set, by full adders column by column: the fewest gates."""
    total: list[Value] = []
    column = list(flags)
    while column:
        carries: list[Value] = []
        while len(column) > 1:
            a, b, c = [*column[:3], Const(0, 1)][:3]
            both = Signal(2, name=f"{name}_{len(total)}_{len(carries)}")
            m.d.comb += both.eq(Cat(a ^ b ^ c, (a & b) | (c & (a | b))))
            column = [*column[3:], both[0]]
            carries.append(both[1])
        total.append(column[0])
        column = carries
    return Cat(total)


class PlaneCost(wiring.Component):
    """Sizes of a block in DBX, or in BX and ZBX, which share the count of zero planes.

    Combinational in its inputs but for pipeline registers: ``sizes`` belong to the inputs
    of 2 (DBX) or 3 cycles before (``latency``).

    Parameters
    ----------
    parameters : Parameters
    encodings : frozenset of Tag
        {DBX}, or BX, ZBX or both.

    Attributes
    ----------
    classes : In(:func:`planezip.hdl.plane_status.classes` by name of the encoding)
    nonzero : In(range of symbols)
    width : In
        Index into ``parameters.symbol_bits``; holds for two cycles.
    sizes : Out(struct of bits by name of the encoding)
    """

    def __init__(
        self,
        parameters: Parameters = DEFAULT,
        encodings: frozenset[Tag] = frozenset({Tag.BX, Tag.ZBX}),
    ) -> None:
        self._parameters = parameters
        self._encodings = sorted(encodings)
        self.latency = 2 if Tag.DBX in encodings else 3
        size = unsigned(size_bits(parameters))
        super().__init__(
            {
                "classes": In(
                    data.StructLayout({tag.name: classes(parameters) for tag in self._encodings})
                ),
                "nonzero": In(range(parameters.symbols_per_block + 1)),
                "width": In(width_shape(parameters)),
                "sizes": Out(data.StructLayout({tag.name: size for tag in self._encodings})),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p = self._parameters

        def register(value: Value, name: str) -> Signal:
            signal = Signal(len(value), name=name, reset_less=True)
            m.d.sync += signal.eq(value)
            return signal

        def counted(flags: Sequence[Value], name: str) -> Signal:
            return register(count(m, flags, f"count_{name}"), name)

        zeros = [bits == PlaneClass.ZERO for bits in self._planes(self._encodings[0])]
        starts = [z if k == 0 else z & ~zeros[k - 1] for k, z in enumerate(zeros)]
        below = [*zeros[1:], Const(0, 1)]
        runs = counted([s & z for s, z in zip(starts, below, strict=True)], "runs")
        singles = counted([s & ~z for s, z in zip(starts, below, strict=True)], "singles")
        some = self._encodings[0]
        zero_bits = 3 * singles + by_width(
            self.width, [(2 + p.run_bits(some, w)) * runs for w in p.symbol_bits]
        )
        for tag in self._encodings:
            planes = self._planes(tag)
            five = counted([bits[2] for bits in planes], f"five_{tag.name}")
            found = counted([bits[2] & bits[0] for bits in planes], f"found_{tag.name}")
            present = [self._present(tag, k) for k in range(len(planes))]
            verbatim = counted(
                [(bits == 0) & there for bits, there in zip(planes, present, strict=True)],
                f"verbatim_{tag.name}",
            )
            fixed = []
            for w in p.symbol_bits:
                n = p.symbols(w)
                fixed.append(TAG_BITS + {Tag.DBX: w, Tag.BX: 0, Tag.ZBX: n}[tag])
            if tag == Tag.ZBX:
                n = self.nonzero
                limits = range(log2_ceil(p.symbols_per_block))
                field: Value = counted([n > (1 << k) for k in limits], "field")
                n1: Value = register(n + 1, "n1")
                positions, payload = field * found, n1 * verbatim
            else:
                less = int(tag == Tag.DBX)
                ns = [p.symbols(w) - less for w in p.symbol_bits]
                positions = by_width(self.width, [log2_ceil(n) * found for n in ns])
                payload = by_width(self.width, [(n + 1) * verbatim for n in ns])
            rest = by_width(self.width, fixed) + zero_bits + 5 * five + positions
            if self.latency == 3:
                rest, payload = (
                    register(rest, f"rest_{tag.name}"),
                    register(payload, f"payload_{tag.name}"),
                )
            size = Signal.like(self.sizes[tag.name], name=f"size_{tag.name}", reset_less=True)
            m.d.sync += size.eq(rest + payload)
            m.d.comb += self.sizes[tag.name].eq(size)
        return m

    def _planes(self, tag: Tag) -> list[Value]:
        """Classes of the planes as bits, top plane first; VERBATIM beyond the last one."""
        planes = [Value.cast(plane) for plane in self.classes[tag.name].planes]
        return [Value.cast(self.classes[tag.name].extra), *planes] if tag == Tag.DBX else planes

    def _present(self, tag: Tag, slot: int) -> Value:
        """Whether the block has a plane at this place."""
        widths = self._parameters.symbol_bits
        inside = [i for i, w in enumerate(widths) if slot < self._parameters.planes(tag, w)]
        if len(inside) == len(widths):
            return Const(1, 1)
        return Cat(self.width == i for i in inside).any()
