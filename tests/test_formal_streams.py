"""The proofs of streams leave no component out that has one (docs/proof.md)."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from amaranth.hdl import Fragment
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from formal.sizes import BARE, TINY
from formal.stream_properties import COMPONENTS, EXCEPTIONS, WHOLE
from formal.streams import inputs, outputs
from planezip import hdl
from planezip.hdl.axi import AxiEngine
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane

ONLY_A_BASE = {"_Direction"}  # of both engines


def classes() -> set[type]:
    """All components of the hardware."""
    found: set[type] = set()
    for info in pkgutil.iter_modules(hdl.__path__):
        module = import_module(f"{hdl.__name__}.{info.name}")
        found |= {
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and issubclass(value, wiring.Component)
            and value.__module__ == module.__name__
        }
    return found


def below(fragment: Any) -> Iterator[Any]:
    """What a fragment and those below were made from."""
    for part, _, _ in fragment.subfragments:
        yield from part.origins or ()
        yield from below(part)


@cache
def instances() -> dict[type, Any]:
    """One of each component, from the wrapper and from lanes of the least size."""
    found: dict[type, Any] = {}
    for top in (AxiEngine(BARE, 2), CompressorLane(TINY, 2), DecompressorLane(TINY, 2)):
        for part in (top, *below(Fragment.get(top, None))):
            found.setdefault(type(part), part)
    return found


def made(make: Any) -> type:
    """Class of the hardware that is proven; a stand-in for a part may be derived from it."""
    component = make()
    component._MustUse__used = True
    return next(kind for kind in type(component).__mro__ if kind in classes())


def test_every_component_is_looked_at() -> None:
    assert {kind.__name__ for kind in classes() - set(instances())} == ONLY_A_BASE


@pytest.mark.parametrize("makers", [[c.make for c in COMPONENTS], list(WHOLE.values())],
                         ids=["stable and offered", "no path"])  # fmt: skip
def test_every_component_with_an_output_stream_is_proven(makers: list[Any]) -> None:
    there = {kind for kind in classes() & set(instances()) if outputs(instances()[kind])}
    assert len(there) > 20
    proven = {made(make) for make in makers}
    assert there - proven == set(EXCEPTIONS)
    assert not proven & set(EXCEPTIONS)
    assert all(EXCEPTIONS.values())


class Ports(wiring.Component):
    """Streams of all kinds, and what is none."""

    def __init__(self) -> None:
        super().__init__({
            "wire": Out(wiring.Signature({"valid": Out(1), "ready": In(1), "payload": Out(4)})),
            "wire_activity": Out(3),
            "rows": In(wiring.Signature({"valid": Out(1), "ready": In(1)})).array(2),
            "bank": Out(wiring.Signature({
                "done": In(wiring.Signature({"valid": Out(1), "ready": In(1), "payload": Out(2)})),
            })),
            "planes": Out(wiring.Signature({"valid": Out(1), "data": Out(1)})),
            "s_axil_wdata": In(32), "s_axil_wvalid": In(1), "s_axil_wready": Out(1),
            "s_axil_rdata": Out(32), "s_axil_rresp": Out(2),
            "s_axil_rvalid": Out(1), "s_axil_rready": In(1),
            "m_axis_raw_tdata": Out(8), "m_axis_raw_tlast": Out(1),
            "m_axis_raw_tvalid": Out(1), "m_axis_raw_tready": In(1),
        })  # fmt: skip


def test_ports() -> None:
    ports = Ports()
    found = {name: len(port.payload) for name, port in outputs(ports)}
    assert found == {"wire": 4, "s_axil_r": 34, "m_axis_raw": 9}
    taken = {name: len(port.payload) for name, port in inputs(ports)}
    assert taken == {"rows_0": 0, "rows_1": 0, "bank_done": 2, "s_axil_w": 32}
