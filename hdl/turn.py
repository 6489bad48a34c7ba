"""Bytes of a beat turned to its beginning, in two stages."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value

from planezip.hdl.wires import wire

__all__ = ["turned"]


def turned(
    m: Module, data: Value, amount: Value, flags: Value, valid: Value, moves: Value
) -> tuple[Value, Value, Value]:
    """``data``, ``flags`` and ``valid`` two cycles later; the data begin with byte ``amount``, and
    the bytes before that one come last.

    Parameters
    ----------
    data : Value
        2**len(amount) bytes.
    amount : Value
        In bytes; the low half of its bits counts in the first stage, the rest in the second.
    flags : Value
        What goes along.
    moves : Value
        Both stages take their next values.
    """
    size, bits = len(data), len(amount)
    split = bits // 2
    for name, levels in (("near", range(split)), ("far", range(split, bits))):
        data = wire(m, data, f"{name}_in")
        for level in levels:
            data = wire(m, Mux(amount[level], data.rotate_right(8 << level), data), name)
        stage = Signal(size, name=f"{name}_data", reset_less=True)
        place, kept = Signal(bits, name=f"{name}_place"), Signal.like(flags, name=f"{name}_k")
        there = Signal(name=f"{name}_valid")
        with m.If(moves):
            m.d.sync += [stage.eq(data), place.eq(amount), kept.eq(flags), there.eq(valid)]
        data, amount, flags, valid = stage, place, kept, there
    return data, flags, valid
