"""Verilog of components: deterministic text, stable port names, no paths in it.

A port ``wire`` with the stream signature becomes ``wire__valid``, ``wire__ready`` and
``wire__payload``, a packed vector with the first field of the layout in its lowest bits.
``python -m planezip.hdl.export [FOLDER]`` writes the lanes to build/verilog/.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane
from planezip.model.format import DEFAULT, FORMAT_VERSION, Parameters

__all__ = ["MODULES", "ExportError", "header", "main", "verilog", "write"]

MODULES: Mapping[str, Callable[[Parameters], Any]] = {
    "planezip_compressor": CompressorLane,
    "planezip_decompressor": DecompressorLane,
}
"""What is exported, by the name of its Verilog module."""

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
    text = _plain_names(rtlil.convert(component, name=name, emit_src=False))
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


def header(name: str, parameters: Parameters) -> str:
    """Comment that says what a file is: versions and parameters."""
    encodings = " ".join(tag.name for tag in sorted(parameters.encodings))
    widths = " ".join(map(str, parameters.symbol_bits))
    return (
        f"// {name}: PlaneZip {metadata.version('planezip')}, stream format {FORMAT_VERSION}\n"
        f"// symbols_per_block {parameters.symbols_per_block}, symbol_bits {widths},"
        f" blocks_per_chunk {parameters.blocks_per_chunk}, encodings {encodings}\n"
        f"// Written by planezip.hdl.export (amaranth {metadata.version('amaranth')},"
        f" yosys {metadata.version('pyosys')}); SPDX-License-Identifier: Apache-2.0\n\n"
    )


def write(folder: Path, parameters: Parameters = DEFAULT) -> list[Path]:
    """Write all of :data:`MODULES` to ``folder``, a file each."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, make in MODULES.items():
        path = folder / f"{name}.v"
        path.write_text(header(name, parameters) + verilog(make(parameters), name))
        paths.append(path)
    return paths


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files and print their names."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    for path in write(Path(arguments[0] if arguments else "build/verilog")):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
