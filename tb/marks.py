"""Which benches `make sim` leaves to `make test` and `make sim-full`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest

__all__ = ["sampled", "slow"]

T = TypeVar("T")

slow = pytest.mark.slow


def sampled(values: Iterable[T], *quick: T) -> list[object]:
    """Parameters of a bench, of which `make sim` only takes those in ``quick``."""
    return [pytest.param(value, marks=() if value in quick else slow) for value in values]
