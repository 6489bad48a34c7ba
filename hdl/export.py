"""The exported hardware: lanes, engine and AXI wrapper as Verilog files.

``python -m planezip.hdl.export [--lanes N] [FOLDER]`` writes them to build/verilog/, with a
FuseSoC core file, a file list and an instantiation template.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from planezip.hdl.axi import AxiEngine
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.engine import Engine
from planezip.hdl.verilog import verilog
from planezip.model.format import DEFAULT, FORMAT_VERSION, Parameters

__all__ = [
    "LANES",
    "MODULES",
    "header",
    "main",
    "ports",
    "template",
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
