# amaranth: UnusedElaboratable=no
"""Every component of a lane is synthesised by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from amaranth.hdl import Fragment
from amaranth.lib import wiring

from planezip.model.format import Parameters
from planezip.synth.modules import LANES, MODULES

SMALL = Parameters(64, (16, 32), 2)
NOT_IN_DEFAULT = {"narrow"}  # only for small parameters


def components(fragment: Any) -> Iterator[Any]:
    """Components of the project in a fragment and below."""
    for part, _, _ in fragment.subfragments:
        for origin in part.origins or ():
            if isinstance(origin, wiring.Component) and type(origin).__module__.startswith(
                "planezip.hdl"
            ):
                yield origin
        yield from components(part)


@pytest.mark.parametrize("lane", LANES)
def test_components_of_a_lane(lane: str) -> None:
    found = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", type(part).__name__).lower()
        for part in components(Fragment.get(MODULES[lane](SMALL), None))
    }
    assert len(found) > 5
    known = set(MODULES) | {name.rpartition("_")[0] for name in MODULES}
    assert found - known - NOT_IN_DEFAULT == set()


def test_lanes_come_first() -> None:
    assert tuple(MODULES)[:2] == LANES
