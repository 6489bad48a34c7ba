"""Which parts of a beat belong to symbols that are not zero (ZVC and ZBX keep only those)."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Value

from planezip.model.format import Parameters

__all__ = ["keep_flags"]


def keep_flags(beat: Value, width: Value, parameters: Parameters) -> Value:
    """Bit per part of ``beat``: the symbol that the part belongs to is not zero.

    A part is as wide as the narrowest symbol; a wider symbol is several neighbouring parts.
    ``width`` is an index into ``parameters.symbol_bits``.
    """
    narrow = parameters.symbol_bits[0]
    flags = parts = [beat[k : k + narrow].any() for k in range(0, len(beat), narrow)]
    for index, w in enumerate(parameters.symbol_bits[1:], start=1):
        group = w // narrow
        wide = [Cat(parts[k : k + group]).any() for k in range(0, len(parts), group)]
        flags = [Mux(width == index, wide[k // group], flag) for k, flag in enumerate(flags)]
    return Cat(flags)
