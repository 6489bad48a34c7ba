"""Quality of results: area and path of small modules with the shipped library, kept in git.

``python -m planezip.synth.qor`` measures them and writes data/qor.json. ``make test`` fails
where a module differs by more than :data:`TOLERANCE` and the file has not been written anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from planezip.model.format import DEFAULT
from planezip.synth import make_library
from planezip.synth.flow import rtlil_text
from planezip.synth.library import read_libraries
from planezip.synth.measure import Row, measure
from planezip.synth.modules import MODULES
from planezip.synth.nodes import node_of
from planezip.synth.timing import opensta, opensta_version

__all__ = ["FILE", "SMALL", "TOLERANCE", "changed", "figures", "main", "measured"]

FILE = Path(__file__).parent / "data" / "qor.json"
TOLERANCE = 0.02
SMALL = ("comparator", "delta", "plane_cost_deltas", "position_encoder", "code_packer", "framer")
_METRICS = ("area_um2", "path_ps", "abc_ps")


def measured(folder: Path) -> list[Row]:
    """Rows of the small modules; ``folder`` has the cache."""
    (library,) = read_libraries([make_library.FILE], folder / "work")
    node = node_of(library)
    return [
        measure(
            name,
            rtlil_text(MODULES[name](DEFAULT), name),
            library,
            node,
            node.constraint(),
            folder,
            mappings=("area",),
        )[0]
        for name in SMALL
    ]


def figures(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """What is compared, by module; ``path_ps`` only if OpenSTA measured it."""
    metrics = _METRICS if opensta() else ("area_um2", "abc_ps")
    return {row.name: {metric: getattr(row, metric) for metric in metrics} for row in rows}


def changed(
    kept: Mapping[str, Mapping[str, float]], now: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """What differs from what is kept by more than the tolerance, or is not kept at all.

    What has become better has to be written as well: it could come back unseen otherwise.
    """
    found = [f"{name} is not in {FILE.name}" for name in now if name not in kept]
    for name in [name for name in now if name in kept]:
        for metric, value in now[name].items():
            limit = kept[name].get(metric)
            if limit is not None and abs(value - limit) > limit * TOLERANCE:
                found.append(f"{name}: {metric} was {limit:g}, is {value:g}")
    return found


def main() -> int:
    """Measure, print and write the file; OpenSTA must be there, so that the file is complete."""
    if not opensta():
        print("error: OpenSTA is not installed: apt install opensta")
        return 2
    now = figures(measured(Path("build") / "synth"))
    for name, values in now.items():
        print(f"{name:<21}" + "".join(f" {key} {value:>9.1f}" for key, value in values.items()))
    document: dict[str, Any] = {
        "schema": "planezip.qor/1",
        "library": make_library.FILE.name,
        "tools": {"yosys": metadata.version("pyosys"), "opensta": opensta_version()},
        "modules": now,
    }
    FILE.write_text(json.dumps(document, indent=1) + "\n")
    print(f"written: {FILE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
