"""A check: a design under test with its assumptions, assertions and covers, as one module."""

from __future__ import annotations

import re
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import (
    Assert,
    Assume,
    ClockDomain,
    Cover,
    Instance,
    Module,
    Mux,
    Shape,
    Signal,
    Value,
    ValueCastable,
)

__all__ = ["Check"]

TOP, DUT = "top", "dut"


class Check:
    """Builds the module that is exported to SMT.

    Registers begin with their initial values; there is no reset input. Every free signal
    takes any value in every cycle.

    Parameters
    ----------
    dut : Elaboratable, optional
        Becomes the submodule ``dut``: what mutants change.
    """

    def __init__(self, dut: Any = None) -> None:
        self.m = Module()
        self.dut = dut
        self._domain = ClockDomain("sync", reset_less=True)
        self.m.domains += self._domain
        self._ports: list[Signal] = [self._domain.clk]
        if dut is not None:
            self.m.submodules[DUT] = dut

    def free(self, shape: Any, name: str) -> Any:
        """An input of the module."""
        signal = Signal(shape, name=name)
        self._ports.append(signal.as_value() if isinstance(signal, ValueCastable) else signal)
        return signal

    def show(self, value: Value, name: str) -> None:
        """An output of the module."""
        signal = Signal(len(value), name=name)
        self._ports.append(signal)
        self.m.d.comb += signal.eq(value)

    def feed(self, target: Any, name: str) -> Any:
        """Drive an input of the design with a free signal; returns the signal."""
        source = self.free(target.shape(), name)
        self.m.d.comb += target.eq(source)
        return source

    def constant(self, shape: Any, name: str) -> Any:
        """A free value that stays the same in all cycles."""
        signal = Signal(shape, name=name)
        width = Shape.cast(shape).width
        self.m.submodules[f"any_{name}"] = Instance("$anyconst", p_WIDTH=width, o_Y=signal)
        return signal

    def always(self, condition: Value) -> None:
        """Assert: one obligation."""
        self.m.d.comb += Assert(condition)

    def equal(self, a: Any, b: Any, when: Value | int = 1) -> None:
        """Assert that two values of the same width are equal, at least ``when`` it matters."""
        a, b = Value.cast(a), Value.cast(b)
        width = max(len(a), len(b))
        difference = Signal(width)
        self.m.d.comb += difference.eq(Mux(when, a ^ b, 0))
        self.always(~difference.any())

    def require(self, condition: Value) -> None:
        """Assume."""
        self.m.d.comb += Assume(condition)

    def reach(self, condition: Value) -> None:
        """Cover: the condition must be reachable."""
        self.m.d.comb += Cover(condition)

    def wire(self, value: Value, name: str = "wire") -> Signal:
        """A signal of ``value`` (deep expressions that are used twice need one)."""
        signal = Signal(len(value), name=name)
        self.m.d.comb += signal.eq(value)
        return signal

    def cycle(self, limit: int) -> Signal:
        """Number of the cycle, up to ``limit``."""
        count = Signal(range(limit + 1))
        self.m.d.sync += count.eq(Mux(count == limit, limit, count + 1))
        return count

    def rtlil(self) -> str:
        """The module as RTLIL."""
        text = rtlil.convert(self.m, name=TOP, ports=self._ports, emit_src=False)
        # Amaranth takes them for cells of the user's.
        return re.sub(r"cell \\(?=\$any(const|seq) )", "cell ", text)
