"""``planezip trace``: record the operators of a PyTorch training step."""

from __future__ import annotations

import argparse
from pathlib import Path

from planezip.sim.trace import Trace

__all__ = ["add_parser", "run", "summary"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "trace",
        help="record the operators and saved activations of a PyTorch training step",
        description="Record one training iteration: operators, FLOPs, bytes, storages, the saved "
        "activations. Runs on shapes alone, without data and in seconds. Needs planezip[capture].",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--model",
        metavar="MODEL",
        help="timm:NAME, hf:NAME, pypi:efficientnet-lite0, or FILE.py:FUNCTION "
        "(FUNCTION(batch) returns (model, inputs, loss); loss(model, *inputs) is a scalar)",
    )
    what.add_argument(
        "--all",
        metavar="FOLDER",
        type=Path,
        help="write the traces that come with PlaneZip",
    )
    parser.add_argument("--batch", type=int, default=8, help="images or sequences (default: 8)")
    parser.add_argument("--sequence", type=int, metavar="TOKENS", help="tokens of a sequence")
    parser.add_argument(
        "--attention",
        choices=("non-fused", "fused"),
        default="non-fused",
        help="attention of Transformers (default: non-fused, which saves the softmax)",
    )
    parser.add_argument(
        "--device",
        choices=("meta", "cpu"),
        default="meta",
        help="shapes only, or real tensors",
    )
    parser.add_argument("--pretrained", action="store_true", help="load weights (with cpu)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the trace here")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from planezip.sim.record import record_trace, record_workloads
    from planezip.sim.trace_file import save_trace

    if arguments.all is not None:
        for name, trace in record_workloads(arguments.all):
            print(f"{name}\n{summary(trace)}")
        return 0
    trace = record_trace(
        arguments.model,
        arguments.batch,
        device=arguments.device,
        fused_attention=arguments.attention == "fused",
        sequence=arguments.sequence,
        pretrained=arguments.pretrained,
    )
    if arguments.output is not None:
        save_trace(trace, arguments.output)
    print(summary(trace))
    return 0


def summary(trace: Trace) -> str:
    """What a person wants to know of a trace, in lines."""
    saved = sum(trace.storages[n].bytes for n in trace.saved)
    ops = trace.notes.get("operators", {})
    lines = [
        f"  {trace.model}, batch {trace.batch}, {trace.parameter_count / 1e6:.1f} M parameters",
        f"  {len(trace.saved)} saved tensors, {saved / 1e9:.2f} GB",
    ]
    if ops:
        lines.append(
            f"  {ops['dispatched']} operators dispatched, {ops['computing']} of them compute, "
            f"{ops['views']} only make views or allocate"
        )
    excluded = {k: len(v) for k, v in trace.notes.get("excluded", {}).items() if v}
    if excluded:
        text = ", ".join(f"{count} ({reason})" for reason, count in excluded.items())
        lines.append(f"  read in the backward pass but not evictable: {text}")
    differences = trace.notes.get("saved_tensor_hooks", {})
    for key, where in (
        ("only_in_trace", "trace"),
        ("only_in_hooks", "saved-tensor hooks"),
    ):
        for number, why in differences.get(key, []):
            storage = trace.storages[number]
            lines.append(f"  only in the {where}: storage {number} ({storage.bytes} bytes), {why}")
    return "\n".join(lines)
