"""Tables I, III and IV and Figs. 1 and 3 as JSON values, the paper's numbers beside ours.

They come from the shipped traces and from measured ratios (needs no torch).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from planezip.model.format import Tag
from planezip.sim import paper
from planezip.sim.motivation import cost_ratios, movable_share, share_above, weighted_median
from planezip.sim.platform import load_platform, op_time_ns
from planezip.sim.predictor import (
    Predictor,
    Report,
    Signature,
    Variant,
    profiling_cost_ns,
    wire_error,
)
from planezip.sim.ratios import Ratios, wire_bytes
from planezip.sim.shipped import WORKLOADS, shipped_trace
from planezip.sim.trace import Kind, Trace

__all__ = ["fig1", "fig3", "geometric_mean", "table1", "table3", "table4"]

Measured = Mapping[str, Ratios]
"""Ratios in one type, by measurement or by workload."""

Row = dict[str, Any]


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean; ValueError for none."""
    if not values:
        raise ValueError("values must not be empty")
    return float(prod(values) ** (1 / len(values)))


def _against(ours: float | None, theirs: float | None) -> Row:
    """Ours, the paper's and the difference in percent."""
    row: Row = {"ours": ours, "paper": theirs}
    if ours is not None and theirs:
        row["difference_percent"] = round(100 * (ours / theirs - 1), 2)
    return row


def table1() -> list[Row]:
    """Rows of Table I for every shipped workload.

    ``operators`` are all ATen calls of forward and backward pass that a dispatch mode
    sees; ``computing_operators`` are those that do not only make a view or allocate;
    ``operators_and_updates`` has one more for each parameter, which an optimizer without
    momentum and fused kernels makes (``p.add_``).
    """
    rows = []
    for name, workload in WORKLOADS.items():
        trace = shipped_trace(name)
        saved_bytes = sum(trace.storages[n].bytes for n in trace.saved)
        tensors, gigabytes, operators = paper.TABLE_1.get(name, (None, None, None))
        ops = trace.notes["operators"]
        updates = sum(s.kind is Kind.PARAMETER for s in trace.storages)
        rows.append(
            {
                "model": workload.label,
                "workload": name,
                "parameters": trace.parameter_count,
                "batch": trace.batch,
                "saved_tensors": len(trace.saved),
                "saved_bytes": saved_bytes,
                "operators": ops["dispatched"],
                "computing_operators": ops["computing"],
                "operators_and_updates": ops["dispatched"] + updates,
                "paper": {
                    "saved_tensors": tensors,
                    "saved_gb": gigabytes,
                    "operators": operators,
                },
                "difference": {
                    "saved_tensors": None if tensors is None else len(trace.saved) - tensors,
                    "saved_gb": None
                    if gigabytes is None
                    else round(saved_bytes / 1e9 - gigabytes, 3),
                    "operators": None if operators is None else ops["dispatched"] - operators,
                },
            }
        )
    return rows


def fig1(measured: Mapping[str, Measured]) -> Row:
    """Fig. 1; ``measured``: type to workload to ratios, as far as there are any."""
    traces = {name: shipped_trace(name) for name in paper.MODELS}
    a, b = [], []
    for letter in ("A", "B"):
        platform = load_platform(letter)
        ratios = [r for trace in traces.values() for r in cost_ratios(trace, platform)]
        median, above = paper.FIG_1A[letter]
        a.append(
            {
                "platform": letter,
                "median": _against(weighted_median(ratios), median),
                "percent_above_1": _against(100 * share_above(ratios), above),
                "points": sorted([r.ratio, r.bytes] for r in ratios),
            }
        )
        dtype = "float32" if platform.float_bytes == 4 else "bfloat16"
        rows = [
            _movable(name, trace, letter, measured.get(dtype, {}).get(name))
            for name, trace in traces.items()
        ]
        shares = [100 * row["none"] for row in rows]
        least, most = paper.FIG_1B_RANGE[letter]
        b.append(
            {
                "platform": letter,
                "models": rows,
                "least_percent": _against(round(min(shares)), least),
                "largest_percent": _against(round(max(shares)), most),
            }
        )
    return {"a": a, "b": b}


def _movable(name: str, trace: Trace, letter: str, ratios: Ratios | None) -> Row:
    platform = load_platform(letter)
    row: Row = {
        "workload": name,
        "none": movable_share(trace, platform),
        "none_without_view_launches": movable_share(trace, platform, view_launches=False),
        "weights": None if ratios is None else ratios.weights,
    }
    for encoding in ("ZVC", "PlaneZip"):
        if ratios is not None:
            sizes = wire_bytes(trace, ratios, encoding, 0, platform.float_bytes or None)
            row[encoding] = movable_share(trace, platform, sizes)
    return row


def fig3(measured: Mapping[str, Measured]) -> Row:
    """Fig. 3: ratio of all saved activations, by type, model and encoding."""
    found: Row = {}
    for dtype, by_model in measured.items():
        rows: list[Row] = []
        for name, ratios in by_model.items():
            codecs = {codec: ratios.ratio(codec) for codec in ratios.tensors[0].wire_bytes}
            theirs = paper.FIG_3[dtype].get(name)
            rows.append(
                {
                    "workload": name,
                    "weights": ratios.weights,
                    "codecs": codecs,
                    "PlaneZip": _against(codecs["PlaneZip"], theirs),
                }
            )
        five = [row for row in rows if row["workload"] in paper.MODELS]
        means = {}
        if len(five) == len(paper.MODELS):
            for codec in five[0]["codecs"]:
                ours = geometric_mean([row["codecs"][codec] for row in five])
                means[codec] = _against(ours, paper.FIG_3_MEAN[dtype].get(codec))
        found[dtype] = {"models": rows, "geometric_means": means}
    return found


def table3(by_model: Measured) -> list[Row]:
    """Rows of Table III over the given workloads; the last row is what Table III leaves out.

    Shares are those of the traces at the training batch size, in FP32.
    """
    rows = []
    shares = _shares(list(by_model))
    for category in (*paper.TABLE_3, ""):
        raw, wire = 0, dict.fromkeys(("ZVC", "BX", "PlaneZip"), 0)
        tags = [0] * len(Tag)
        for ratios in by_model.values():
            mine = [t for t in ratios.tensors if t.category == category]
            raw += sum(t.raw_bytes for t in mine)
            for codec in wire:
                wire[codec] += sum(t.wire_bytes[codec][0] for t in mine)
            tags = [a + sum(t.tags[k] for t in mine) for k, a in enumerate(tags)]
        if not raw:
            continue
        theirs = paper.TABLE_3.get(category)
        top = max(Tag, key=lambda tag: tags[tag])
        row: Row = {
            "producer": category or "Other",
            "share_percent": {
                "ours": shares[category],
                "paper": list(theirs.share) if theirs else None,
            },
        }
        for codec, size in wire.items():
            row[codec] = _against(raw / size, theirs.ratios[codec] if theirs else None)
        row["top"] = {
            "ours": [top.name, round(100 * tags[top] / sum(tags))],
            "paper": [theirs.top, theirs.top_percent] if theirs else None,
        }
        rows.append(row)
    return rows


def _shares(workloads: Sequence[str]) -> dict[str, list[int]]:
    """Least and largest percent of the saved bytes of a workload, by category."""
    found: dict[str, list[int]] = {}
    for name in workloads:
        trace = shipped_trace(name)
        sizes: dict[str, int] = {}
        for n in trace.saved:
            s = trace.storages[n]
            sizes[s.category] = sizes.get(s.category, 0) + s.bytes
        for category, size in sizes.items():
            found.setdefault(category, []).append(round(100 * size / sum(sizes.values())))
    return {category: [min(v), max(v)] for category, v in found.items()}


def _reports(ratios: Ratios, iteration: int) -> list[Report]:
    return [
        Report(
            Signature(t.position, t.slot, t.category),
            t.raw_bytes,
            t.wire_bytes["PlaneZip"][iteration],
        )
        for t in ratios.tensors
    ]


def _errors(ratios: Ratios) -> dict[str, float]:
    """Error in percent of each variant: every iteration predicted from the one before."""
    errors = {}
    for variant in Variant:
        predictor = Predictor(variant)
        found = []
        for k in range(1, ratios.iterations):
            predictor.report(_reports(ratios, k - 1))
            found.append(wire_error(predictor, _reports(ratios, k)))
        errors[variant.value] = 100 * sum(found) / len(found)
    return errors


def table4(by_model: Measured, random: Measured) -> list[Row]:
    """Rows of Table IV.

    Parameters
    ----------
    by_model : mapping
        Ratios of several iterations.
    random : mapping
        Ratios at random initialisation, by workload.
    """
    rows = []
    for name, ratios in by_model.items():
        each, tensor, op_type, overall, start = paper.TABLE_4.get(name, (None,) * 5)
        row: Row = {"workload": name, "weights": ratios.weights, "profiling": _profiling(name)}
        row["ratio_per_iteration"] = {
            "ours": [ratios.ratio("PlaneZip", k) for k in range(ratios.iterations)],
            "paper": each and list(each),
        }
        if ratios.iterations > 1:
            errors = _errors(ratios)
            theirs = {"tensor": tensor, "op_type": op_type, "global": overall}
            row["error_percent"] = {v: _against(errors[v], theirs[v]) for v in errors}
        if name in random:
            row["random"] = _against(random[name].ratio("PlaneZip"), start)
        rows.append(row)
    return rows


def _profiling(name: str) -> list[Row]:
    """Cost of a profiling iteration: engine time for all saved bytes, beside the iteration."""
    if name not in WORKLOADS:
        return []
    trace = shipped_trace(name)
    rows = []
    for letter in ("A", "B"):
        platform = load_platform(letter)
        sizes = {
            Signature(n, 0, ""): trace.storages[n].size_bytes(platform.float_bytes or None)
            for n in trace.saved
        }
        engine = profiling_cost_ns(sizes, platform.engine.bytes_per_s)
        iteration = sum(op_time_ns(op, platform) for op in trace.ops)
        rows.append(
            {
                "platform": letter,
                "engine_ns": engine,
                "iteration_ns": iteration,
                "exposed_ns": max(0, engine - iteration),
            }
        )
    return rows
