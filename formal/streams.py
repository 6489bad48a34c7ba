"""Rules of every stream: what is offered holds until it is taken, and is offered unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Module, Signal, Value
from amaranth.lib import wiring

from formal.check import Check

__all__ = [
    "Port",
    "Setup",
    "driven",
    "holds",
    "inputs",
    "offered",
    "outputs",
    "separate",
    "stable",
]

Setup = Callable[[Check], None]
# A component with a clock of its own is given that of the check, and reset only at the start.
_CLOCKS = {"aclk": ClockSignal, "aresetn": lambda: Const(1)}


@dataclass(frozen=True)
class Port:
    """A stream, or a channel of AXI: pins whose names end in ``valid`` and ``ready``."""

    valid: Value
    ready: Value
    parts: tuple[Value, ...]

    @property
    def payload(self) -> Value:
        return Cat(self.parts)


def ports(component: Any, flow: wiring.Flow) -> Iterator[tuple[str, Port]]:
    """Name and pins of each stream port of a direction."""
    pins = [
        (path[:-1], str(path[-1]), member.flow, Value.cast(value))
        for path, member, value in component.signature.flatten(component)
    ]
    for folder, name, way, valid in pins:
        if way != flow or not name.endswith("valid"):
            continue
        start = name.removesuffix("valid")
        others = {
            other.removeprefix(start): (pin_way, pin)
            for path, other, pin_way, pin in pins
            if path == folder and other.startswith(start)
        }
        back, ready = others.pop("ready", (flow, valid))
        if back == flow:
            continue  # no ready: no stream
        parts = tuple(pin for part, (pin_way, pin) in others.items()
                      if part != "valid" and pin_way == flow)  # fmt: skip
        whole = "_".join(map(str, (*folder, start.removesuffix("_t")))).removesuffix("_")
        yield whole, Port(valid, ready, parts)


def outputs(component: Any) -> list[tuple[str, Port]]:
    """Output streams."""
    return list(ports(component, wiring.Out))


def inputs(component: Any) -> list[tuple[str, Port]]:
    """Input streams."""
    return list(ports(component, wiring.In))


def driven(
    make: Callable[[], Any], setup: Setup | None = None, granted: bool = False
) -> tuple[Check, dict[str, Value]]:
    """A component with free inputs; its input streams keep the rules.

    ``setup`` adds what else its surroundings keep. ``granted``: the component sees ready = 1.
    Returns the check and the free ``ready`` of each output.
    """
    dut = make()
    check = Check(dut)
    readies: dict[str, Value] = {}
    for name, port in inputs(dut):
        valid = check.feed(port.valid, f"{name}_valid")
        payload = check.feed(port.payload, f"{name}_payload")
        check.require(holds(check.m, valid, port.ready, payload))
    for name, port in outputs(dut):
        readies[name] = check.free(1, f"{name}_ready")
        check.m.d.comb += port.ready.eq(1 if granted else readies[name])
    streams = [port for _, port in (*inputs(dut), *outputs(dut))]
    done = {id(pin) for port in streams for pin in (port.valid, port.ready, *port.parts)}
    for path, member, value in dut.signature.flatten(dut):
        name = "_".join(map(str, path))
        if name in _CLOCKS:
            check.m.d.comb += value.eq(_CLOCKS[name]())
        elif member.flow == wiring.In and id(Value.cast(value)) not in done:
            check.feed(value, name)
    if setup:
        setup(check)
    return check, readies


def holds(m: Module, valid: Value, ready: Value, payload: Value) -> Value:
    """What was offered in the cycle before and not taken is still there."""
    waits, before = Signal(), Signal(len(payload))
    m.d.sync += [waits.eq(valid & ~ready), before.eq(payload)]
    return ~waits | (valid & (payload == before))


def stable(
    make: Callable[[], Any], port: str, setup: Setup | None = None, *, broken: bool = False
) -> Check:
    """Valid and payload hold until ready. ``broken``: the component takes ready for granted."""
    check, readies = driven(make, setup, broken)
    output = dict(outputs(check.dut))[port]
    waits, before = Signal(), Signal(len(output.payload))
    check.m.d.sync += [waits.eq(output.valid & ~readies[port]), before.eq(output.payload)]
    check.always(~waits | output.valid)
    check.equal(output.payload, before, waits)
    return check


def offered(
    make: Callable[[], Any], port: str, setup: Setup | None = None, *, broken: bool = False
) -> Check:
    """Valid rises though ready is never given. ``broken``: valid is gated with ready."""
    check, readies = driven(make, setup)
    check.require(~readies[port])
    valid = dict(outputs(check.dut))[port].valid
    check.reach(valid & readies[port] if broken else valid)
    return check


def separate(make: Callable[[], Any], *, broken: bool = False) -> Check:
    """For :mod:`formal.netlist`: each valid as a wire. ``broken``: gated with its ready."""
    check, readies = driven(make)
    for name, ready in readies.items():
        valid = dict(outputs(check.dut))[name].valid
        check.show(valid & ready if broken else valid, f"{name}_offer")
    return check
