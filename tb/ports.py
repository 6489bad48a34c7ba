"""Ports of the exported modules: `python -m tb.ports [FOLDER] > tb/verilog/ports.txt`."""

from __future__ import annotations

import sys
from pathlib import Path

from planezip.hdl.export import MODULES, ports

__all__ = ["port_list"]


def port_list(folder: Path) -> str:
    """The ports of every exported file in ``folder``, a module after the other."""
    lines = []
    for name in MODULES:
        lines.append(name)
        lines += [f"  {port}" for port in ports((folder / f"{name}.v").read_text(), name)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(port_list(Path(sys.argv[1] if len(sys.argv) > 1 else "build/verilog")), end="")
