"""Rows beside Section V that are no figure of it: attention (V-F), small optima."""

from __future__ import annotations

from typing import Any

import numpy as np

from planezip.sim.build_graph import build_graph
from planezip.sim.engine_rate import Engine
from planezip.sim.motivation import movable_share
from planezip.sim.optimum import best_plan
from planezip.sim.plan import InfeasibleError
from planezip.sim.planner import Planner, compressed_recipes, keeping_recipes
from planezip.sim.platform import Platform, load_platform
from planezip.sim.policies import POLICIES, run_policy
from planezip.sim.ratios import wire_bytes
from planezip.sim.shipped import shipped_trace
from planezip.sim.sizes import shipped_state, table_sizes
from planezip.sim.synthetic import random_trace

__all__ = ["discussion", "gaps"]

Row = dict[str, Any]


def gaps() -> list[Row]:
    """Time of the planner's choice over the exact optimum on small random networks."""
    platform = Platform(
        name="small",
        float_bytes=0,
        peak_flops_per_s=1,
        math_percent=100,
        memory_bytes_per_s=1,
        memory_percent=100,
        link_bytes_per_s=800_000_000,
        setup_ns=0,
        engine=Engine(4_000_000_000, "small"),
    )
    rows = []
    for seed in range(24):
        graph = build_graph(random_trace(seed, 5), platform)
        if graph.tensors > 7:
            continue
        sizes = np.maximum(graph.tensor_bytes // 2, 1)
        for percent in (60, 75, 90):
            budget = graph.peak_bytes * percent // 100
            planner = Planner(graph, sizes)
            best = best_plan(graph, planner.simulator, budget)
            row: Row = {"seed": seed, "tensors": graph.tensors, "budget_percent": percent}
            for name, recipes in (
                ("portfolio", compressed_recipes()),
                ("keeping", compressed_recipes() + keeping_recipes(True)),
            ):
                try:
                    ours: int | None = planner.choose(recipes, budget).predicted.iteration_ns
                except InfeasibleError:
                    ours = None
                row[f"{name}_ns"] = ours
            rows.append({**row, "optimum_ns": best.outcome.iteration_ns if best else None})
    return rows


def discussion() -> list[Row]:
    """What attention is of GPT-2's saved bytes, how it compresses, what fusing it leaves;
    what the link can move of EfficientNet-B0."""
    trace, b = shipped_trace("gpt2"), load_platform("B")
    square = next(s.bytes for s in trace.storages if s.category == "Softmax") // 4
    inner = {
        n
        for n in trace.saved
        if trace.storages[n].bytes == (4 * square if trace.storages[n].is_float else square)
    }
    size = {n: trace.storages[n].bytes for n in trace.saved}  # FP32, as Table I
    rows = [
        _figure(
            "attention share of GPT-2's saved bytes (%)",
            100 * sum(size[n] for n in inner) / sum(size.values()),
            51.0,
        )
    ]
    state = shipped_state("gpt2", "bfloat16")
    if state is not None:
        wire = wire_bytes(trace, state[1], "PlaneZip", 0, 2)
        raw = {n: trace.storages[n].size_bytes(2) for n in trace.saved}
        for name, part, paper in (
            ("attention", inner, 2.82),
            ("the rest", set(size) - inner, 1.46),
        ):
            ours = sum(raw[n] for n in part) / sum(wire[n] for n in part)
            rows.append(_figure(f"ratio of {name} of GPT-2, captured (x)", ours, paper))
    state = shipped_state("efficientnet_b0", "bfloat16")
    if state is not None:
        model = shipped_trace("efficientnet_b0")
        share = movable_share(model, b, wire_bytes(model, state[1], "PlaneZip", 0, 2))
        rows.append(_figure("EffNet-B0: saved bytes the link moves, B (%)", 100 * share, 8.0))
    for name in ("gpt2", "gpt2_fused", "vit_b16"):
        graph = build_graph(shipped_trace(name), b)
        sizes = table_sizes(graph)
        bw, pz = (
            run_policy(POLICIES[p], graph, sizes, graph.peak_bytes // 2).overhead_percent
            for p in ("BW", "PlaneZip")
        )
        rows.append(_figure(f"{name}: BW at 50%, B (%)", bw, None))
        rows.append(_figure(f"{name}: PlaneZip's gain at 50%, B (points)", bw - pz, None))
    return rows


def _figure(name: str, ours: float, paper: float | None) -> Row:
    return {"figure": name, "ours": ours, "paper": paper}
