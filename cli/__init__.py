"""The ``planezip`` command.

Every subcommand is a module ``planezip.cli.NAME`` with ``add_parser(subparsers)`` and
``run(arguments) -> exit code``; it is named in ``COMMANDS`` and imported only when it is
called, and imports numpy and the like only in ``run``.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence

from planezip.cli.errors import CliError
from planezip.cli.tables import printable

__all__ = ["COMMANDS", "CliError", "main"]

COMMANDS = {
    "ratio": "compression ratio of the tensors in .npy, .npz, .safetensors and .pz files",
    "encode": "compress .npy, .npz and .safetensors files to .pz",
    "decode": "decompress .pz files to .npy, .npz or .safetensors",
    "inspect": "what is in a file",
    "capture": "write or measure the saved activations of consecutive training iterations",
    "plan": "what to keep, swap and drop of a model within a memory budget",
    "sweep": "training time against the memory budget",
    "characterise": "Tables I, III, IV and Figs. 1 and 3 of the paper, beside ours",
    "trace": "record the operators and saved activations of a PyTorch training step",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code (2: bad input, one line on stderr)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    arguments = _parse(sys.argv[1:] if argv is None else list(argv))
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except (CliError, ValueError, OSError, MemoryError, ImportError) as error:
        print(f"planezip: {_message(error)}", file=sys.stderr)
        return 2


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="planezip", description="Lossless compression of training activations."
    )
    parser.add_argument("--version", action=_Version)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    name = argv[0] if argv else ""
    if name in COMMANDS:
        importlib.import_module(f"planezip.cli.{name}").add_parser(subparsers)
    else:  # help, or an error that names the commands
        for command, text in COMMANDS.items():
            subparsers.add_parser(command, help=text)
    return parser.parse_args(argv)


class _Version(argparse.Action):
    """``--version``, looked up only when asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"planezip {version('planezip')}")
        parser.exit()


def _message(error: BaseException) -> str:
    """One line for a person."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, MemoryError):
        text = f"out of memory: {text}".removesuffix(": ")
    return printable(" ".join(text.split())) or type(error).__name__
