"""Verilog of components: deterministic text, stable port names, no paths in it.

A port ``wire`` with the stream signature becomes ``wire__valid``, ``wire__ready`` and
``wire__payload``, a packed vector with the first field of the layout in its lowest bits.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from amaranth.back import rtlil

__all__ = ["ExportError", "verilog"]

# Combinational logic is written as assignments: an `always @*` block is not evaluated at
# time zero, and Icarus then keeps X until an input changes. Nor can Icarus read the
# functions that stand for $pmux cells. (yosys is the native one of the pyosys wheel, ten
# times as fast as Amaranth's own.)
_SCRIPT = ("proc", "pmuxtree", "memory_collect", "opt_clean")
# One module with few named wires; "opt" right away stops at registers that are constant.
_FLATTEN = (
    "proc",
    "flatten",
    "opt_clean",
    "opt -full",
    "pmuxtree",
    "memory_collect",
    "opt_clean -purge",
)
_WRITE = ("write_verilog -norename -noattr {out}",)
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

    Raises
    ------
    ExportError
        With yosys' message.
    """
    text = rtlil.convert(component, name=name, emit_src=False)
    script = _FLATTEN if flatten else _SCRIPT
    return _run(text, script)


def _run(text: str, script: tuple[str, ...]) -> str:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.il", Path(folder) / "out.v"
        source.write_text(text)
        commands = [f"read_rtlil {source}", *script, _WRITE[0].format(out=out)]
        result = subprocess.run(
            [sys.executable, "-c", _RUNNER, *commands], capture_output=True, text=True
        )
        if result.returncode or not out.exists():
            raise ExportError(f"yosys failed: {(result.stderr or result.stdout)[-2000:]}")
        return out.read_text()
