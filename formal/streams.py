"""Rules of every stream: what is offered holds until it is taken, and is offered unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from amaranth.hdl import Signal, Value
from amaranth.lib import stream, wiring

from formal.check import Check

__all__ = ["Setup", "inputs", "offered", "outputs", "separate", "stable"]


Setup = Callable[[Check], None]


def ports(component: Any, flow: wiring.Flow) -> Iterator[tuple[str, Any]]:
    """Name and interface of each stream port of a direction."""
    for name, member in component.signature.members.items():
        is_stream = member.is_signature and isinstance(member.signature, stream.Signature)
        if not is_stream or member.flow != flow:
            continue
        port = getattr(component, name)
        if member.dimensions:  # an array of streams
            yield from ((f"{name}_{k}", each) for k, each in enumerate(port))
        else:
            yield name, port


def outputs(component: Any) -> list[tuple[str, Any]]:
    """Output streams."""
    return list(ports(component, wiring.Out))


def inputs(component: Any) -> list[tuple[str, Any]]:
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
    names = {name for name, _ in (*inputs(dut), *outputs(dut))}
    readies: dict[str, Value] = {}
    for name, port in inputs(dut):
        valid = check.feed(port.valid, f"{name}_valid")
        payload = Value.cast(check.feed(port.payload, f"{name}_payload"))
        waits = Signal(name=f"{name}_waits")
        before = Signal(len(payload), name=f"{name}_before")
        check.m.d.sync += [waits.eq(valid & ~port.ready), before.eq(payload)]
        check.require(~waits | (valid & (payload == before)))
    for name, port in outputs(dut):
        readies[name] = check.free(1, f"{name}_ready")
        check.m.d.comb += port.ready.eq(1 if granted else readies[name])
    for path, member, value in dut.signature.flatten(dut):
        name = "_".join(map(str, path))
        of_stream = name.rpartition("_")[0] in names
        if not of_stream and member.flow == wiring.In:
            check.feed(value, name)
    if setup:
        setup(check)
    return check, readies


def stable(
    make: Callable[[], Any], port: str, setup: Setup | None = None, *, broken: bool = False
) -> Check:
    """Valid and payload hold until ready. ``broken``: the component takes ready for granted."""
    check, readies = driven(make, setup, broken)
    output = dict(outputs(check.dut))[port]
    payload = Value.cast(output.payload)
    waits, before = Signal(), Signal(len(payload))
    check.m.d.sync += [waits.eq(output.valid & ~readies[port]), before.eq(payload)]
    check.always(~waits | output.valid)
    check.equal(payload, before, waits)
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
