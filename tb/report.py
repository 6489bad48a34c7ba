"""build/sim/report.json, what `make sim` found (docs/sim.md, tb/report.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Report", "Run", "table"]

_COLUMNS = (
    ("component", "component"),
    ("symbol_bits", "bits"),
    ("data", "data"),
    ("stalls", "stalls"),
    ("simulator", "simulator"),
    ("blocks", "blocks"),
    ("cycles", "cycles"),
    ("cycles_per_block_mean", "a block"),
    ("cycles_per_block_max", "worst 32"),
    ("latency_cycles", "latency"),
    ("mismatches", "wrong"),
)


@dataclass(frozen=True)
class Run:
    """One run of a lane; the fields are those of the schema."""

    component: str
    symbol_bits: int | None
    data: str
    stalls: str
    blocks: int
    tensors: int
    cycles: int
    cycles_per_block_mean: float
    cycles_per_block_max: float
    latency_cycles: int
    mismatches: int
    simulator: str
    simulator_version: str
    seed: int
    seconds: float
    problems: tuple[str, ...] = ()
    errors_injected: int | None = None
    errors_agreed: int | None = None

    @property
    def passed(self) -> bool:
        agreed = self.errors_injected == self.errors_agreed
        return self.blocks > 0 and not self.mismatches and not self.problems and agreed

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        for name in ("errors_injected", "errors_agreed"):
            if fields[name] is None:
                del fields[name]
        return fields


@dataclass(frozen=True)
class Report:
    """All runs, and how many unit benches passed, failed and were skipped."""

    version: str
    full: bool
    benches: dict[str, int]
    runs: Sequence[Run]

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "schema": "planezip.sim/1",
            "planezip": self.version,
            "full": self.full,
            "benches": self.benches,
            "runs": [run.to_json() for run in self.runs],
        }
        path.write_text(json.dumps(document, indent=2) + "\n")


def table(runs: Sequence[Run]) -> str:
    """The runs as text, a line each."""
    rows = [[title for _, title in _COLUMNS]]
    rows += [[_cell(getattr(run, name)) for name, _ in _COLUMNS] for run in runs]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k in (0, 2, 3, 4) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _cell(value: object) -> str:
    if value is None:
        return "both"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
