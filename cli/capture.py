"""``planezip capture``: contents of saved activations, over consecutive iterations."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from planezip.cli.tables import table

if TYPE_CHECKING:
    from planezip.sim.ratios import Ratios
    from planezip.sim.trace import Trace

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "capture",
        help="write or measure the saved activations of consecutive training iterations",
        description="Train a model on the CPU and write, or measure, what its forward pass saves "
        "for the backward pass. Needs planezip[capture].",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="MODEL",
        help="timm:NAME, hf:NAME, pypi:efficientnet-lite0, or FILE.py:FUNCTION",
    )
    parser.add_argument("--batch", type=int, default=8, help="images or sequences (default: 8)")
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--images", type=Path, metavar="FOLDER", help="train on these images")
    data.add_argument("--text", type=Path, metavar="FILE", help="train on this text")
    parser.add_argument("--sequence", type=int, metavar="TOKENS", help="tokens of a sequence")
    parser.add_argument("--pretrained", action="store_true", help="the library's weights")
    parser.add_argument("--state", type=Path, metavar="FILE", help="start from a saved state")
    parser.add_argument("--save-state", type=Path, metavar="FILE", help="save it after training")
    parser.add_argument("--train-steps", type=int, default=0, metavar="N", help="train before")
    parser.add_argument("--train-batch", type=int, metavar="N", help="batch of this training")
    parser.add_argument("--train-sequence", type=int, metavar="TOKENS", help="its sequences")
    parser.add_argument("--learning-rate", type=float, metavar="R")
    parser.add_argument("--iterations", type=int, default=3, metavar="N", help="(default: 3)")
    parser.add_argument(
        "--type",
        choices=("bfloat16", "float32", "both"),
        default="bfloat16",
        help="type of the floating-point activations (default: bfloat16, to nearest even)",
    )
    parser.add_argument("--attention", choices=("non-fused", "fused"), default="non-fused")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, metavar="N", help="threads of torch")
    parser.add_argument(
        "--against",
        metavar="TRACE",
        help="map the tensors to this trace: a file, or the name of a shipped workload",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="write contents here")
    parser.add_argument(
        "--ratios",
        type=Path,
        metavar="FOLDER",
        help="measure all codecs and write FOLDER/TYPE.ratios.json.gz",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from planezip.cli.capture_progress import CaptureProgress
    from planezip.sim.extra import require_capture
    from planezip.sim.ratios import save_ratios
    from planezip.sim.session import Options, run_capture

    if arguments.output is None and arguments.ratios is None:
        raise ValueError("nothing to do: name a folder with --output or with --ratios")
    types = ("bfloat16", "float32") if arguments.type == "both" else (arguments.type,)
    options = Options(
        model=arguments.model,
        batch=arguments.batch,
        images=arguments.images,
        text=arguments.text,
        sequence=arguments.sequence,
        pretrained=arguments.pretrained,
        state=arguments.state,
        save_state=arguments.save_state,
        train_steps=arguments.train_steps,
        train_batch=arguments.train_batch,
        train_sequence=arguments.train_sequence,
        learning_rate=arguments.learning_rate,
        iterations=arguments.iterations,
        types=types,
        fused_attention=arguments.attention == "fused",
        seed=arguments.seed,
        threads=arguments.threads,
    )

    require_capture()
    if arguments.ratios is not None:
        arguments.ratios.mkdir(parents=True, exist_ok=True)
    progress = CaptureProgress(arguments.quiet)
    measured = run_capture(
        options,
        arguments.output,
        arguments.ratios is not None,
        _trace(arguments.against),
        progress,
    )
    progress.clear()
    for dtype, ratios in measured.items():
        save_ratios(ratios, arguments.ratios / f"{dtype}.ratios.json.gz")
    if measured:
        print(_summary(measured))
    return 0


def _trace(name: str | None) -> Trace | None:
    from planezip.sim.shipped import WORKLOADS, shipped_trace
    from planezip.sim.trace_file import load_trace

    if name is None:
        return None
    return shipped_trace(name) if name in WORKLOADS else load_trace(name)


def _summary(measured: dict[str, Ratios]) -> str:
    rows = []
    for dtype, ratios in measured.items():
        for name in ratios.tensors[0].wire_bytes:
            each = [f"{ratios.ratio(name, k):.3f}" for k in range(ratios.iterations)]
            rows.append([dtype, name, *each])
    some = next(iter(measured.values()))
    text = table(
        ["type", "codec", *(f"iteration {k}" for k in range(some.iterations))], rows, left=2
    )
    if some.trace_bytes:
        share = 100 * some.unmatched_bytes / some.trace_bytes
        text += f"\nsaved bytes of the trace without a counterpart here: {share:.1f}%"
    return text
