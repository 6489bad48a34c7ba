"""Components as instances of Verilog modules that are exported on their own."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib.wiring import In

__all__ = ["add"]


def add(m: Module, component: Any, name: str, module: str = "") -> Any:
    """Add ``component`` as the submodule ``name`` of ``m``; its ports, to connect them.

    With ``module`` it is an instance of the Verilog module of that name, which must have been
    exported from the same component.
    """
    if not module:
        m.submodules[name] = component
        return component
    ports = component.signature.create()
    pins: dict[str, Any] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
    for path, member, value in component.signature.flatten(ports):
        side = "i" if member.flow == In else "o"
        pins[f"{side}_{'__'.join(map(str, path))}"] = Value.cast(value)
    m.submodules[name] = Instance(module, **pins)
    return ports
