"""Options and input that ``planezip plan`` and ``planezip sweep`` share."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from planezip.cli.errors import CliError

if TYPE_CHECKING:
    from planezip.sim.graph import Graph
    from planezip.sim.sizes import Sizes
    from planezip.sim.trace import Trace

__all__ = ["add_input", "load", "parse_bytes", "unit"]

_LARGEST = 10**18
_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{p}B": 1000 ** (k + 1) for k, p in enumerate("KMGT")}
_UNITS |= {f"{p}IB": 1024 ** (k + 1) for k, p in enumerate("KMGT")}


def parse_bytes(text: str) -> int:
    """``12GB`` (1e9), ``11.5GiB`` (2**30) or a plain number of bytes."""
    match = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].upper() not in _UNITS:
        raise argparse.ArgumentTypeError(f"must be a size such as 12GB or 11.5GiB, not {text!r}")
    size = int(float(match[1]) * _UNITS[match[2].upper()])
    if size > _LARGEST:
        raise argparse.ArgumentTypeError(f"must be at most {_LARGEST} bytes, not {text!r}")
    return size


def unit(size_bytes: int) -> tuple[str, float]:
    """Name and bytes of the decimal unit in which to show ``size_bytes``."""
    for name, scale in (("GB", 1e9), ("MB", 1e6)):
        if size_bytes >= scale:
            return name, scale
    return "kB", 1e3


def add_input(parser: argparse.ArgumentParser) -> None:
    """``--trace``, ``--platform`` and ``--ratios``."""
    parser.add_argument(
        "--trace",
        required=True,
        metavar="TRACE",
        help="file that `planezip trace` wrote, a DTR log (.log, .log.gz), or a model that comes "
        "with PlaneZip: resnet50, densenet121, efficientnet_b0, vit_b16, gpt2, gpt2_fused",
    )
    parser.add_argument(
        "--platform",
        required=True,
        metavar="PLATFORM",
        help="A, B, H100, Grace, or a .toml file",
    )
    parser.add_argument(
        "--ratios",
        type=Path,
        metavar="FILE",
        help="what `planezip capture --ratios` measured (default: the paper's Table III)",
    )


def load(arguments: argparse.Namespace) -> tuple[Graph, Sizes]:
    """Graph and sizes of the options."""
    from planezip.sim.build_graph import build_graph
    from planezip.sim.platform import load_platform
    from planezip.sim.ratios import load_ratios, placed
    from planezip.sim.sizes import captured_sizes, table_sizes

    graph = build_graph(_trace(arguments.trace), load_platform(arguments.platform))
    if arguments.ratios is None:
        return graph, table_sizes(graph)
    ratios = load_ratios(arguments.ratios)
    if ratios.model != graph.trace.model:
        raise CliError(
            f"{arguments.ratios} is of {ratios.model}, not of {graph.trace.model}: "
            "measure this model with `planezip capture --ratios`"
        )
    dtype = "bfloat16" if graph.platform.float_bytes == 2 else "float32"
    if ratios.dtype != dtype:
        raise CliError(
            f"{arguments.ratios} has sizes of {ratios.dtype}, but platform "
            f"{graph.platform.name} trains in {dtype}: `planezip capture --type {dtype}`"
        )
    return graph, captured_sizes(graph, placed(ratios, graph.trace), arguments.ratios.name)


def _trace(name: str) -> Trace:
    from planezip.sim.dtr import import_dtr_log
    from planezip.sim.shipped import WORKLOADS, shipped_trace
    from planezip.sim.trace_file import load_trace

    if name in WORKLOADS:
        return shipped_trace(name)
    if name.endswith((".log", ".log.gz")):
        return import_dtr_log(name)
    return load_trace(name)
