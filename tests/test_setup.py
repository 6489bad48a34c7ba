"""`.ci/setup` says what it cannot work with before it installs anything."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def set_up(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "setup", folder / ".ci" / "setup")
    return subprocess.run(
        ["sh", str(folder / ".ci" / "setup"), "sim"],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", **environment},
    )


def test_folder_with_a_space(tmp_path: Path) -> None:
    done = set_up(tmp_path / "a b")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "space" in done.stderr
    assert "move it" in done.stderr
    assert not (tmp_path / "a b" / ".venv").exists()


def test_python_that_is_missing(tmp_path: Path) -> None:
    done = set_up(tmp_path / "plain", PYTHON="no-such-python")
    assert done.returncode == 1
    assert "no-such-python not found" in done.stderr
    assert "PYTHON=" in done.stderr
