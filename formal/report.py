"""build/formal/report.json, what `make formal` found (formal/report.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from formal.prove import Verdict
from formal.solve import version

__all__ = ["table", "write"]


def table(verdicts: Sequence[Verdict]) -> str:
    """A line per property and one of sums."""
    width = max(len(verdict.name) for verdict in verdicts)
    head = f"{'property':{width}}  status   mode       depth  obligations  mutant  seconds"
    lines = [head]
    for v in verdicts:
        lines.append(
            f"{v.name:{width}}  {v.status:8} {v.mode:10} {v.depth:5}  {v.obligations:11}"
            f"  {'fails ' if v.mutant_fails else 'HOLDS '}  {v.seconds:7.1f}"
        )
    good = sum(v.passed for v in verdicts)
    obligations = sum(v.obligations for v in verdicts)
    lines.append(f"{good} of {len(verdicts)} properties, {obligations} obligations")
    return "\n".join(lines)


def write(path: Path, verdicts: Sequence[Verdict], solver: str, seconds: float) -> None:
    """Write the report."""
    document = {
        "format": "planezip-formal",
        "version": 1,
        "planezip": metadata.version("planezip"),
        "amaranth": metadata.version("amaranth"),
        "yosys": metadata.version("pyosys"),
        "solver": f"{solver} {version(solver)}",
        "seconds": round(seconds, 1),
        "properties": [asdict(verdict) for verdict in verdicts],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
