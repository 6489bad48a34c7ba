"""``planezip inspect``: what is in a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planezip.cli.options import add_output
from planezip.cli.progress import Progress
from planezip.cli.tables import table

if TYPE_CHECKING:
    from planezip.cli.source import Source
    from planezip.model.container import File

__all__ = ["add_parser", "run"]

VERSION = 1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "inspect",
        description="List the tensors of a file. Reads headers only, unless --verify is there.",
    )
    parser.add_argument("file", metavar="FILE", help=".pz, .npy, .npz or .safetensors")
    parser.add_argument(
        "--verify", action="store_true", help="read and decode everything; an error if damaged"
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from planezip.cli.files import is_pz, open_sources
    from planezip.model.container import File

    with open_sources(arguments.file) as sources:
        if arguments.verify:
            with Progress(sum(s.raw_bytes for s in sources), arguments.quiet) as progress:
                for source in sources:
                    for piece in source.pieces():
                        progress.add(piece.size)
        rows = [_row(source) for source in sources]
    if is_pz(arguments.file):
        with File(arguments.file) as file:
            rows = [{**row, **_compressed(file, row["name"])} for row in rows]
    report = {
        "schema": "planezip-inspect",
        "version": VERSION,
        "file": arguments.file,
        "verified": arguments.verify,
        "tensors": rows,
    }
    print(json.dumps(report, indent=1) if arguments.json else _text(rows, arguments.verify))
    return 0


def _row(source: Source) -> dict[str, Any]:
    from planezip.model.dtypes import symbol_bits

    return {
        "name": source.name,
        "dtype": source.dtype,
        "shape": list(source.shape),
        "symbol_bits": symbol_bits(source.dtype),
        "raw_bytes": source.raw_bytes,
    }


def _compressed(file: File, name: str) -> dict[str, Any]:
    entry = file.entries[name]
    raw_chunks = None
    if entry.index is not None:
        raw_chunks = int((entry.index["size"] == entry.chunk_raw_bytes()).sum())
    return {
        "wire_bytes": entry.wire_bytes,
        "chunks": entry.chunk_count,
        "raw_chunks": raw_chunks,
        "crc32": f"{entry.crc32:08x}",
    }


def _text(rows: Sequence[dict[str, Any]], verified: bool) -> str:
    if not rows:
        return "no tensors"
    keys = [key for key in rows[0] if key != "symbol_bits"]
    lines = [[_cell(row[key]) for key in keys] for row in rows]
    heads = [key.replace("_", " ") for key in keys]
    return table(heads, lines, left=3) + ("\nverified: every chunk decodes" if verified else "")


def _cell(value: Any) -> str:
    if value is None:
        return "no index"
    if isinstance(value, list):
        return "x".join(map(str, value)) or "scalar"
    return f"{value:,}" if isinstance(value, int) else str(value)
