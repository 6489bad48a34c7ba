"""Characterisation: Fig. 1, Fig. 3, Tables I, III and IV as JSON and plots.

Works from the shipped traces and ratios; with torch it makes the ratios anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from planezip.sim import paper, tables
from planezip.sim.measurements import MEASUREMENTS, shipped_ratios
from planezip.sim.ratios import Ratios
from planezip.sim.shipped import DATA

__all__ = ["agreement", "characterise", "choose"]

TYPES = ("bfloat16", "float32")
STATES = ("pretrained", "trained", "short", "random")
"""States of the weights, the paper's first."""

WHY = {
    "pretrained": "the paper's weights, other images",
    "trained": "fewer steps on a smaller text and on short sequences than in the paper",
    "short": "weights after a short training from random, not a public checkpoint",
    "random": "random weights, not a public checkpoint",
}
"""Why a ratio that depends on training differs from the paper's."""


def choose(dtype: str, folder: Path = DATA, states: Sequence[str] = STATES) -> dict[str, Ratios]:
    """For each workload its ratios in the first state that was measured."""
    found: dict[str, Ratios] = {}
    for workload in (*paper.MODELS, "efficientnet_lite0"):
        for state in states:
            name = f"{workload}_{state}"
            ratios = shipped_ratios(name, dtype, folder) if name in MEASUREMENTS else None
            if ratios is not None:
                found[workload] = ratios
                break
    return found


def agreement(reports: dict[str, Any], random: dict[str, Ratios]) -> list[dict[str, Any]]:
    """What must agree with the paper whatever the weights: ours, the paper's, tolerance."""
    rows = []

    def add(what: str, ours: float, theirs: float, tolerance_percent: float) -> None:
        difference = 100 * (ours / theirs - 1)
        rows.append(
            {
                "what": what,
                "ours": ours,
                "paper": theirs,
                "difference_percent": round(difference, 2),
                "tolerance_percent": tolerance_percent,
                "agrees": abs(difference) <= tolerance_percent,
            }
        )

    for row in reports["table1"]["rows"]:
        theirs = row["paper"]
        if theirs["saved_tensors"] is None:
            continue
        if row["workload"] != "vit_b16":  # that number depends on timm's version
            add(f"{row['model']} saved tensors", row["saved_tensors"], theirs["saved_tensors"], 0)
        add(f"{row['model']} saved GB", row["saved_bytes"] / 1e9, theirs["saved_gb"], 1)
    for row in reports["fig1"]["a"]:
        median = row["median"]
        add(f"platform {row['platform']} median", round(median["ours"], 1), median["paper"], 0)
    for row in reports["fig1"]["b"]:
        for key in ("least_percent", "largest_percent"):
            add(f"platform {row['platform']} {key}", row[key]["ours"], row[key]["paper"], 0)
    for name, ratios in random.items():
        theirs = paper.TABLE_4.get(name, (None,) * 5)[4]
        if theirs is not None:
            add(f"{name} BF16 ratio, random weights", ratios.ratio("PlaneZip"), theirs, 1.5)
    for row in reports["table3"]["rows"]:
        if row["producer"] in ("Dropout mask", "Indices"):
            ratio = row["PlaneZip"]
            add(f"{row['producer']} ratio", ratio["ours"], ratio["paper"], 1.5)
    return rows


def characterise(
    output: Path, folder: Path = DATA, plot: bool = True, say: Callable[[str], None] = print
) -> list[dict[str, Any]]:
    """Write all reports to ``output`` and return :func:`agreement`.

    Parameters
    ----------
    output : Path
        ``table1.json``, ``table3.json``, ``table4.json``, ``fig1.json``, ``fig3.json``,
        ``agreement.json``, ``fig1.svg``, ``fig3.svg``.
    folder : Path
        Ratios, as :func:`planezip.sim.measurements.measure` writes them.
    plot : bool
        Whether to draw the SVG files.
    say : function of str
        Hears of every file.
    """
    chosen = {dtype: choose(dtype, folder) for dtype in TYPES}
    random = choose("bfloat16", folder, ["random"])
    bf16 = {name: r for name, r in chosen["bfloat16"].items() if name in paper.MODELS}
    reports: dict[str, Any] = {
        "table1": {"rows": tables.table1()},
        "fig1": tables.fig1(chosen),
        "fig3": tables.fig3({dtype: found for dtype, found in chosen.items() if found}),
        "table3": {"rows": tables.table3(bf16)},
        "table4": {"rows": tables.table4(chosen["bfloat16"], random)},
    }
    reports["agreement"] = {"rows": agreement(reports, random)}
    output.mkdir(parents=True, exist_ok=True)
    states = _states(chosen["bfloat16"], folder)
    for name, report in reports.items():
        path = output / f"{name}.json"
        head = {"schema": f"planezip-{name}", "version": 1, "weights": states}
        path.write_text(json.dumps({**head, **report}, indent=1) + "\n")
        say(str(path))
    if plot:
        from planezip.sim.plots import plot_fig1, plot_fig3

        plot_fig1(reports["fig1"], output / "fig1.svg")
        say(str(output / "fig1.svg"))
        if reports["fig3"]:
            plot_fig3(reports["fig3"], output / "fig3.svg")
            say(str(output / "fig3.svg"))
    return list(reports["agreement"]["rows"])


def _states(chosen: dict[str, Ratios], folder: Path) -> dict[str, dict[str, str]]:
    """Of each workload, the weights that were used and why they differ from the paper's."""
    rows = {}
    for workload, ratios in chosen.items():
        state = next(
            s
            for s in STATES
            if f"{workload}_{s}" in MEASUREMENTS
            and shipped_ratios(f"{workload}_{s}", "bfloat16", folder) is not None
        )
        rows[workload] = {"weights": ratios.weights, "difference_to_paper": WHY[state]}
    return rows
