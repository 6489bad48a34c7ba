"""``planezip ratio``: how much tensors shrink, without compressing them."""

from __future__ import annotations

import argparse
import runpy
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from planezip.cli.errors import CliError
from planezip.cli.options import add_conversion, add_output
from planezip.cli.progress import Progress
from planezip.cli.report import CODEC, Measured, as_json, as_table

if TYPE_CHECKING:
    from planezip.cli.source import Source
    from planezip.model.registry import Encoding

__all__ = ["add_parser", "measure", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "ratio",
        description="Raw bytes over wire bytes of every tensor (headers, tags and padding "
        "included), and the share of the blocks that each tag encodes.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=".npy, .npz, .safetensors or .pz")
    parser.add_argument(
        "--codec",
        default=CODEC,
        metavar="NAMES",
        help="codecs to compare, with commas between, or all (default: PlaneZip)",
    )
    parser.add_argument(
        "--with",
        dest="plugins",
        action="append",
        default=[],
        metavar="FILE.py",
        help="run this file, which registers codecs, and compare them too; repeatable",
    )
    add_conversion(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from planezip.cli.files import in_bfloat16, open_sources
    from planezip.model import registry

    with ExitStack() as stack:
        stack.enter_context(registry.scope())
        stack.enter_context(_users_code(arguments.plugins))
        codecs = _codecs(arguments.codec, arguments.plugins)
        sources: list[Source] = []
        for path in arguments.files:
            sources += stack.enter_context(open_sources(path, arguments.bits_as))
        if arguments.bf16:
            sources = [in_bfloat16(source) for source in sources]
        total = sum(source.raw_bytes for source in sources)
        progress = stack.enter_context(Progress(total, arguments.quiet))
        measured = [measure(source, codecs, progress.add) for source in sources]
    names = [codec.name for codec in codecs]
    print(as_json(measured, names) if arguments.json else as_table(measured, names))
    return 0


def _codecs(names: str, plugins: Sequence[str]) -> list[Encoding]:
    from planezip.model import registry

    before = registry.encodings()
    for path in plugins:
        runpy.run_path(path)
    added = [e for e in registry.encodings() if e not in before]
    if plugins and not added:
        raise CliError(f"{', '.join(plugins)}: registers no codec: call register(...) there")
    if names == "all":
        return [*before, *added]
    return [*registry.encodings(names.split(",")), *added]


@contextmanager
def _users_code(paths: Sequence[str]) -> Iterator[None]:
    """An error in one of the files becomes one line that says where."""
    try:
        yield
    except Exception as error:
        places = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
        places.append((getattr(error, "filename", ""), getattr(error, "lineno", None)))
        here = [place for place in places if place[0] in paths and place[1]]
        if not here:
            raise
        path, line = here[-1]
        raise CliError(f"{path}, line {line}: {type(error).__name__}: {error}") from None


def measure(source: Source, codecs: Sequence[Encoding], add: Callable[[int], None]) -> Measured:
    """Size of a tensor in each codec, piece by piece; ``add`` hears of every byte."""
    import numpy as np

    from planezip.model import Tag
    from planezip.model.dtypes import symbol_bits
    from planezip.model.registry import tag_counts, to_blocks, wire_bytes

    w = symbol_bits(source.dtype)
    wire = {codec.name: 0 for codec in codecs}
    tags = np.zeros(len(Tag), np.int64)
    for piece in source.pieces():
        blocks = to_blocks(piece)
        for codec in codecs:
            wire[codec.name] += wire_bytes(codec, blocks, w)
        tags += tag_counts(blocks, w)
        add(piece.size)
    return Measured.of(source, wire, tags.tolist())
