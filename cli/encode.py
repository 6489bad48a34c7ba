"""``planezip encode``: compress the tensors of a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planezip.cli.errors import CliError
from planezip.cli.options import add_conversion, add_output, add_threads
from planezip.cli.progress import Progress
from planezip.cli.report import CODEC, Measured, as_json, as_table

if TYPE_CHECKING:
    from planezip.cli.source import Source

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "encode",
        description="Compress all tensors of a file into one .pz file, and say what came of it.",
    )
    parser.add_argument("file", metavar="FILE", help=".npy, .npz or .safetensors")
    parser.add_argument("-o", "--output", metavar="FILE.pz", help="default: beside FILE")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument(
        "--no-index",
        action="store_true",
        help="leave out the chunk index (6 bytes per 4 KB), by which a chunk is read alone",
    )
    add_conversion(parser)
    add_threads(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from planezip.cli.files import in_bfloat16, open_sources
    from planezip.cli.output import check_free
    from planezip.model.container import Pieces, write_pieces

    with open_sources(arguments.file, arguments.bits_as) as sources:
        output = arguments.output or str(Path(arguments.file).with_suffix(".pz"))
        check_free(output, arguments.force)
        if arguments.bf16:
            sources = [in_bfloat16(source) for source in sources]
        with Progress(sum(s.raw_bytes for s in sources), arguments.quiet) as progress:
            if len({source.name for source in sources}) < len(sources):
                raise CliError(f"{arguments.file}: a name appears twice: rename the tensor")
            done: list[Measured] = []
            tensors = {
                s.name: Pieces(s.dtype, s.shape, _wire(s, done, arguments.threads, progress.add))
                for s in sources
            }
            write_pieces(output, tensors, index=not arguments.no_index)
    print(as_json(done, [CODEC]) if arguments.json else as_table(done, [CODEC]))
    return 0


def _wire(
    source: Source, done: list[Measured], threads: int, add: Callable[[int], None]
) -> Iterator[bytes]:
    """Wire bytes of a tensor, piece by piece; its sizes go to ``done`` at the end."""
    import numpy as np

    from planezip.model import Tag, encode_bytes
    from planezip.model.dtypes import symbol_bits
    from planezip.model.registry import tag_counts, to_blocks

    w = symbol_bits(source.dtype)
    wire_bytes, tags = 0, np.zeros(len(Tag), np.int64)
    for piece in source.pieces():
        payload = encode_bytes(piece.data, w, threads)
        wire_bytes += len(payload)
        tags += tag_counts(to_blocks(piece), w)
        add(piece.size)
        yield payload
    done.append(Measured.of(source, {CODEC: wire_bytes}, tags.tolist()))
