"""Points of Verilator's line, branch and toggle coverage, and those that cannot be reached.

A point of kind *line* is a block of statements, one of kind *branch* a way through an ``if`` or
a ``?:``, one of kind *toggle* a bit of a signal that rises or falls.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "Exclusion", "Point", "exclusions", "points", "signals", "split"]

KINDS = ("line", "branch", "toggle")
_EXCLUSIONS = Path(__file__).with_name("exclusions.toml")
_TOGGLE = re.compile(r"(.*?)(?:\[(\d+)\])?:(0->1|1->0)$")


@dataclass(frozen=True)
class Point:
    """A point of a lane.

    Attributes
    ----------
    kind : {"line", "branch", "toggle"}
    module : str
        Path of the instance in the lane, with dots; empty for the lane itself.
    line, column : int
        Of the exported Verilog.
    what : str
        Verilator's name of the branch; of a toggle the signal, the bit, and the way it goes.
    verilog : str
        The line itself.
    hits : int
    """

    kind: str
    module: str
    line: int
    column: int
    what: str
    verilog: str
    hits: int


@dataclass(frozen=True)
class Exclusion:
    """Points that cannot be reached: the three patterns match the whole of what they name."""

    lane: str
    kind: str
    module: str
    what: str
    verilog: str
    reason: str

    def matches(self, lane: str, point: Point) -> bool:
        """Whether ``point`` of ``lane`` is one of them."""
        return (self.lane, self.kind) == (lane, point.kind) and all(
            re.fullmatch(getattr(self, part), getattr(point, part))
            for part in ("module", "what", "verilog")
        )


def exclusions(path: Path = _EXCLUSIONS) -> list[Exclusion]:
    """What the file has, by default exclusions.toml beside this one."""
    return [Exclusion(**entry) for entry in tomllib.loads(path.read_text()).get("exclusion", [])]


def points(path: Path, file: str, text: str, top: str) -> Iterator[Point]:
    """Points of a Verilog file in coverage.dat; ``top`` is the path of the lane's instance."""
    source = [line.strip() for line in text.splitlines()]
    with path.open() as lines:
        for row in lines:
            if not row.startswith("C '"):
                continue
            key, _, hits = row[3:].rpartition("' ")
            fields = dict(field.split("\2", 1) for field in key.split("\1") if field)
            if fields["f"] != file:
                continue
            kind = fields["page"].partition("/")[0].removeprefix("v_")
            module = _plain(fields["h"]).removeprefix(top).lstrip(".")
            line, column = int(fields["l"]), int(fields["n"])
            what = _plain(fields["o"])
            yield Point(kind, module, line, column, what, source[line - 1], int(hits))


def _plain(name: str) -> str:
    """A name as it stands in the Verilog: Verilator writes ``__02e`` for a dot."""
    return re.sub(r"__0([2-7][0-9a-fA-F])", lambda code: chr(int(code[1], 16)), name)


def split(
    lane: str, found: Iterable[Point], rules: Sequence[Exclusion]
) -> tuple[list[Point], list[tuple[Exclusion, int]], list[str]]:
    """Points that count, the number of points of each exclusion, and what is wrong with them.

    An exclusion is wrong if a point of it was hit, or if it has none.
    """
    own = [rule for rule in rules if rule.lane == lane]
    excluded = dict.fromkeys(own, 0)
    kept, wrong = [], []
    for point in found:
        rule = next((rule for rule in own if rule.matches(lane, point)), None)
        if rule is None:
            kept.append(point)
            continue
        excluded[rule] += 1
        if point.hits:
            wrong.append(f"{lane}: excluded, but hit: {point.kind} {point.module} {point.what}")
    wrong += [
        f"{lane}: excludes nothing: {rule.kind} {rule.module} {rule.verilog}"
        for rule, count in excluded.items()
        if not count
    ]
    return kept, list(excluded.items()), wrong


def signals(missed: Iterable[Point]) -> Iterator[Mapping[str, Any]]:
    """Missed toggles, a row a signal: the bits that never rose, and those that never fell."""
    parsed = []
    for point in missed:
        if not (match := _TOGGLE.match(point.what)):
            raise ValueError(f"{point.what!r} is no toggle as Verilator 5.48 writes it")
        parsed.append((point.module, match[1], point.line, match[3], int(match[2] or 0)))
    for (module, signal, line), group in groupby(sorted(parsed), key=lambda item: item[:3]):
        bits: dict[str, list[int]] = {"0->1": [], "1->0": []}
        for *_, way, bit in group:
            bits[way].append(bit)
        yield {
            "module": module,
            "signal": signal,
            "line": line,
            "never_rose": _ranges(bits["0->1"]),
            "never_fell": _ranges(bits["1->0"]),
        }


def _ranges(bits: Sequence[int]) -> str:
    """ "0-3 7" for the bits 0, 1, 2, 3 and 7."""
    found = [bit for bit in bits if bit - 1 not in bits]
    ends = [bit for bit in bits if bit + 1 not in bits]
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(found, ends, strict=True))
