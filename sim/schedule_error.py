"""The error that names the invariant a schedule breaks."""

from __future__ import annotations

__all__ = ["ScheduleError", "need"]


class ScheduleError(ValueError):
    """A schedule breaks an invariant, ``invariant`` by number."""

    def __init__(self, invariant: int, text: str) -> None:
        self.invariant = invariant
        super().__init__(invariant, text)

    def __str__(self) -> str:
        return f"invariant {self.invariant}: {self.args[1]}"


def need(condition: bool, invariant: int, text: str) -> None:
    """Raise ScheduleError unless ``condition``."""
    if not condition:
        raise ScheduleError(invariant, text)
