"""One clear error if SIM names a simulator that is not there."""

from __future__ import annotations

import pytest

from tb.run import SimulatorMissing, default_simulator


def pytest_configure() -> None:
    try:
        default_simulator("verilator")
    except SimulatorMissing as error:
        raise pytest.UsageError(str(error)) from None
