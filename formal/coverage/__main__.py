"""`make coverage`: bins that the data of make sim hits, to build/coverage/functional.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from formal.coverage.bins import STALLS, Bin, bins
from formal.coverage.walk import hits
from tb.harness.lanes import LANES
from tb.jobs import Job, jobs
from tb.places import ROOT
from tb.run import DEFAULT_SEED

__all__ = ["main"]

_REPORT = Path("build") / "coverage" / "functional.json"
_THRESHOLDS = Path(__file__).with_name("thresholds.json")


def job_bins(job: Job) -> Iterator[Bin]:
    """Bins of all tensors of a run of make sim."""
    stalls = {STALLS[job.stalls.input], STALLS[job.stalls.output]}
    side = "written" if job.lane.name == "compressor" else "read"
    for tensor in job.tensors:
        for stall in sorted(stalls):
            yield from hits(tensor, side, stall)


def main(argv: Sequence[str] | None = None) -> int:
    """0 if as many bins are hit as formal/coverage/thresholds.json says, 1 if not."""
    parser = argparse.ArgumentParser(prog="python -m formal.coverage", description=__doc__)
    parser.parse_args(argv)
    seed = int(os.environ.get("COCOTB_RANDOM_SEED") or DEFAULT_SEED)
    counts: Counter[Bin] = Counter()
    for lane in LANES:
        if lane.name == "pair":
            continue
        for job in jobs(lane, ("verilator", "icarus"), seed, False):
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
    document = {
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
    for name in unknown:
        print("hit, but no bin:", name, file=sys.stderr)
    least = json.loads(_THRESHOLDS.read_text())
    few = len(wanted) < least["bins"] or len(wanted) - len(missing) < least["hit"]
    if few:
        print(f"planezip: fewer than {_THRESHOLDS.name} says: {least}", file=sys.stderr)
    return 1 if few or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
