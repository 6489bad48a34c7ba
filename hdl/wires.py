"""Intermediate values of combinational logic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned

__all__ = ["any_of", "both", "parts_of", "registers", "rotated", "shifted", "wire", "wires"]


def wire(m: Module, value: Value, name: str = "wire") -> Signal:
    """A signal that has ``value``; deep expressions that are used twice need one.

    (Amaranth walks an expression anew for every use: deep ones take exponential time.)
    """
    signal = Signal(unsigned(len(value)), name=name)
    m.d.comb += signal.eq(value)
    return signal


def wires(m: Module, values: Sequence[Value], name: str = "wires") -> list[Value]:
    """Values as slices of a single signal."""
    whole = wire(m, Cat(values), name)
    result, at = [], 0
    for value in values:
        result.append(whole[at : at + len(value)])
        at += len(value)
    return result


def parts_of(value: Value, size: int) -> list[Value]:
    """Parts of ``size`` bits, lowest first."""
    return [value[k : k + size] for k in range(0, len(value), size)]


def any_of(values: Sequence[Value]) -> Value:
    """OR of all values."""
    result = values[0]
    for value in values[1:]:
        result = result | value
    return result


def registers(
    m: Module, values: Mapping[Any, Any], name: str, when: Value | None = None
) -> dict[Any, Signal]:
    """``values`` one cycle later; with ``when`` those of the last such cycle.

    Only a value called ``valid`` is reset.
    """
    result: dict[Any, Signal] = {}
    for key, value in values.items():
        value = Value.cast(value)
        result[key] = signal = Signal(
            unsigned(len(value)), name=f"{name}_{key}", reset_less=key != "valid"
        )
        if when is None:
            m.d.sync += signal.eq(value)
        else:
            with m.If(when):
                m.d.sync += signal.eq(value)
    return result


def rotated(m: Module, value: Value, places: Value) -> Value:
    """``value`` rotated up by ``places`` modulo its length, a power of two."""
    for level in range(len(value).bit_length() - 1):
        value = wire(m, Mux(places[level], value.rotate_left(1 << level), value), "rotated")
    return value


def both(places: Value) -> Value:
    """Bits and their inverses, for two registers: AND-OR is smaller than a multiplexer."""
    return Cat(places, ~places)


def shifted(m: Module, value: Value, places: Value, size: int, low: int = 0) -> Value:
    """``size`` bits of ``value`` from the bit on that ``places`` tells: :func:`both` of the levels
    from ``low`` on; the bits that the levels below may need are kept."""
    count = len(places) // 2
    need = size + (1 << low + count) - 1
    value = wire(m, Cat(value, Const(0, max(0, need - len(value)))), "shifted")[:need]
    for k in reversed(range(count)):
        step = 1 << low + k
        keep = size + step - 1
        moves, stays = places[k].replicate(keep), places[count + k].replicate(keep)
        value = wire(m, (value[step : step + keep] & moves) | (value[:keep] & stays), "shifted")
    return value
