"""Which benches `make sim` leaves to `make test`, and both to `make sim-full`.

The latter are whole components of full size under cocotb, whose data and rates the runs of
the lanes in `make sim` check too, many times as fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest

from planezip.model.format import DEFAULT, Parameters

__all__ = ["full", "sampled", "sizes", "slow"]

T = TypeVar("T")

slow = pytest.mark.slow
full = (slow, pytest.mark.full)


def sampled(values: Iterable[T], *quick: T, large: Iterable[T] = ()) -> list[object]:
    """Parameters of a bench: `make sim` takes those in ``quick``, `make test` none of ``large``."""
    kept = list(large)
    return [
        pytest.param(value, marks=full if value in kept else () if value in quick else slow)
        for value in values
    ]


def sizes(geometries: Iterable[tuple[Parameters, int]], *quick: int) -> pytest.MarkDecorator:
    """Parameters ``parameters`` and ``beats``; `make sim` takes those with the numbers ``quick``,
    by default all but the full size."""
    return pytest.mark.parametrize(
        ("parameters", "beats"),
        [
            pytest.param(
                p,
                beats,
                id=f"{p.symbols_per_block}x{'-'.join(map(str, p.symbol_bits))}-{beats}",
                marks=() if (k in quick if quick else p != DEFAULT) else slow,
            )
            for k, (p, beats) in enumerate(geometries)
        ],
    )
