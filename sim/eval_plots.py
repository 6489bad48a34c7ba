"""Figs. 4, 5 and 6 as SVG, from the rows of :mod:`planezip.sim.eval` (needs matplotlib)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

from planezip.sim.paper import MODELS
from planezip.sim.policies import ABLATIONS, POLICIES
from planezip.sim.shipped import WORKLOADS

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "planezip"  # the same file every time

from matplotlib import pyplot  # noqa: E402

__all__ = ["plot_all"]

Row = dict[str, Any]


def plot_all(found: dict[str, list[Row]], folder: Path) -> None:
    """Write fig4.svg, fig5.svg and fig6.svg (ratios: paper)."""
    _fig4([r for r in found["fig4"] if r["ratios"] == "paper"], folder / "fig4.svg")
    _fig5([r for r in found["fig5"] if r["ratios"] == "paper"], folder / "fig5.svg")
    _fig6(found["fig6"], folder / "fig6.svg")


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _fig4(rows: list[Row], path: Path) -> None:
    figure, axes = pyplot.subplots(2, len(MODELS), figsize=(15, 6), sharex=True)
    for line, platform in zip(axes, "AB", strict=True):
        for axis, model in zip(line, MODELS, strict=True):
            for policy in POLICIES:
                points = sorted(
                    (r["budget_percent"], 1 / (1 + r["overhead_percent"] / 100))
                    for r in rows
                    if (r["model"], r["platform"], r["policy"]) == (model, platform, policy)
                    and r["overhead_percent"] is not None
                )
                if policy != "SWAP" and points:  # falls below 0.5
                    axis.plot(*zip(*points, (100, 1.0), strict=True), marker=".", label=policy)
            axis.set(title=f"{WORKLOADS[model].label}, {platform}", ylim=(0.55, 1.02))
        line[0].set_ylabel("normalised throughput")
    for axis in axes[1]:
        axis.set_xlabel("memory budget (%)")
    axes[0][0].legend(fontsize="small")
    _save(figure, path)


def _fig5(rows: list[Row], path: Path) -> None:
    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    means = {(r["platform"], r["policy"]): r for r in rows if r["model"] == "mean"}
    names = [p for p in ABLATIONS if ("A", p) in means]
    for k, platform in enumerate("AB"):
        at = [i + 0.4 * k for i in range(len(names))]
        values = [means[platform, p]["overhead_percent"] or 0 for p in names]
        paper = [means[platform, p]["paper_percent"] for p in names]
        axis.barh(at, values, 0.38, label=f"platform {platform}")
        axis.plot(paper, at, "k|", markersize=12, label="paper" if k else None)
    axis.set_yticks([i + 0.2 for i in range(len(names))], [ABLATIONS[p].label for p in names])
    axis.invert_yaxis()
    axis.set(xlabel="mean overhead at 30% (%)")
    axis.legend()
    _save(figure, path)


def _fig6(rows: list[Row], path: Path) -> None:
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for axis, name, key in (
        (axes[0], "fig6a", "link_gb_per_s"),
        (axes[1], "fig6b", "engine_gb_per_s"),
    ):
        for policy in ("RECOMP", "BW", "PlaneZip"):
            points = sorted(
                (r[key], r["overhead_percent"])
                for r in rows
                if (r["figure"], r["model"], r["policy"]) == (name, "mean", policy)
            )
            axis.plot(*zip(*points, strict=True), marker=".", label=policy)
        axis.set(xscale="log", xlabel=f"{'link' if name == 'fig6a' else 'engine'} (GB/s)")
        axis.set_xticks([p[0] for p in points], [f"{p[0]:.0f}" for p in points])
    axes[0].set_ylabel("mean overhead (%)")
    axes[0].legend()
    _save(figure, path)
