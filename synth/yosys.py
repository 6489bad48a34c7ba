"""One mapping by Yosys, in a process of its own: ``python -m planezip.synth.yosys JOB.json``.

Flattens a module, takes memories of at least ``sram_bits`` bits out as SRAM macros, turns
enables into gated clocks, and maps the rest to the library. See :mod:`planezip.synth.flow`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the job: RTLIL in, Verilog, cells (``stat -json``) and ABC's log out."""
    from pyosys import libyosys as ys

    job = json.loads(Path((sys.argv[1:] if argv is None else argv)[0]).read_text())
    design = ys.Design()

    def run(*commands: str) -> None:
        for command in commands:
            ys.run_pass(f"tee -q {command}", design)

    run(f"read_verilog -lib {job['boxes']}", f"read_rtlil {job['source']}")
    run(f"hierarchy -top {job['module']}", "proc")
    run("flatten", "opt_clean", "opt", "memory_collect", "opt_clean")
    macros = _macros(ys, design, job["sram_bits"])
    Path(job["macros"]).write_text(json.dumps(macros))
    if macros:
        Path(job["sram_liberty"]).write_text(_liberty(macros, job))
        run(f"read_liberty -lib {job['sram_liberty']}")
    run("memory_map", "opt_clean", "opt -full", "alumacc", "share", "opt", "techmap")
    run("opt -fast", "opt_clean", "setattr -unset init", "setundef -zero", "opt_expr", "opt_clean")
    liberty = " ".join(f"-liberty {path}" for path in job["liberty"])
    if job["clock_gate_bits"]:
        gates = f"-liberty {job['flip_flops']} -min_net_size {job['clock_gate_bits']}"
        run(f"clockgate {gates}", "opt_clean")
    run("splitnets -ports -format _", "rename -wire -suffix _reg")  # after their registers
    large = " ".join(f"-dont_use {cell}" for cell in job["large_flip_flops"])
    run(f"dfflibmap {large} -liberty {job['flip_flops']}", "opt_clean")
    dont_use = " ".join(f"-dont_use {cell}" for cell in job["dont_use"])
    files = f"-constr {job['ports']} -script {job['script']}"
    run(f"tee -q -o {job['log']} abc {dont_use} {liberty} {files}")
    run("opt_clean", "setundef -zero", "opt_clean -purge")
    run(f"tee -q -o {job['stat']} stat -json {liberty}")
    run(f"write_verilog -noattr -noexpr {job['verilog']}")
    return 0


def _macros(ys: Any, design: Any, least_bits: int) -> list[dict[str, Any]]:
    """Replace large memories by cells ``sram_DEPTHxWIDTH_ENABLES``; returns what they are."""
    module = design.top_module()
    macros = []
    for cell in list(module.cells_.values()):
        if cell.type.str() != "$mem_v2":
            continue
        value = {k.str()[1:]: v for k, v in cell.parameters.items()}
        depth, width = value["SIZE"].as_int(), value["WIDTH"].as_int()
        ports = (value["RD_PORTS"].as_int(), value["WR_PORTS"].as_int())
        clocked = value["RD_CLK_ENABLE"].as_string()
        if depth * width < least_bits or ports != (1, 1) or clocked != "1":
            continue

        def port(name: str, cell: Any = cell) -> Any:
            return cell.getPort(ys.IdString("\\" + name))

        enables = port("WR_EN").to_sigbit_vector()
        distinct = [i for i, bit in enumerate(enables) if i == 0 or bit != enables[i - 1]]
        groups = ys.SigSpec()
        for i in distinct:
            groups.append(port("WR_EN").extract(i, 1))
        name = f"sram_{depth}x{width}_{len(distinct)}"
        instance = cell.name.str().lstrip("\\").replace("$", "_")
        pins = {"CK": port("RD_CLK"), "RE": port("RD_EN"), "RA": port("RD_ADDR")}
        pins |= {"Q": port("RD_DATA"), "WE": groups, "WA": port("WR_ADDR"), "D": port("WR_DATA")}
        module.remove(cell)
        macro = module.addCell(ys.IdString("\\" + instance), ys.IdString("\\" + name))
        for pin, signal in pins.items():
            macro.setPort(ys.IdString("\\" + pin), signal)
        sizes = {pin: signal.size() for pin, signal in pins.items()}
        macros.append({"cell": name, "instance": instance, "bits": depth * width, "pins": sizes})
    return macros


def _liberty(macros: Iterable[dict[str, Any]], job: dict[str, Any]) -> str:
    """Liberty of the macros: set-up and clock-to-out are constants, no area, no power."""
    cells, types = {}, set()
    for macro in macros:
        pins = []
        for pin, size in macro["pins"].items():
            if pin == "CK":
                pins.append("pin (CK) { direction : input; clock : true; capacitance : 0; }")
                continue
            out = pin == "Q"
            tables = ("cell_rise", "cell_fall") if out else ("rise_constraint", "fall_constraint")
            value = job["sram_out"] if out else job["sram_set_up"]
            rows = [f'{table} (scalar) {{ values ("{value}"); }}' for table in tables]
            if out:
                rows += [
                    f'{edge}_transition (scalar) {{ values ("{job["sram_slew"]}"); }}'
                    for edge in ("rise", "fall")
                ]
            kind = "rising_edge" if out else "setup_rising"
            arc = f'timing () {{ related_pin : "CK"; timing_type : {kind}; {" ".join(rows)} }}'
            direction = "output" if out else "input"
            load = "max_capacitance : 1000000;" if out else f"capacitance : {job['sram_load']};"
            types.add(size)
            pins.append(
                f"bus ({pin}) {{ bus_type : bus{size}; direction : {direction}; {load} {arc} }}"
            )
        cells[macro["cell"]] = f"cell ({macro['cell']}) {{ area : 0;\n" + "\n".join(pins) + "\n}\n"
    bus_types = [
        f"type (bus{n}) {{ base_type : array; data_type : bit; bit_width : {n};"
        f" bit_from : {n - 1}; bit_to : 0; downto : true; }}"
        for n in sorted(types)
    ]
    lines = [
        f"library (planezip_sram_{job['module']}) {{",
        "delay_model : table_lookup;",
        job["conditions"],
        *bus_types,
    ]
    return "\n".join([*lines, *cells.values(), "}", ""])


if __name__ == "__main__":
    raise SystemExit(main())
