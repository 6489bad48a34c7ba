"""``planezip plan``: what to keep, swap and drop of a model within a memory budget."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planezip.cli.errors import CliError
from planezip.cli.planning import add_input, load, parse_bytes, unit
from planezip.cli.tables import table

if TYPE_CHECKING:
    from planezip.sim.graph import Graph

__all__ = ["add_parser", "run"]

_LISTED = 12


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to ``subparsers``."""
    parser = subparsers.add_parser(
        "plan",
        help="what to keep, swap and drop of a model within a memory budget",
        description="Plan one training iteration within a budget for activations, simulate and "
        "check it, and compare it with swaps without compression and with ZVC.",
    )
    add_input(parser)
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument(
        "--budget", type=parse_bytes, metavar="SIZE", help="for activations: 12GB, 11.5GiB"
    )
    budget.add_argument(
        "--device-memory",
        type=parse_bytes,
        metavar="SIZE",
        help="of the GPU: parameters, gradients and optimizer state are subtracted",
    )
    for word in ("keep", "swap", "drop"):
        parser.add_argument(
            f"--{word}",
            action="append",
            default=[],
            metavar="OP[.SLOT]",
            help=f"what if: {word} the saved tensor of this operator of the trace",
        )
    parser.add_argument("--all", action="store_true", help="list every tensor")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it here as JSON")
    parser.add_argument(
        "--timeline", type=Path, metavar="FILE", help="write a timeline for ui.perfetto.dev"
    )
    parser.add_argument("--events", type=Path, metavar="FILE", help="write the event log")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from planezip.sim.advise import VARIANTS, advise, plan_json
    from planezip.sim.plan import InfeasibleError
    from planezip.sim.timeline import timeline

    graph, sizes = load(arguments)
    budget = _budget(arguments, graph)
    pins = _pins(arguments, graph)
    found = {}
    for variant in VARIANTS:
        try:
            found[variant] = advise(graph, sizes, budget, variant, pins)
        except InfeasibleError:
            if variant == "PlaneZip" and not found:
                raise
    best = found["PlaneZip"] if "PlaneZip" in found else next(iter(found.values()))
    plan = plan_json(graph, sizes, best, budget)
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(plan, indent=1) + "\n", "utf-8")
    if arguments.timeline is not None:
        arguments.timeline.write_text(json.dumps(timeline(best.log)) + "\n", "utf-8")
    if arguments.events is not None:
        best.log.save(arguments.events)
    if arguments.json:
        print(json.dumps(plan, indent=1))
        return 0
    name, scale = unit(graph.peak_bytes)
    print(
        f"{graph.trace.model}, batch {graph.trace.batch}, platform {graph.platform.name}: "
        f"peak {graph.peak_bytes / scale:.2f} {name}, budget {budget / scale:.2f} {name}, "
        f"ratios: {sizes.source}"
    )
    sizes_shown = [f"{what} {name}" for what in ("peak", "swap", "wire", "host")]
    head = ("engine", "ms", "overhead%", "replay%", "stall%", *sizes_shown, "host waste%", "plan")
    rows = []
    for variant, a in found.items():
        o = a.outcome
        rows.append(
            [
                variant,
                f"{o.iteration_ns / 1e6:.2f}",
                f"{100 * o.overhead:.2f}",
                f"{100 * o.replay_ns / o.compute_ns:.2f}",
                f"{100 * o.stall_ns / o.compute_ns:.2f}",
                f"{o.peak_bytes / scale:.2f}",
                f"{a.summary.swapped_bytes / scale:.2f}",
                f"{a.summary.wire_bytes / scale:.2f}",
                f"{a.summary.peak_host_bytes / scale:.2f}",
                f"{100 * a.summary.host_fragmentation:.1f}",
                a.plan.name,
            ]
        )
    print(table(head, rows))
    print()
    print(_tensors(plan["tensors"], arguments.all, name, scale))
    return 0


def _budget(arguments: argparse.Namespace, graph: Graph) -> int:
    if arguments.budget is not None:
        return int(arguments.budget)
    trace = graph.trace
    outside = trace.parameter_bytes + trace.gradient_bytes + trace.optimizer_state_bytes
    if arguments.device_memory <= outside:
        raise CliError(
            f"parameters, gradients and optimizer state take {outside / 1e9:.2f} GB of the "
            f"{arguments.device_memory / 1e9:.2f} GB: a larger device is needed"
        )
    return int(arguments.device_memory) - outside


def _pins(arguments: argparse.Namespace, graph: Graph) -> dict[int, Any]:
    from planezip.sim.plan import Decision

    pins: dict[int, Decision] = {}
    for decision in Decision:
        for text in getattr(arguments, decision.name.lower()):
            op, _, slot = text.partition(".")
            if not op.lstrip("-").isdecimal() or not (slot or "0").isdecimal():
                raise CliError(f"{text!r} is no OPERATOR[.SLOT]: `planezip plan --all` lists them")
            signature = (int(op), int(slot or 0))
            if signature not in graph.signatures:
                raise CliError(
                    f"operator {text} has no saved tensor: `planezip plan --all` lists them"
                )
            tensor = graph.signatures.index(signature)
            if pins.setdefault(tensor, decision) is not decision:
                raise CliError(f"operator {text} cannot be pinned in two ways: leave one out")
    return pins


def _tensors(rows: list[dict[str, Any]], everything: bool, name: str, scale: float) -> str:
    """Counts and bytes by decision, and the largest tensors (or all)."""
    lines = []
    for decision in ("keep", "swap", "drop"):
        group = [r for r in rows if r["decision"] == decision]
        size = sum(r["bytes"] for r in group) / scale
        lines.append(f"{decision}: {len(group)} tensors, {size:.2f} {name}")
    shown = rows
    if not everything:
        moved = [r for r in rows if r["decision"] != "keep"]
        shown = sorted(moved, key=lambda r: -r["bytes"])[:_LISTED]
        if len(moved) > _LISTED:
            lines.append(f"the {_LISTED} largest that are not kept (--all lists every tensor):")
    if not shown:
        return "\n".join(lines)
    cells = [
        [
            f"{r['operator']}.{r['slot']}",
            r["name"],
            r["scope"],
            r["decision"],
            f"{r['bytes']:,}",
            "" if r["prefetch_at_operator"] is None else str(r["prefetch_at_operator"]),
            str(len(r["replay_operators"]) or ""),
        ]
        for r in shown
    ]
    head = ("tensor", "operator", "module", "decision", "bytes", "prefetch at", "replays")
    return "\n".join([*lines, table(head, cells, left=4)])
