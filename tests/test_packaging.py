"""The wheel holds every package with its data, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("hdl", "model", "sim", "synth", "cli")
DATA = (".json", ".gz", ".lib", ".toml", ".typed")


def tracked(folder: str) -> set[str]:
    """Files of ``folder`` that git knows and that an installed package needs."""
    listed = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in listed.stdout.split() if Path(name).suffix in (".py", *DATA)}


def test_wheel_has_packages_and_data(tmp_path: Path) -> None:
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(tmp_path)]
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True, timeout=300
    )
    (wheel,) = tmp_path.glob("planezip-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = {name.split("/")[-1] for name in archive.namelist() if ".dist-info/" in name}
    expected = {f"planezip/{name}" for folder in PACKAGES for name in tracked(folder)}
    assert names == expected
    assert {"entry_points.txt", "LICENSE"} <= metadata
