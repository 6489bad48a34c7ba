"""Payload values: integers on the port, named fields in the bench.

A stream port of a component becomes ``name__valid``, ``name__ready`` and one packed
vector ``name__payload`` in Verilog, whatever the layout of the payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Const, Shape, unsigned
from amaranth.lib import data

__all__ = ["Fields", "fields_at", "pack", "unpack"]

Fields = int | Mapping[str, Any]


def pack(layout: Any, value: Any) -> int:
    """``value`` as the bits of ``layout`` (a data layout, a shape, or None for plain bits).

    Structs take mappings (a field left out is zero), arrays sequences, enums members
    or numbers; everything takes an integer, as the bits.
    """
    if isinstance(layout, data.ArrayLayout) and not isinstance(value, int):
        width = Shape.cast(layout.elem_shape).width
        return sum(pack(layout.elem_shape, v) << (k * width) for k, v in enumerate(value))
    if isinstance(layout, data.Layout) and isinstance(value, Mapping):
        bits = 0
        for name, part in value.items():
            field = layout[name]
            bits |= pack(field.shape, part) << field.offset
        return bits
    shape = Shape.cast(layout) if layout is not None else None
    number = int(value.value) if hasattr(value, "value") else int(value)
    if shape is None:
        return number
    if not -(1 << shape.width) < number < 1 << shape.width:
        raise ValueError(f"value must fit in {shape.width} bits, not {value!r}")
    return number & ((1 << shape.width) - 1)


def unpack(layout: Any, bits: int) -> Any:
    """The fields of ``bits``: dicts, lists, enum members and integers."""
    if isinstance(layout, data.ArrayLayout):
        return [unpack(layout.elem_shape, _cut(bits, field)) for _, field in layout]
    if isinstance(layout, data.Layout):
        return {name: unpack(field.shape, _cut(bits, field)) for name, field in layout}
    shape = Shape.cast(layout) if layout is not None else unsigned(max(bits.bit_length(), 1))
    value = Const(bits, unsigned(shape.width)).value
    if shape.signed and value >> (shape.width - 1):
        value -= 1 << shape.width
    if isinstance(layout, type):
        return layout(value)
    return value


def fields_at(layout: Any, bit: int) -> str:
    """Name of the field that holds ``bit`` of a payload, with the bit inside it."""
    name = ""
    while isinstance(layout, data.Layout):
        for key, field in layout:
            if field.offset <= bit < field.offset + Shape.cast(field.shape).width:
                name += f"[{key}]" if isinstance(key, int) else f".{key}"
                layout, bit = field.shape, bit - field.offset
                break
        else:
            break
    return f"{name or 'payload'} bit {bit}".removeprefix(".")


def _cut(bits: int, field: data.Field) -> int:
    return bits >> field.offset & ((1 << Shape.cast(field.shape).width) - 1)
