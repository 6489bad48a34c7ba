"""The table and the JSON of sizes that ``ratio`` and ``encode`` print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planezip.cli.tables import table

if TYPE_CHECKING:
    from planezip.cli.source import Source

__all__ = ["Measured", "as_json", "as_table"]

VERSION = 1
CODEC = "PlaneZip"
TAGS = ("RAW", "ZVC", "DBX", "BX", "ZBX")


@dataclass(frozen=True)
class Measured:
    """Sizes of one tensor.

    Attributes
    ----------
    file, name, dtype : str
    shape : tuple of int
    symbol_bits, raw_bytes : int
    wire_bytes : dict of str to int
        By codec.
    tags : dict of str to int
        Blocks of each tag in the PlaneZip codec.
    """

    file: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    symbol_bits: int
    raw_bytes: int
    wire_bytes: dict[str, int]
    tags: dict[str, int]

    @classmethod
    def of(cls, source: Source, wire_bytes: dict[str, int], tags: Sequence[int]) -> Measured:
        """The sizes of ``source``, with the blocks of each tag in order."""
        from planezip.model.dtypes import symbol_bits

        return cls(
            file=source.file,
            name=source.name,
            dtype=source.dtype,
            shape=source.shape,
            symbol_bits=symbol_bits(source.dtype),
            raw_bytes=source.raw_bytes,
            wire_bytes=wire_bytes,
            tags=dict(zip(TAGS, tags, strict=True)),
        )


def _total(
    measured: Sequence[Measured], codecs: Sequence[str]
) -> tuple[int, dict[str, int], dict[str, int]]:
    raw = sum(m.raw_bytes for m in measured)
    wire = {codec: sum(m.wire_bytes[codec] for m in measured) for codec in codecs}
    return raw, wire, {tag: sum(m.tags[tag] for m in measured) for tag in TAGS}


def _ratios(raw: int, wire: dict[str, int]) -> dict[str, float | None]:
    return {codec: raw / count if count else None for codec, count in wire.items()}


def as_json(measured: Sequence[Measured], codecs: Sequence[str]) -> str:
    """JSON of the schema ``cli/schemas/ratio.json``."""
    tensors: list[dict[str, Any]] = [
        {
            "file": m.file,
            "name": m.name,
            "dtype": m.dtype,
            "shape": list(m.shape),
            "symbol_bits": m.symbol_bits,
            "raw_bytes": m.raw_bytes,
            "wire_bytes": m.wire_bytes,
            "ratio": _ratios(m.raw_bytes, m.wire_bytes),
            "tags": m.tags,
        }
        for m in measured
    ]
    raw, wire, tags = _total(measured, codecs)
    total = {"raw_bytes": raw, "wire_bytes": wire, "ratio": _ratios(raw, wire), "tags": tags}
    report = {
        "schema": "planezip-ratio",
        "version": VERSION,
        "codecs": list(codecs),
        "tensors": tensors,
        "total": total,
    }
    return json.dumps(report, indent=1)


def as_table(measured: Sequence[Measured], codecs: Sequence[str]) -> str:
    """One line per tensor and, for several, the total: ratios, and the share of each tag."""
    if not measured:
        return "no tensors"
    head = ["tensor", "dtype", "shape", "bytes", *codecs, *(f"{tag}%" for tag in TAGS)]
    several = len({m.file for m in measured}) > 1

    def line(cells: list[str], raw: int, wire: dict[str, int], counts: dict[str, int]) -> list[str]:
        ratios = [f"{r:.3f}" if r else "-" for r in _ratios(raw, wire).values()]
        blocks = sum(counts.values())
        shares = [f"{100 * n / blocks:.1f}" if blocks else "-" for n in counts.values()]
        return [*cells, f"{raw:,}", *ratios, *shares]

    rows = [
        line(
            [
                _label(m) if several else m.name,
                m.dtype,
                "x".join(map(str, m.shape)) or "scalar",
            ],
            *(m.raw_bytes, m.wire_bytes, m.tags),
        )
        for m in measured
    ]
    if len(measured) > 1:
        rows.append(line(["total", "", ""], *_total(measured, codecs)))
    return table(head, rows, left=3)


def _label(m: Measured) -> str:
    """File and name of a tensor; a .npy file names it already."""
    return m.file if m.file.endswith(".npy") else f"{m.file}: {m.name}"
