"""Verilog of components: deterministic text, stable port names, no paths in it.

A port ``wire`` with the stream signature becomes ``wire__valid``, ``wire__ready`` and
``wire__payload``, a packed vector with the first field of the layout in its lowest bits.
``python -m planezip.hdl.export [--lanes N] [FOLDER]`` writes lanes, engine and AXI wrapper to
build/verilog/, with a FuseSoC core file, a file list and an instantiation template.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from planezip.hdl.axi import AxiEngine
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.engine import Engine
from planezip.model.format import DEFAULT, FORMAT_VERSION, Parameters

__all__ = [
    "LANES",
    "MODULES",
    "ExportError",
    "header",
    "main",
    "ports",
    "template",
    "verilog",
    "write",
]

LANES = 2
MODULES: Mapping[str, Callable[[Parameters, int], Any]] = {
    "planezip_compressor": lambda parameters, lanes: CompressorLane(parameters),
    "planezip_decompressor": lambda parameters, lanes: DecompressorLane(parameters),
    "planezip_engine": lambda parameters, lanes: Engine(parameters, lanes, instances=True),
    "planezip_axi": lambda parameters, lanes: AxiEngine(parameters, lanes, instances=True),
}
"""What is exported, by the name of its Verilog module: each has instances of those above it."""

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


def header(name: str, parameters: Parameters, lanes: int | None = None) -> str:
    """Comment that says what a file is: versions and parameters."""
    encodings = " ".join(tag.name for tag in sorted(parameters.encodings))
    widths = " ".join(map(str, parameters.symbol_bits))
    each_way = f", lanes {lanes}" if lanes else ""
    return (
        f"// {name}: PlaneZip {metadata.version('planezip')}, stream format {FORMAT_VERSION}\n"
        f"// symbols_per_block {parameters.symbols_per_block}, symbol_bits {widths},"
        f" blocks_per_chunk {parameters.blocks_per_chunk}, encodings {encodings}{each_way}\n"
        f"// Written by planezip.hdl.export (amaranth {metadata.version('amaranth')},"
        f" yosys {metadata.version('pyosys')}); SPDX-License-Identifier: Apache-2.0\n\n"
    )


def ports(text: str, name: str) -> list[str]:
    """Ports of module ``name`` in exported Verilog, as "input [7:0] data", sorted by name."""
    body = text[re.search(rf"^module {name}\b", text, re.MULTILINE).start() :]  # type: ignore[union-attr]
    found = re.findall(
        r"^  (input|output) (\[\d+:0\] )?(\w+);$", body.partition("\nendmodule")[0], re.MULTILINE
    )
    return [f"{way} {width}{port}" for way, width, port in sorted(found, key=lambda f: f[2])]


def template(text: str, name: str) -> str:
    """An instance of module ``name`` with a wire for each port."""
    found = [line.split() for line in ports(text, name)]
    wires = "".join(f"wire {' '.join(parts[1:])};\n" for parts in found)
    pins = ",\n".join(f"    .{parts[-1]}({parts[-1]})" for parts in found)
    return f"{wires}\n{name} {name} (\n{pins}\n);\n"


def _core(names: Sequence[str]) -> str:
    """FuseSoC core file."""
    files = "\n".join(f"      - {name}.v" for name in names)
    return (
        "CAPI=2:\n"
        f"name: ::planezip:{metadata.version('planezip')}\n"
        "description: Lossless bit-plane compression of training activations\n"
        "filesets:\n"
        "  rtl:\n"
        "    files:\n"
        f"{files}\n"
        "    file_type: verilogSource\n"
        "targets:\n"
        "  default:\n"
        "    filesets: [rtl]\n"
        f"    toplevel: {names[-1]}\n"
    )


def write(folder: Path, parameters: Parameters = DEFAULT, lanes: int = LANES) -> list[Path]:
    """Write all of :data:`MODULES` to ``folder``, a file each; the paths of the Verilog files.

    Beside them: planezip.core (FuseSoC), planezip.f (list of the files, lowest module first),
    and an instantiation template per module.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, make in MODULES.items():
        path = folder / f"{name}.v"
        has_lanes = name in ("planezip_engine", "planezip_axi")
        text = verilog(make(parameters, lanes), name)
        path.write_text(header(name, parameters, lanes if has_lanes else None) + text)
        (folder / f"{name}.template.v").write_text(template(text, name))
        paths.append(path)
    (folder / "planezip.core").write_text(_core(list(MODULES)))
    (folder / "planezip.f").write_text("".join(f"{path.name}\n" for path in paths))
    return paths


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files and print their names."""
    parser = argparse.ArgumentParser(prog="python -m planezip.hdl.export", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/verilog"))
    parser.add_argument("--lanes", type=int, choices=(1, 2, 4), default=LANES)
    arguments = parser.parse_args(argv)
    for path in write(arguments.folder, lanes=arguments.lanes):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
