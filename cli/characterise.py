"""``planezip characterise``: the paper's workload figures and tables, beside ours."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from planezip.cli.errors import CliError
from planezip.cli.tables import table

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "characterise",
        help="Tables I, III, IV and Figs. 1 and 3 of the paper, beside ours",
        description="Write Tables I, III and IV and Figs. 1 and 3 as JSON and SVG. Works from the "
        "traces and ratios that come with PlaneZip; --measure makes ratios anew (needs "
        "planezip[capture], takes minutes each).",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("build/eval"), help="(default: build/eval)"
    )
    parser.add_argument("--ratios", type=Path, metavar="FOLDER", help="ratios (default: ours)")
    parser.add_argument(
        "--measure",
        metavar="NAMES",
        help="measure these first, with commas between, or all; into --ratios",
    )
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="training images")
    parser.add_argument("--text", type=Path, metavar="FILE", help="training text")
    parser.add_argument("--no-plots", action="store_true", help="JSON only")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; exit code 1 if something that must agree does not."""
    from planezip.sim.characterise import characterise
    from planezip.sim.shipped import DATA

    if arguments.measure:
        _measure(arguments)
    elif arguments.ratios is not None and not arguments.ratios.is_dir():
        raise CliError(f"there is no folder {arguments.ratios}: `--measure NAMES` fills it")
    rows = characterise(
        arguments.output, arguments.ratios or DATA, not arguments.no_plots, lambda text: None
    )
    print(
        table(
            ["what must agree", "ours", "paper", "difference", "within"],
            [
                [
                    row["what"],
                    f"{row['ours']:.4g}",
                    f"{row['paper']:.4g}",
                    f"{row['difference_percent']:+.2f}%",
                    f"{row['tolerance_percent']}%" + ("" if row["agrees"] else "  NO"),
                ]
                for row in rows
            ],
        )
    )
    print(f"reports: {arguments.output}")
    return 0 if all(row["agrees"] for row in rows) else 1


def _measure(arguments: argparse.Namespace) -> None:
    from planezip.cli.capture_progress import CaptureProgress
    from planezip.sim.extra import require_capture
    from planezip.sim.measurements import MEASUREMENTS, measure

    if arguments.ratios is None:
        raise ValueError("--measure needs --ratios FOLDER for the results")
    every = arguments.measure == "all"
    names = list(MEASUREMENTS) if every else arguments.measure.split(",")
    for name in names:
        if name not in MEASUREMENTS:
            raise CliError(f"--measure must be all, or of {', '.join(MEASUREMENTS)}, not {name!r}")
    require_capture()
    from planezip.sim.workloads import ModelError

    for folder in (arguments.output, arguments.ratios):
        folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr)
        progress = CaptureProgress(name=name)
        try:
            measure(name, arguments.images, arguments.text, arguments.ratios, progress)
        except ModelError as error:
            if not every:
                raise
            print(f"  left out: {error}", file=sys.stderr)
        finally:
            progress.clear()
