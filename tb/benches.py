"""Run the unit benches under pytest, two files at a time, with a line per file."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tb.places import ROOT

__all__ = ["OUTCOMES", "run_benches"]

OUTCOMES = ("passed", "failed", "skipped")
_LINE = re.compile(r"\[(gw\d+)\] \[.*?\] (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S+?)::")


def run_benches(folder: str = "tb", workers: int = 2, *, full: bool = True) -> dict[str, int]:
    """Run the tests of ``folder``; how many passed, failed and were skipped.

    Those that are marked slow (tb/marks.py) only if ``full``.

    Failures are printed as pytest prints them. A pytest that could not start counts as
    one failure.
    """
    # In the order of the names: the largest file first would leave minutes without a line.
    options = ["-v", "--tb=short", "--no-header", "-rfEs", "-n", str(workers)]
    options += ["--dist=loadfile", "--no-loadscope-reorder"]
    options += ["-m", "slow or not slow" if full else "not slow"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", folder, *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    total: Counter[str] = Counter()
    at_work: dict[str, tuple[str, Counter[str]]] = {}
    rest = False
    for line in process.stdout:
        found = _LINE.match(line)
        if found and not rest:
            worker, outcome, file = found.groups()
            if worker in at_work and at_work[worker][0] != file:
                _tell(*at_work.pop(worker))
            counts = at_work.setdefault(worker, (file, Counter()))[1]
            name = {"PASSED": "passed", "SKIPPED": "skipped"}.get(outcome, "failed")
            counts[name] += 1
            total[name] += 1
        elif rest or (line.startswith("=") and "test session starts" not in line):
            if not rest:
                for file, counts in at_work.values():
                    _tell(file, counts)
            rest = True
            print(line, end="", flush=True)
    if process.wait() and not total["failed"]:
        total["failed"] = 1
    return {name: total[name] for name in OUTCOMES}


def _tell(file: str, counts: Counter[str]) -> None:
    words = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
    print(f"{'FAIL' if counts['failed'] else 'ok  '} {Path(file).name}: {words}", flush=True)
