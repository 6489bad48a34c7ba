"""The torch side is an extra: ``pip install planezip[capture]``."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["MissingExtraError", "require_capture"]


class MissingExtraError(ImportError):
    """A package of an extra is not installed; the text says what installs it."""


def require_capture(*packages: str) -> None:
    """Raise MissingExtraError unless torch and ``packages`` can be imported."""
    missing = [name for name in ("torch", *packages) if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"this needs {', '.join(missing)}: run `pip install planezip[capture]`"
        )
