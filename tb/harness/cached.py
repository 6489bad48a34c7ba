"""Exported Verilog, kept under build/sim/ until a source of the component changes."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from planezip.hdl.export import verilog
from tb.run import BUILD, ROOT, locked

__all__ = ["cached_verilog", "sources_of"]

_IMPORT = re.compile(r"^from planezip\.(\w+)\.(\w+) import", re.MULTILINE)


def sources_of(path: Path) -> set[Path]:
    """``path`` and the files of the project that it imports, directly or not."""
    found: set[Path] = set()
    left = [path]
    while left:
        file = left.pop()
        if file in found:
            continue
        found.add(file)
        for folder, module in _IMPORT.findall(file.read_text()):
            left.append(ROOT / folder / f"{module}.py")
    return found


def cached_verilog(make: Callable[[], Any], owner: type, name: str, key: object) -> str:
    """Flattened Verilog of ``make()`` as the module ``name``.

    ``owner`` is the class of the component, ``key`` tells its arguments.
    """
    digest = hashlib.sha256(repr((name, key)).encode())
    for package in ("amaranth", "pyosys"):
        digest.update(metadata.version(package).encode())
    own = Path(str(inspect.getsourcefile(owner))).resolve()
    for source in sorted({*sources_of(own), ROOT / "hdl" / "export.py"}):
        digest.update(source.read_bytes())
    path = BUILD / "verilog" / f"{name}-{digest.hexdigest()[:12]}.v"
    with locked(path.parent / name):
        if not path.exists():
            written = path.with_suffix(".tmp")
            written.write_text(verilog(make(), name, flatten=True))
            written.replace(path)
    return path.read_text()
