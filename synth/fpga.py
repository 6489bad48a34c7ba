"""FPGA resources of lanes and engine: generic synthesis by yosys, no placement, no clock.

``python -m planezip.synth.fpga [--family xcup|xc7|ecp5] [--lanes N] [MODULE...]`` prints a table
and writes build/synth/fpga.json. Engine and AXI wrapper are counted without what is an instance
in them; ``whole`` adds it, as often as it is there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from planezip.hdl.export import LANES, MODULES
from planezip.hdl.verilog import verilog
from planezip.model.format import DEFAULT

__all__ = ["FAMILIES", "count", "main", "mapped", "resources", "wholes"]

FAMILIES = {
    "xcup": ("synth_xilinx -family xcup -flatten -noiopad -noclkbuf", "AMD UltraScale+"),
    "xc7": ("synth_xilinx -family xc7 -flatten -noiopad -noclkbuf", "AMD 7 series"),
    "ecp5": ("synth_ecp5 -noabc9", "Lattice ECP5"),
}
_OUT = Path("build/synth/fpga.json")
# What a cell counts as: LUTs (of any size; RAM in LUTs too), flip-flops, blocks of RAM.
_KINDS = (
    ("lut", ("LUT1", "LUT2", "LUT3", "LUT4", "LUT5", "LUT6", "INV"), 1),
    (
        "lut_ram",
        ("RAM32M", "RAM64M", "RAM32M16", "RAM64M8", "RAM32X1D", "RAM64X1D", "TRELLIS_DPR16X4"),
        1,
    ),
    ("carry", ("CARRY4", "CARRY8", "CCU2C"), 1),
    ("ff", ("FDRE", "FDSE", "FDCE", "FDPE", "TRELLIS_FF"), 1),
    ("bram_18k", ("RAMB18E1", "RAMB18E2", "DP16KD", "PDPW16KD"), 1),
    ("bram_18k", ("RAMB36E1", "RAMB36E2"), 2),
)
_RUNNER = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass("tee -q " + command, design)
"""


def count(cells: Mapping[str, int]) -> dict[str, int]:
    """Numbers of LUTs, RAMs in LUTs, carry chains, flip-flops and 18 kbit RAMs among ``cells``."""
    found = dict.fromkeys((kind for kind, _, _ in _KINDS), 0)
    for kind, names, weight in _KINDS:
        found[kind] += weight * sum(cells.get(name, 0) for name in names)
    return found


def resources(name: str, family: str = "xcup", lanes: int = LANES) -> dict[str, int]:
    """Resources of the exported module ``name``; see :func:`mapped`."""
    inner = {"planezip_engine": 2, "planezip_axi": 3}.get(name, 0)
    boxes = {box: verilog(MODULES[box](DEFAULT, lanes), box) for box in list(MODULES)[:inner]}
    return mapped(verilog(MODULES[name](DEFAULT, lanes), name, flatten=True), name, family, boxes)


def mapped(
    text: str, name: str, family: str, boxes: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Resources of module ``name`` of a Verilog text, without the modules ``boxes`` (name: text).

    Raises
    ------
    RuntimeError
        With yosys' message.
    """
    with tempfile.TemporaryDirectory() as folder:
        commands = []
        for box, inside in (boxes or {}).items():
            path = Path(folder) / f"{box}.v"
            path.write_text(_shell(inside, box))
            commands.append(f"read_verilog -lib {path}")
        source, stat = Path(folder) / "top.v", Path(folder) / "stat.json"
        source.write_text(text)
        commands += [
            f"read_verilog {source}",
            f"{FAMILIES[family][0]} -top {name}",
            f"tee -q -o {stat} stat -json",
        ]
        result = subprocess.run(
            [sys.executable, "-c", _RUNNER, *commands], check=False, capture_output=True, text=True
        )
        if result.returncode or not stat.exists():
            raise RuntimeError(f"yosys failed: {(result.stderr or result.stdout)[-2000:]}")
        design = json.loads(stat.read_text())["design"]
        return count({k: int(v) for k, v in design["num_cells_by_type"].items()})


def wholes(rows: Mapping[str, Mapping[str, int]], lanes: int) -> dict[str, dict[str, int]]:
    """Engine and AXI wrapper with everything in them, where all of it is among ``rows``."""
    *lane, engine, axi = MODULES
    found = {}
    for name, inside in ((engine, [engine]), (axi, [engine, axi])):
        times = {**dict.fromkeys(lane, lanes), **dict.fromkeys(inside, 1)}
        if times.keys() <= rows.keys():
            found[name] = {
                kind: sum(n * rows[part][kind] for part, n in times.items()) for kind in count({})
            }
    return found


def _shell(text: str, name: str) -> str:
    """The ports of a module, without what is in it."""
    start = text.index(f"module {name}(")
    body = text[start : text.index("endmodule", start)]
    heading, _, rest = body.partition(";\n")
    kept = [line for line in rest.splitlines() if line.startswith(("  input", "  output"))]
    return heading + ";\n" + "\n".join(kept) + "\nendmodule\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, write the file."""
    parser = argparse.ArgumentParser(prog="python -m planezip.synth.fpga", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=list(MODULES))
    parser.add_argument("--family", choices=sorted(FAMILIES), default="xcup")
    parser.add_argument("--lanes", type=int, choices=(1, 2, 4), default=LANES)
    arguments = parser.parse_args(argv)
    unknown = set(arguments.modules) - set(MODULES)
    if unknown:
        parser.error(f"MODULE must be one of {', '.join(MODULES)}, not {sorted(unknown)[0]}")
    kinds = list(count({}))
    print(f"{'module':24}" + "".join(f"{kind:>10}" for kind in kinds), flush=True)
    rows = {}
    for name in arguments.modules:
        rows[name] = found = resources(name, arguments.family, arguments.lanes)
        print(f"{name:24}" + "".join(f"{found[kind]:10,}" for kind in kinds), flush=True)
    whole = wholes(rows, arguments.lanes)
    for name, found in whole.items():
        print(f"{name + ', whole':24}" + "".join(f"{found[kind]:10,}" for kind in kinds))
    document = {
        "schema": "planezip.fpga/2",
        "planezip": metadata.version("planezip"),
        "yosys": metadata.version("pyosys"),
        "family": arguments.family,
        "command": FAMILIES[arguments.family][0],
        "lanes": arguments.lanes,
        "modules": rows,
        "whole": whole,
    }
    _OUT.parent.mkdir(parents=True, exist_ok=True)
    _OUT.write_text(json.dumps(document, indent=2) + "\n")
    print(_OUT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
