"""The runs behind the figures of the paper's Section V, as independent jobs.

A job is a small picklable value and :func:`run_job` a plain function, so that any
``concurrent.futures`` executor runs them: processes here, Dask, Ray or MPI elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from planezip.sim.build_graph import build_graph
from planezip.sim.engine_rate import Engine
from planezip.sim.evict import KEEPING, RECOMPUTE
from planezip.sim.graph import Graph
from planezip.sim.paper import MODELS
from planezip.sim.plan import InfeasibleError
from planezip.sim.platform import Platform, load_platform
from planezip.sim.policies import ABLATIONS, POLICIES, run_policy
from planezip.sim.shipped import shipped_trace
from planezip.sim.sizes import Sizes, captured_sizes, paper_sizes, shipped_state
from planezip.sim.variants import VARIANTS, variant_sizes

__all__ = [
    "BUDGETS",
    "ENGINES",
    "LINKS",
    "READINGS",
    "Job",
    "fig4_jobs",
    "fig5_jobs",
    "fig6_jobs",
    "run_job",
    "run_jobs",
    "sensitivity_jobs",
]

BUDGETS = (30, 40, 50, 60, 70, 80, 90)
LINKS = (12, 24, 48, 96, 192)
"""Fig. 6a, GB/s per direction, with an engine four times as fast."""
ENGINES = (24, 32, 48, 64, 96, 128)
"""Fig. 6b, GB/s, with a link of 24 GB/s."""


READINGS = (
    "no saved copies",
    "inputs outside",
    "charged once",
    "no skipping",
    "no setup",
    "replays kept",
)
"""Choices that the paper leaves open, each taken the other way in a sensitivity run; those
of the ratios are :data:`planezip.sim.variants.VARIANTS`."""


@dataclass(frozen=True)
class Job:
    """One policy on one model, platform and budget.

    ``link`` and ``engine`` in GB/s replace those of the platform where they are not 0;
    ``reading`` is one of :data:`READINGS` or of the variants of the ratios.
    """

    figure: str
    model: str
    platform: str
    budget_percent: int
    policy: str
    ratios: str = "paper"
    link: int = 0
    engine: int = 0
    reading: str = ""


def fig4_jobs(ratios: str) -> list[Job]:
    """Throughput under a budget: models, platforms, budgets, policies."""
    return [
        Job("fig4", model, platform, budget, policy, ratios)
        for platform in "AB"
        for model in MODELS
        for budget in BUDGETS
        for policy in POLICIES
    ]


def fig5_jobs(ratios: str) -> list[Job]:
    """Ablation at 30%."""
    return [
        Job("fig5", model, platform, 30, policy, ratios)
        for platform in "AB"
        for model in MODELS
        for policy in ABLATIONS
        if ratios != "paper" or policy not in ("op-type", "oracle")
    ]


def fig6_jobs(ratios: str) -> list[Job]:
    """Link and engine rates on platform B at 50%."""
    return [
        *(
            Job("fig6a", model, "B", 50, policy, ratios, link, 4 * link)
            for link in LINKS
            for model in MODELS
            for policy in ("RECOMP", "BW", "PlaneZip")
        ),
        *(
            Job("fig6b", model, "B", 50, policy, ratios, 24, engine)
            for engine in ENGINES
            for model in MODELS
            for policy in ("RECOMP", "BW", "PlaneZip")
        ),
    ]


def sensitivity_jobs() -> list[Job]:
    """Each reading taken the other way; those of the ratios for policies that compress."""
    jobs = [
        Job("sensitivity", model, platform, budget, policy, reading=reading)
        for reading in READINGS
        for platform in "AB"
        for model in MODELS
        for budget in (30, 50)
        for policy in ("RECOMP", "BW", "PlaneZip")
    ]
    for variant in VARIANTS:
        for platform in "A" if variant == "other labels" else "AB":
            for model in MODELS:
                what: list[tuple[int, str, int]] = [
                    (budget, policy, 0) for budget in (30, 50) for policy in ("BW+ZVC", "PlaneZip")
                ]
                what.append((30, "DTE+compression", 0))
                if platform == "B":
                    what.append((50, "PlaneZip", 96))
                for budget, policy, rate in what:
                    job = Job("sensitivity", model, platform, budget, policy, engine=rate)
                    jobs.append(replace(job, reading=variant))
    return jobs


@lru_cache(maxsize=2)
def _inputs(
    model: str, platform: Platform, ratios: str, reading: str
) -> tuple[Graph, Sizes | None]:
    graph = build_graph(
        shipped_trace(model),
        platform,
        copies=reading != "no saved copies",
        inputs=reading != "inputs outside",
    )
    if reading in VARIANTS:
        return graph, variant_sizes(graph, model, reading)
    if ratios == "paper":
        return graph, paper_sizes(graph, model)
    dtype = "bfloat16" if platform.float_bytes == 2 else "float32"
    shipped = shipped_state(model, dtype)
    if shipped is None:
        return graph, None
    return graph, captured_sizes(graph, shipped[1], f"captured: {shipped[0]}")


def run_job(job: Job) -> dict[str, Any] | None:
    """Row of a job; None if the capture it asks for does not come with the package."""
    platform = load_platform(job.platform)
    if job.link:
        platform = replace(platform, link_bytes_per_s=job.link * 10**9)
    if job.engine:
        platform = replace(platform, engine=Engine(job.engine * 10**9, "Fig. 6"))
    if job.reading == "no setup":
        platform = replace(platform, setup_ns=0)
    graph, sizes = _inputs(job.model, platform, job.ratios, job.reading)
    if sizes is None:
        return None
    budget = graph.peak_bytes * job.budget_percent // 100
    row: dict[str, Any] = {
        "figure": job.figure,
        "model": job.model,
        "platform": job.platform,
        "budget_percent": job.budget_percent,
        "policy": job.policy,
        "ratios": job.ratios,
        "reading": job.reading,
        "source": sizes.source,
        "link_gb_per_s": platform.link_bytes_per_s / 1e9,
        "engine_gb_per_s": platform.engine.bytes_per_s / 1e9,
        "budget_bytes": budget,
    }
    policy = {**POLICIES, **ABLATIONS}[job.policy]
    if job.reading == "replays kept":
        kept = (replace(r, evict=KEEPING) if r.evict == RECOMPUTE else r for r in policy.recipes)
        policy = replace(policy, recipes=tuple(kept))
    try:
        result = run_policy(
            policy,
            graph,
            sizes,
            budget,
            charge_again=job.reading != "charged once",
            skip=job.reading != "no skipping",
        )
    except InfeasibleError as error:
        return {**row, "overhead_percent": None, "error": str(error)}
    outcome = result.outcome
    return {
        **row,
        "overhead_percent": result.overhead_percent,
        "replay_percent": 100 * outcome.replay_ns / outcome.compute_ns,
        "stall_percent": 100 * outcome.stall_ns / outcome.compute_ns,
        "iteration_ns": outcome.iteration_ns,
        "peak_bytes": outcome.peak_bytes,
        "peak_host_bytes": result.summary.peak_host_bytes,
        "host_fragmentation": result.summary.host_fragmentation,
        "swapped_bytes": outcome.swapped_raw_bytes,
        "wire_bytes": outcome.swapped_wire_bytes,
        "dropped_tensors": result.dropped,
        "plan": result.plan.name,
    }


def run_jobs(jobs: Iterable[Job], executor: Executor | None = None) -> Iterator[dict[str, Any]]:
    """Rows in the order of the jobs; on ``executor``, or here without one."""
    rows = map(run_job, jobs) if executor is None else executor.map(run_job, jobs)
    return (row for row in rows if row is not None)
