"""Options that several commands share."""

from __future__ import annotations

import argparse
import os

__all__ = ["add_conversion", "add_output", "add_threads"]


def add_conversion(parser: argparse.ArgumentParser) -> None:
    """``--bf16`` and ``--bits-as``."""
    parser.add_argument(
        "--bf16",
        action="store_true",
        help="round float32 tensors to bfloat16 first (to nearest, ties to even)",
    )
    parser.add_argument(
        "--bits-as",
        choices=("bfloat16", "float16"),
        help="take uint16 and untyped 2-byte elements as this (NumPy files have no bfloat16)",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """``--json`` and ``--quiet``."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def add_threads(parser: argparse.ArgumentParser) -> None:
    """``--threads``."""
    parser.add_argument(
        "--threads",
        type=_positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="threads that work; the result does not depend on it (default: one per CPU)",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, not {text!r}")
    return int(text)
