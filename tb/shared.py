"""Test inputs beside the repository, which nothing in the product needs."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["absent", "shared"]


def shared(part: str) -> Path:
    """``part`` of the folder ../shared beside the repository, or of PLANEZIP_SHARED."""
    folder = os.environ.get("PLANEZIP_SHARED") or Path(__file__).parents[2] / "shared"
    return Path(folder) / part


def absent(part: str) -> str:
    """Why a test that reads ``part`` is skipped; empty where it is there."""
    path = shared(part)
    return "" if path.exists() else f"{path} is not there (PLANEZIP_SHARED names its folder)"
