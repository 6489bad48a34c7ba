"""Plane coder of pass 2: from the classes of planes to the code string.

A slot brings the classes of its planes, and in slot 0 that of DBX's extra plane before
them. A run of zero planes is written where it ends, so it needs no look-ahead but the
class that follows the slot; at most one run of a slot began before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry
from planezip.hdl.summary import PlaneClass
from planezip.hdl.wires import wire, wires
from planezip.model.format import DEFAULT, Parameters, PlaneCode, Tag, log2_ceil
from planezip.model.reference import bits_of, number_of

__all__ = ["CodePacker", "PlaneCoder", "code_string", "codes", "packed_codes"]


def code_string(classes: Sequence[PlaneCode], run_bits: int) -> list[int]:
    """Software model: code string of a block's planes (runs as single ZEROs), first bit first."""
    bits: list[int] = []
    k = 0
    while k < len(classes):
        run = 1
        while classes[k] == PlaneCode.ZERO and classes[k + run : k + run + 1] == [PlaneCode.ZERO]:
            run += 1
        bits += bits_of(*(PlaneCode.ZERO_RUN if run > 1 else classes[k]).prefix)
        if run > 1:
            bits += bits_of(len(classes) - k - run, run_bits)
        k += run
    return bits


def packed_codes(pieces: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Software model of :class:`CodePacker`: codes ``(bits, length)`` one behind the other."""
    bits = [bit for value, length in pieces for bit in bits_of(value, length)]
    return number_of(bits), len(bits)


def codes(geometry: Geometry) -> data.ArrayLayout:
    """Codes of a slot, that of the extra plane first: ``bits`` and ``length`` (0: none)."""
    p = geometry.parameters
    most = max([5, *(2 + p.run_bits(tag, w) for tag in p.encodings for w in p.symbol_bits)])
    code = data.StructLayout({"bits": unsigned(most), "length": range(most + 1)})
    return data.ArrayLayout(code, geometry.units + 1)


class PlaneCoder(wiring.Component):
    """Combinational.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    tag, width : In
        Of the block.
    extra, planes : In(PlaneClass)
        Class of the extra plane and of the slot's planes, top plane first.
    has_extra : In(1)
        This is slot 0 of a DBX block.
    next_zero : In(1)
        The plane after this slot exists and is zero.
    slot : In
        Number of the slot in its block.
    run_in : In(1), run_out : Out(1)
        The plane before the slot is zero; the same for the next one.
    codes : Out
        See :func:`codes`.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        super().__init__(
            {
                "tag": In(3),
                "width": In(range(max(2, len(parameters.symbol_bits)))),
                "extra": In(PlaneClass),
                "planes": In(data.ArrayLayout(PlaneClass, g.units)),
                "has_extra": In(1),
                "next_zero": In(1),
                "slot": In(range(beats_per_block)),
                "run_in": In(1),
                "run_out": Out(1),
                "codes": Out(codes(g)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g, p = self._geometry, self._geometry.parameters
        classes = [self.extra.as_value(), *(self.planes[k].as_value() for k in range(g.units))]
        is_zero = wires(m, [c == PlaneClass.ZERO.value for c in classes], "is_zero")
        run_in = wire(m, Mux(self.has_extra, is_zero[0], self.run_in), "run")
        run_out: Value = Const(0)
        run_length: Value = Const(0)
        for index, w in enumerate(p.symbol_bits):
            for tag in sorted(p.encodings & {Tag.DBX, Tag.BX, Tag.ZBX}):
                here = (self.width == index) & (self.tag == tag)
                run_length = Mux(here, 2 + p.run_bits(tag, w), run_length)
        ends = [is_zero[0] & ~is_zero[1] & self.has_extra]
        exists: list[Value] = [self.has_extra]
        for k in range(1, g.units + 1):
            following = is_zero[k + 1] if k < g.units else self.next_zero
            exist: Value = Const(1)
            for index, w in enumerate(p.symbol_bits):
                if k == g.planes(w):
                    following = Mux(self.width == index, self.next_zero, following)
                if k > g.planes(w):
                    exist = Mux(self.width == index, 0, exist)
            exists.append(exist)
            ends.append(is_zero[k] & ~following & exist)
        ends, exists = wires(m, ends, "ends"), wires(m, exists, "exists")
        run_length = wire(m, run_length, "run_length")
        fields = [Const(0), *(self._number(k) for k in range(1, g.units + 1))]
        singles = [Const(1), ~run_in, *(~is_zero[k - 1] for k in range(2, g.units + 1))]
        for k, code in enumerate(self.codes):
            prefix = Mux(
                singles[k], PlaneCode.ZERO.prefix[0], PlaneCode.ZERO_RUN.prefix[0] | fields[k] << 2
            )
            length = Mux(singles[k], PlaneCode.ZERO.prefix[1], run_length)
            five, low = classes[k][2], classes[k][:2]
            m.d.comb += [
                code.bits.eq(Mux(is_zero[k], prefix, Mux(five, low << 3, 1))),
                code.length.eq(
                    Mux(is_zero[k], Mux(ends[k], length, 0), Mux(exists[k], Mux(five, 5, 1), 0))
                ),
            ]
            with m.If(code.length == 0):
                m.d.comb += code.bits.eq(0)
        for index, w in enumerate(p.symbol_bits):
            run_out = Mux(self.width == index, is_zero[g.planes(w)], run_out)
        m.d.comb += self.run_out.eq(run_out)
        return m

    def _number(self, k: int) -> Value:
        """Number of the slot's plane ``k`` (counted from 1), from the lowest plane of the block."""
        g = self._geometry
        number: Value = Const(0)
        for index, w in enumerate(g.parameters.symbol_bits):
            size = g.planes(w)
            if k <= size:
                below = Cat(Const(size - k, log2_ceil(size)), ~self.slot)
                number = Mux(self.width == index, below, number)
        return number


class CodePacker(wiring.Component):
    """Combinational: the codes of a slot one behind the other, by a tree of shifters.

    Attributes
    ----------
    codes : In
        See :func:`codes`; the bits of a code of length 0 are zero.
    bits, length : Out
        The string, zero above ``length``.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        self._most = codes(g).elem_shape["bits"].width
        super().__init__(
            {
                "codes": In(codes(g)),
                "bits": Out(self._limit(g.units + 1)),
                "length": Out(range(self._limit(g.units + 1) + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        parts = [(code.bits, code.length, 1) for code in self.codes]
        planes = parts[1:]
        while len(planes) > 1:
            planes = [self._join(m, a, b) for a, b in zip(planes[::2], planes[1::2], strict=True)]
        bits, length, _ = self._join(m, parts[0], planes[0])
        m.d.comb += [self.bits.eq(bits), self.length.eq(length)]
        return m

    def _limit(self, count: int) -> int:
        """Bits of ``count`` codes; next to a run code comes another one of 5 bits at most."""
        return self._most + 5 * (count - 1)

    def _join(
        self, m: Module, low: tuple[Value, Value, int], high: tuple[Value, Value, int]
    ) -> tuple[Value, Value, int]:
        count = low[2] + high[2]
        bits = wire(m, (low[0] | high[0] << low[1])[: self._limit(count)], "bits")
        length = wire(m, (low[1] + high[1])[: self._limit(count).bit_length()], "length")
        return bits, length, count
