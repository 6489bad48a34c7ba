"""Offers: one step of a component gives a value to each of several streams."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Module, Signal, Value

from planezip.hdl.wires import wire

__all__ = ["Offer", "offer"]


@dataclass(frozen=True)
class Offer:
    """A stream's ``valid``, and ``ok``: the step need not wait for this stream."""

    valid: Value
    ok: Value


def offer(m: Module, name: str, want: Value, ready: Value, over: Value) -> Offer:
    """Offer a value as long as ``want``, until it is taken or the step is ``over``.

    Each stream of the step may take its value in a cycle of its own: none waits until another
    one is ready. The step is over when all its offers are ``ok``, and takes one cycle if all of
    them are ready.

    Parameters
    ----------
    want : Value
        The step has a value for this stream; holds until ``over``.
    ready : Value
        Of the stream.
    over : Value
        The last cycle of the step; only while ``want`` and ``ok``.
    """
    taken = Signal(name=f"{name}_taken")
    ok = wire(m, taken | ready, f"{name}_ok")
    m.d.sync += taken.eq(want & ok & ~over)
    return Offer(wire(m, want & ~taken, f"{name}_valid"), ok)
