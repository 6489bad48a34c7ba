"""Figs. 1 and 3 as SVG (matplotlib is imported when a function is called)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planezip.sim.shipped import WORKLOADS

__all__ = ["plot_fig1", "plot_fig3"]

_COLOURS = {"A": "#1f77b4", "B": "#d62728"}
_LAYERS = (("PlaneZip", "#2ca02c"), ("ZVC", "#ff7f0e"), ("none", "#4c72b0"))


def _pyplot() -> Any:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError("plots need matplotlib: run `pip install matplotlib`") from error
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "planezip"  # the same file every time
    from matplotlib import pyplot

    return pyplot


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    _pyplot().close(figure)


def _label(workload: str) -> str:
    return WORKLOADS[workload].label if workload in WORKLOADS else workload


def plot_fig1(data: dict[str, Any], path: Path) -> None:
    """Cost ratios (a) and what the link can move (b), from :func:`planezip.sim.tables.fig1`."""
    figure, (left, right) = _pyplot().subplots(1, 2, figsize=(9, 3.4))
    for row in data["a"]:
        total = sum(size for _, size in row["points"])
        x, y, seen = [], [], 0
        for ratio, size in row["points"]:
            seen += size
            x.append(ratio)
            y.append(seen / total)
        left.step(x, y, where="post", label=row["platform"], color=_COLOURS[row["platform"]])
    left.set(xscale="log", xlim=(0.1, 1000))
    left.set(xlabel="swap time / recompute time", ylabel="cumulative share of bytes")
    left.legend(title="platform")
    labels, rows = [], []
    for k in range(len(data["b"][0]["models"])):
        for platform in data["b"]:
            row = platform["models"][k]
            rows.append(row)
            labels.append(f"{_label(row['workload'])}  {platform['platform']}")
    for key, colour in _LAYERS:
        widths = [100 * row.get(key, 0.0) for row in rows]
        right.barh(labels, widths, color=colour, label=key)
    right.invert_yaxis()
    right.set(xlabel="saved bytes the link can move (%)")
    right.legend()
    _save(figure, path)


def plot_fig3(data: dict[str, Any], path: Path) -> None:
    """Ratios by model and encoding, from :func:`planezip.sim.tables.fig3`."""
    figure, axes = _pyplot().subplots(len(data), 1, figsize=(9, 3.2 * len(data)), squeeze=False)
    for axis, (dtype, found) in zip(axes[:, 0], data.items(), strict=True):
        codecs = list(found["models"][0]["codecs"])
        groups = [_label(row["workload"]) for row in found["models"]]
        values = {c: [row["codecs"][c] for row in found["models"]] for c in codecs}
        if found["geometric_means"]:
            groups.append("geomean")
            for codec in codecs:
                values[codec].append(found["geometric_means"][codec]["ours"])
        width = 0.8 / len(codecs)
        for k, codec in enumerate(codecs):
            at = [g + (k - len(codecs) / 2) * width for g in range(len(groups))]
            axis.bar(at, values[codec], width, label=codec, align="edge")
        axis.set_xticks(range(len(groups)), groups)
        axis.set(ylabel=f"ratio ({dtype})", ylim=(0.9, None))
        axis.legend(ncols=4, fontsize="small")
    _save(figure, path)
