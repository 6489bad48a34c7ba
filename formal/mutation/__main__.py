"""`make mutate`: mutants of both lanes, to build/mutate/report.json (report.schema.json)."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from formal.mutation.equivalence import Original
from formal.mutation.kill import build_mutants, kill
from formal.mutation.netlist import flattened, mutants, mutated
from formal.mutation.stimuli import stimuli
from tb.harness.lanes import LANES, Lane
from tb.places import ROOT
from tb.run import DEFAULT_SEED, simulator_version

__all__ = ["main"]

_FOLDER = ROOT / "build" / "mutate"
_MUTANTS = 320
_LEAST = 0.97  # of the mutants that are not proven equivalent


def design(lane: Lane, count: int, seed: int) -> dict[str, Any]:
    """The row of the report on ``count`` mutants of a lane."""
    start = time.monotonic()
    netlist = flattened(lane.make(lane.parameters), lane.name)
    made = mutants(netlist, count, seed)
    program = build_mutants(lane, mutated(netlist, made), _FOLDER / lane.name)
    killed = kill(lane, program, made, stimuli(lane, DEFAULT_SEED), _FOLDER / lane.name, _tell)
    original = Original(netlist, lane.name)
    survivors = []
    for mutant in made:
        if mutant.number not in killed:
            same = original.equals(mutant)
            row = {key: value for key, value in asdict(mutant).items() if key != "command"}
            survivors.append({**row, "equivalent": same})
            where = f"{mutant.source}, {mutant.kind} {mutant.port}[{mutant.bit}] {mutant.mode}"
            _tell(f"{lane.name} {mutant.number}: {where}: {'equivalent' if same else 'SURVIVES'}")
    return {
        "name": lane.name,
        "mutants": len(made),
        "killed": len(killed),
        "equivalent": sum(row["equivalent"] for row in survivors),
        "seconds": round(time.monotonic() - start, 1),
        "killed_by": Counter(found.stimulus for found in killed.values()),
        "shown_by": Counter(found.how for found in killed.values()),
        "modes": Counter(mutant.mode for mutant in made),
        "survivors": survivors,
    }


def share(row: dict[str, Any]) -> float:
    """Killed mutants of those that are not proven equivalent."""
    others = row["mutants"] - row["equivalent"]
    return float(row["killed"] / others) if others else 1.0


def _tell(text: str) -> None:
    print(text, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """0 if enough mutants of each lane are killed, 1 if not."""
    parser = argparse.ArgumentParser(prog="python -m formal.mutation", description=__doc__)
    parser.add_argument("lanes", nargs="*", help="by default both")
    parser.add_argument("--mutants", type=int, default=_MUTANTS, help="of each lane")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="of their choice")
    parser.add_argument("--report", type=Path, default=_FOLDER / "report.json")
    arguments = parser.parse_args(argv)
    if arguments.mutants < 1:
        parser.error(f"mutants must be 1 or more, not {arguments.mutants}")
    known = [lane for lane in LANES if lane.name != "pair"]
    names = arguments.lanes or [lane.name for lane in known]
    if wrong := set(names) - {lane.name for lane in known}:
        parser.error(f"no such lane: {', '.join(sorted(wrong))}")
    document = {
        "format": "planezip-mutation",
        "version": 1,
        "planezip": metadata.version("planezip"),
        "amaranth": metadata.version("amaranth"),
        "yosys": metadata.version("pyosys"),
        "verilator": simulator_version("verilator"),
        "seed": arguments.seed,
        "designs": [
            design(lane, arguments.mutants, arguments.seed) for lane in known if lane.name in names
        ],
    }
    arguments.report.parent.mkdir(parents=True, exist_ok=True)
    arguments.report.write_text(json.dumps(document, indent=1) + "\n")
    good = True
    for row in document["designs"]:
        good &= share(row) >= _LEAST
        _tell(
            f"{row['name']}: {row['killed']} of {row['mutants']} killed, {row['equivalent']}"
            f" equivalent: {share(row):.1%} of the others, {row['seconds']:.0f} s"
        )
    _tell(f"{'PASSED' if good else f'FAILED, less than {_LEAST:.0%}'}: {arguments.report}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
