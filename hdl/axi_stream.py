"""AXI4-Stream sides of the engine's streams: tkeep for the number of bytes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

__all__ = ["axi_sink", "axi_source", "bytes_of_keep", "connect_input", "connect_output"]


def bytes_of_keep(keep: int, size: int) -> int:
    """Software model: bytes of a beat, 0 where ``keep`` has gaps or does not begin at byte 0."""
    count = keep.bit_count()
    return count if keep == (1 << count) - 1 and keep < 1 << size else 0


def axi_sink(name: str, size: int) -> dict[str, Any]:
    """Members of an AXI4-Stream input of ``size`` bytes."""
    return {
        f"{name}_tdata": In(8 * size),
        f"{name}_tkeep": In(size),
        f"{name}_tlast": In(1),
        f"{name}_tvalid": In(1),
        f"{name}_tready": Out(1),
    }


def axi_source(name: str, size: int) -> dict[str, Any]:
    """Members of an AXI4-Stream output of ``size`` bytes."""
    return {
        f"{name}_tdata": Out(8 * size),
        f"{name}_tkeep": Out(size),
        f"{name}_tlast": Out(1),
        f"{name}_tvalid": Out(1),
        f"{name}_tready": In(1),
    }


def _count(m: Module, keep: Value) -> Value:
    """Number of ones, 0 if they are not the lowest bits."""
    size = len(keep)
    above = Cat(keep[1:], 0)
    edges = keep & ~above  # a one below a zero
    rises = above & ~keep  # a zero below a one
    number = Signal(range(size + 1), name="keep_bytes")
    bits = []
    for bit in range(len(number)):
        ones = [edges[k] for k in range(size) if k + 1 >> bit & 1]
        bits.append(Cat(ones).any())
    m.d.comb += number.eq(Mux(rises.any(), 0, Cat(bits)))
    return number


def connect_input(m: Module, component: Any, name: str, stream: Any) -> None:
    """AXI4-Stream input ``name`` of ``component`` to an engine's input of beats."""
    m.d.comb += [
        stream.payload.data.eq(getattr(component, f"{name}_tdata")),
        stream.payload.bytes.eq(_count(m, getattr(component, f"{name}_tkeep"))),
        stream.payload.last.eq(getattr(component, f"{name}_tlast")),
        stream.valid.eq(getattr(component, f"{name}_tvalid")),
        getattr(component, f"{name}_tready").eq(stream.ready),
    ]


def connect_output(m: Module, component: Any, name: str, stream: Any) -> None:
    """An engine's output of beats to AXI4-Stream output ``name`` of ``component``."""
    size = len(stream.payload.data) // 8
    m.d.comb += [
        getattr(component, f"{name}_tdata").eq(stream.payload.data),
        getattr(component, f"{name}_tkeep").eq(Cat(stream.payload.bytes > k for k in range(size))),
        getattr(component, f"{name}_tlast").eq(stream.payload.last),
        getattr(component, f"{name}_tvalid").eq(stream.valid),
        stream.ready.eq(getattr(component, f"{name}_tready")),
    ]
