"""Verilog of one component: deterministic text, stable port names, no paths in it.

A port ``wire`` with the stream signature becomes ``wire__valid``, ``wire__ready`` and
``wire__payload``, a packed vector with the first field of the layout in its lowest bits.
"""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

__all__ = ["ExportError", "as_rtlil", "from_rtlil", "verilog"]

# Combinational logic is written as assignments: an `always @*` block is not evaluated at
# time zero, and Icarus then keeps X until an input changes. Nor can Icarus read the
# functions that stand for $pmux cells. (yosys is the native one of the pyosys wheel, ten
# times as fast as Amaranth's own.)
_SCRIPT = ("proc", "pmuxtree", "memory_collect", "opt_clean")
# One module with few named wires; "opt -full" alone stops at registers that are constant.
_FLATTEN = (
    "proc",
    "flatten",
    "opt_clean",
    "opt -full",
    "pmuxtree",
    "memory_collect",
    "opt_clean -purge",
)
_RUNNER = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass("tee -q " + command, design)
"""


class ExportError(RuntimeError):
    """yosys could not convert a component."""


def verilog(component: Any, name: str, *, flatten: bool = False) -> str:
    """Verilog of an Amaranth component as the module ``name``.

    Parameters
    ----------
    component : wiring.Component
    name : str
    flatten : bool
        One optimised module without internal names, for fast builds of simulations.
        Otherwise submodules are ``name_submodule``.

    Raises
    ------
    ExportError
        With yosys' message.
    """
    return from_rtlil(as_rtlil(component, name), flatten=flatten)


def as_rtlil(component: Any, name: str) -> str:
    """What yosys makes the Verilog from: most of the time goes here, whatever is made."""
    collecting = gc.isenabled()
    gc.disable()  # a tenth of the time, and nothing is garbage before the end
    try:
        return _plain_names(rtlil.convert(component, name=name, emit_src=False))
    finally:
        if collecting:
            gc.enable()


def from_rtlil(text: str, *, flatten: bool = False) -> str:
    """Verilog of what :func:`as_rtlil` returns."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.il", Path(folder) / "out.v"
        source.write_text(text)
        script = _FLATTEN if flatten else _SCRIPT
        commands = [f"read_rtlil {source}", *script, f"write_verilog -norename -noattr {out}"]
        result = subprocess.run(
            [sys.executable, "-c", _RUNNER, *commands], check=False, capture_output=True, text=True
        )
        if result.returncode or not out.exists():
            raise ExportError(f"yosys failed: {(result.stderr or result.stdout)[-2000:]}")
        return out.read_text().partition("\n")[2].lstrip()  # without yosys' banner


def _plain_names(text: str) -> str:
    """RTLIL with modules called ``a_b`` for ``a.b``: names that need no escape in Verilog."""
    modules = set(re.findall(r"^module \\(\S+)$", text, re.MULTILINE))

    def plain(match: re.Match[str]) -> str:
        name = match[2]
        return match[1] + (name.replace(".", "_") if name in modules else name)

    return re.sub(r"^(\s*(?:module|cell) \\)(\S+)", plain, text, flags=re.MULTILINE)
