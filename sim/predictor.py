"""Predictor of compressed sizes (paper Section III-B).

Training repeats the same operators every iteration, so a saved activation is known by
the position of its producer in that sequence and its place among the results; the
table keeps the ratio that the engine last reported for it. Two variants share entries:
one per producer of Table III, and one for everything.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

__all__ = [
    "Predictor",
    "PredictorError",
    "Report",
    "Signature",
    "Variant",
    "load_predictor",
    "profiling_cost_ns",
    "save_predictor",
    "wire_error",
]

PREDICTOR_VERSION = 1


class PredictorError(ValueError):
    """A predictor file is not valid; the text says where and what helps."""


class Variant(StrEnum):
    """What entries of the table stand for."""

    TENSOR = "tensor"  # producing operator's position and slot
    OP_TYPE = "op_type"  # producer of Table III
    GLOBAL = "global"


@dataclass(frozen=True)
class Signature:
    """A saved activation: producing operator's position and slot, and Table III's name."""

    position: int
    slot: int
    category: str


@dataclass(frozen=True)
class Report:
    """Sizes of one transfer, as the engine reports them (sum of the chunk headers)."""

    signature: Signature
    raw_bytes: int
    wire_bytes: int


@dataclass
class Predictor:
    """Table of compression ratios.

    Parameters
    ----------
    variant : Variant
    table : dict of str to (raw, wire) bytes
        What was last reported for each entry.
    """

    variant: Variant = Variant.TENSOR
    table: dict[str, tuple[int, int]] = field(default_factory=dict)

    def key(self, signature: Signature) -> str:
        """Entry that ``signature`` uses."""
        if self.variant is Variant.TENSOR:
            return f"{signature.position}.{signature.slot}"
        return signature.category if self.variant is Variant.OP_TYPE else ""

    def predict(self, signature: Signature, raw_bytes: int) -> int:
        """Wire bytes of a tensor of ``raw_bytes``: rounded up; raw until there is a report."""
        raw, wire = self.table.get(self.key(signature), (1, 1))
        return -(-raw_bytes * wire // raw)

    def report(self, reports: Iterable[Report]) -> None:
        """Overwrite the entries of the tensors of one iteration.

        Tensors of the iteration that share an entry give it their common ratio. Entries
        of tensors that were not transferred stay as they are, so calling this for every
        iteration refreshes the table during training.
        """
        sums: dict[str, tuple[int, int]] = {}
        for r in reports:
            if r.raw_bytes < 1 or r.wire_bytes < 1:
                raise ValueError(f"sizes must be positive, not {r.raw_bytes!r}, {r.wire_bytes!r}")
            key = self.key(r.signature)
            raw, wire = sums.get(key, (0, 0))
            sums[key] = (raw + r.raw_bytes, wire + r.wire_bytes)
        self.table.update(sums)


def wire_error(predictor: Predictor, reports: Iterable[Report]) -> float:
    """Absolute errors of the predictions over the wire bytes of ``reports`` (Table IV)."""
    error = total = 0
    for r in reports:
        error += abs(predictor.predict(r.signature, r.raw_bytes) - r.wire_bytes)
        total += r.wire_bytes
    return error / total if total else 0.0


def profiling_cost_ns(raw_bytes: Mapping[Signature, int], engine_bytes_per_s: int) -> int:
    """Engine time of a profiling iteration, ns.

    The engine compresses every saved tensor once into a scratch buffer, at its own rate
    and without the link. Overlapped with the iteration's compute it costs only what
    exceeds that.
    """
    total = sum(raw_bytes.values())
    return -(-total * 1_000_000_000 // engine_bytes_per_s)


def save_predictor(predictor: Predictor, path: Path | str) -> None:
    """Write the table to ``path``; equal tables give equal files."""
    data = {
        "format": "planezip-predictor",
        "version": PREDICTOR_VERSION,
        "variant": predictor.variant,
        "table": dict(sorted(predictor.table.items())),
    }
    text = json.dumps(data, separators=(",", ":"))
    Path(path).write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def load_predictor(path: Path | str) -> Predictor:
    """Read a table.

    Raises
    ------
    PredictorError
        If the file cannot be read or is not valid.
    """
    try:
        data = json.loads(gzip.decompress(Path(path).read_bytes()))
        if not isinstance(data, dict) or data.get("format") != "planezip-predictor":
            raise PredictorError("not a predictor table")
        if data.get("version") != PREDICTOR_VERSION:
            raise PredictorError(f"its version is not {PREDICTOR_VERSION}")
        table = {}
        for key, (raw, wire) in data["table"].items():
            if type(raw) is not int or type(wire) is not int or raw < 1 or wire < 1:
                raise PredictorError(f"entry {key!r} is not two positive sizes")
            table[key] = (raw, wire)
        return Predictor(Variant(data["variant"]), table)
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ) as error:
        raise PredictorError(
            f"{path}: cannot be read as a predictor table ({error}); save it anew"
        ) from error
