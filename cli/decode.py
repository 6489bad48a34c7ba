"""``planezip decode``: decompress a .pz file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planezip.cli.errors import CliError
from planezip.cli.options import add_threads
from planezip.cli.progress import Progress

if TYPE_CHECKING:
    from planezip.cli.source import Piece, Source

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "decode", description="Decompress the tensors of a .pz file, bit for bit."
    )
    parser.add_argument("file", metavar="FILE.pz")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="its name ends in .npy, .npz or .safetensors (default: .safetensors beside FILE)",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument(
        "--tensor", action="append", metavar="NAME", help="only this tensor; repeatable"
    )
    add_threads(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from planezip.cli.files import is_pz, open_sources
    from planezip.cli.output import WRITERS, check_free
    from planezip.model.newfile import new_file

    if not is_pz(arguments.file):
        raise CliError(f"{arguments.file}: not a .pz file: make one with `planezip encode`")
    with open_sources(arguments.file, threads=arguments.threads) as sources:
        output = arguments.output or str(Path(arguments.file).with_suffix(".safetensors"))
        suffix = Path(output).suffix
        if suffix not in WRITERS:
            raise CliError(f"{output}: the name must end in {', '.join(WRITERS)}")
        check_free(output, arguments.force)
        chosen = _chosen(sources, arguments.tensor)
        total = sum(source.raw_bytes for source in chosen)
        with Progress(total, arguments.quiet) as progress, new_file(output) as file:
            WRITERS[suffix](file, [_counted(source, progress) for source in chosen])
    nameless = sorted({s.dtype for s in chosen if s.dtype.startswith(("bfloat", "float8"))})
    if suffix != ".safetensors" and nameless:
        print(
            f"planezip: {output} cannot name {', '.join(nameless)}: NumPy will read bare bytes; "
            "view them as ml_dtypes, or decode to .safetensors",
            file=sys.stderr,
        )
    return 0


def _chosen(sources: list[Source], names: list[str] | None) -> list[Source]:
    there = {source.name: source for source in sources}
    for name in names or ():
        if name not in there:
            raise CliError(f"no tensor {name!r}: `planezip inspect` lists them")
    return sources if names is None else [there[name] for name in dict.fromkeys(names)]


def _counted(source: Source, progress: Progress) -> Source:
    """``source`` with its pieces reported to ``progress``."""

    def pieces() -> Iterator[Piece]:
        for piece in source.pieces():
            yield piece
            progress.add(piece.size)

    return replace(source, pieces=pieces)
