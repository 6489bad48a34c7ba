"""Fixtures of several test files."""

from pathlib import Path

import pytest


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in its own empty folder."""
    monkeypatch.chdir(tmp_path)
