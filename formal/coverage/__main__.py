"""`make coverage`: bins that the data of make sim hits, to build/coverage/functional.json, then
lines, branches and toggles of the lanes' Verilog, to build/coverage/rtl.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from formal.coverage import rtl
from formal.coverage.bins import STALLS, Bin, bins
from formal.coverage.rtl import THRESHOLDS
from formal.coverage.walk import hits
from tb.harness.lanes import LANES
from tb.jobs import Job, jobs
from tb.places import ROOT
from tb.run import DEFAULT_SEED, icarus_missing

__all__ = ["functional", "main"]

_REPORT = Path("build") / "coverage" / "functional.json"


def job_bins(job: Job) -> Iterator[Bin]:
    """Bins of all tensors of a run of make sim."""
    stalls = {STALLS[job.stalls.input], STALLS[job.stalls.output]}
    side = "written" if job.lane.name == "compressor" else "read"
    for tensor in job.tensors:
        for stall in sorted(stalls):
            yield from hits(tensor, side, stall)


def main(argv: Sequence[str] | None = None) -> int:
    """0 if as much is hit as formal/coverage/thresholds.json says, 1 if not."""
    parser = argparse.ArgumentParser(prog="python -m formal.coverage", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(_PARTS)}; by default all")
    arguments = parser.parse_args(argv)
    if wrong := set(arguments.parts) - _PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(wrong))}; there is {', '.join(_PARTS)}")
    problems = [
        problem
        for name, part in _PARTS.items()
        if name in (arguments.parts or _PARTS)
        for problem in part()
    ]
    for problem in problems:
        print(f"planezip: {problem}", file=sys.stderr)
    return 1 if problems else 0


def functional() -> list[str]:
    """Count the bins that are hit and write the report; what is wrong, a line each."""
    seed = int(os.environ.get("COCOTB_RANDOM_SEED") or DEFAULT_SEED)
    counts: Counter[Bin] = Counter()
    simulators = ["verilator", *([] if icarus_missing() else ["icarus"])]
    for lane in LANES:
        if lane.name == "pair":
            continue
        for job in jobs(lane, simulators, seed, False):
            before = sum(map(bool, counts.values()))
            counts.update(job_bins(job))
            new = sum(map(bool, counts.values())) - before
            print(f"{lane.name}, {job.symbol_bits or 'both widths'}, {job.data}: {new} new bins",
                  flush=True)  # fmt: skip
    wanted = list(bins())
    missing = [bin_ for bin_ in wanted if not counts[bin_]]
    unknown = sorted(map(str, counts.keys() - set(wanted)))
    tables = Counter(str(bin_[1]) for bin_ in wanted)
    empty = Counter(str(bin_[1]) for bin_ in missing)
    for name, count in tables.items():
        print(f"{name:32} {count - empty[name]:5} of {count:5}")
    print(f"{len(wanted) - len(missing)} of {len(wanted)} bins, seed {seed}")
    document: dict[str, Any] = {
        "format": "planezip-functional-coverage",
        "version": 1,
        "seed": seed,
        "bins": len(wanted),
        "hit": len(wanted) - len(missing),
        "missing": [list(bin_) for bin_ in missing],
        "hits": {" / ".join(map(str, bin_)): counts[bin_] for bin_ in wanted},
    }
    path = ROOT / _REPORT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    for bin_ in missing:
        print("not hit:", *bin_, file=sys.stderr)
    problems = [f"hit, but no bin: {name}" for name in unknown]
    least = json.loads(THRESHOLDS.read_text())
    for key in ("bins", "hit"):
        if document[key] < least[key]:
            problems.append(
                f"{document[key]} {key}, fewer than {THRESHOLDS.name} says: {least[key]}"
            )
    return problems


_PARTS: Mapping[str, Callable[[], list[str]]] = {"functional": functional, "rtl": rtl.main}


if __name__ == "__main__":
    sys.exit(main())
