"""Verilog of components, kept under build/sim/ until a source or an argument changes."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from planezip.hdl.verilog import as_rtlil, from_rtlil
from tb.places import BUILD, ROOT, locked

__all__ = ["cached_verilog", "sources_of"]

_IMPORT = re.compile(r"^(?:from|import) (planezip|tb)((?:\.\w+)*)(?: import|$)", re.MULTILINE)
_ADDRESS = " at 0x"


def sources_of(path: Path) -> set[Path]:
    """``path`` and the files of the project that it imports, directly or not."""
    found: set[Path] = set()
    left = [path]
    while left:
        file = left.pop()
        if file in found:
            continue
        found.add(file)
        for package, names in _IMPORT.findall(file.read_text()):
            module = ROOT.joinpath(*(("tb",) if package == "tb" else ()), *names.split(".")[1:])
            both = (module.with_suffix(".py"), module / "__init__.py")
            left += [file for file in both if file.is_file()]
    return found


@cache
def _contents(path: Path) -> bytes:
    """What the Verilog of a component that is defined in ``path`` may depend on."""
    digest = hashlib.sha256()
    for package in ("amaranth", "pyosys"):
        digest.update(metadata.version(package).encode())
    for source in sorted({*sources_of(path), ROOT / "hdl" / "verilog.py"}):
        digest.update(source.read_bytes())
    return digest.digest()


def _described(value: Any) -> Any:
    """``value``, with the class and the attributes of a component in its place."""
    if isinstance(value, Mapping):
        return [(key, _described(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [_described(part) for part in value]
    if not isinstance(value, wiring.Component):
        return value
    attributes = {
        key: _described(part)
        for key, part in sorted(vars(value).items())
        if not key.startswith("_MustUse__")  # Amaranth's note of where it was made
    }
    return type(value).__qualname__, attributes


def cached_verilog(component: Any, name: str, *, flatten: bool = True) -> str:
    """:func:`planezip.hdl.verilog.verilog` of a component, from the store if it is there.

    What a component is made from is told by its class and its attributes.

    Raises
    ------
    TypeError
        If an attribute's text does not tell its value: its class needs a ``__repr__``.
    """
    described = repr((name, _described(component)))
    if _ADDRESS in described:
        found = re.findall(r"<([^<>]*) at 0x", described)
        raise TypeError(f"{name} could not be kept: these need a __repr__: {', '.join(found)}")
    own = Path(str(inspect.getsourcefile(type(component)))).resolve()
    digest = hashlib.sha256(described.encode() + _contents(own)).hexdigest()[:12]
    path = BUILD / "verilog" / f"{name}-{digest}{'-flat' if flatten else ''}.v"
    with locked(path.parent / name):
        if not path.exists():
            common = path.with_name(f"{name}-{digest}.il")
            if not common.exists():
                _write(common, as_rtlil(component, name))
            _write(path, from_rtlil(common.read_text(), flatten=flatten))
    return path.read_text()


def _write(path: Path, text: str) -> None:
    written = path.with_suffix(".tmp")
    written.write_text(text)
    written.replace(path)
