"""Other readings of the paper's ratios, for sensitivity runs.

The ``paper`` preset gives every tensor of a producer the same ratio, since that is what
Table III prints. These give the same totals another distribution, or other totals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planezip.sim.graph import BIRTH, STORAGE, Graph, Ints
from planezip.sim.paper import FIG_3, FIG_3_OTHER_LABELS
from planezip.sim.sizes import Sizes, captured_sizes, categories, paper_sizes, scaled, shipped_state

__all__ = ["VARIANTS", "variant_sizes"]

VARIANTS = ("ratios per tensor", "zeros spread", "other labels")
_SPREAD = 0.35  # zeros of the first and last ReLU output: the mean minus and plus this
_MOST_ZEROS = 0.97


def variant_sizes(graph: Graph, workload: str, variant: str) -> Sizes | None:
    """Sizes of one of :data:`VARIANTS`; None where it changes nothing.

    ``ratios per tensor``
        Our captured ratio of each tensor, scaled to the totals of the preset.
    ``zeros spread``
        Shares of zeros in ReLU outputs that grow with depth, their total as it was.
    ``other labels``
        The FP32 labels of Fig. 3 in the order of Table I.
    """
    fp32 = graph.platform.float_bytes != 2
    if variant == "other labels":
        total = FIG_3_OTHER_LABELS.get(workload, FIG_3["float32"][workload])
        return paper_sizes(graph, workload, total) if fp32 else None
    preset = paper_sizes(graph, workload).planned
    if variant == "zeros spread":
        found = _spread(graph, preset)
    else:
        shipped = shipped_state(workload, "float32" if fp32 else "bfloat16")
        if shipped is None:
            return None
        captured = captured_sizes(graph, shipped[1], "").planned
        found = _per_tensor(graph, preset, captured)
    return Sizes(f"paper, {variant}", found, found)


def _per_tensor(
    graph: Graph, preset: dict[str, Ints], captured: dict[str, Ints]
) -> dict[str, Ints]:
    raw = graph.tensor_bytes
    found = {
        codec: scaled(raw, raw / captured[codec], raw.sum() / preset[codec].sum())
        for codec in ("PlaneZip", "PlaneZip-32")
    }
    return {**found, "ZVC": _zeros(raw, captured["ZVC"], int(preset["ZVC"].sum()))}


def _zeros(raw: Ints, captured: Ints, total_bytes: int) -> Ints:
    """ZVC sizes with the captured zeros times one factor, such that they add up to
    ``total_bytes``; as captured for a model without zeros (GELU, SiLU)."""
    zeros = raw - captured
    if 100 * zeros.sum() < raw.sum():
        return captured
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        wire = raw - np.minimum(zeros * middle, _MOST_ZEROS * raw)
        low, high = (middle, high) if wire.sum() > total_bytes else (low, middle)
    return np.ceil(raw - np.minimum(zeros * high, _MOST_ZEROS * raw)).astype(np.int64)


def _spread(graph: Graph, preset: dict[str, Ints]) -> dict[str, Ints]:
    """Sizes with the zeros of ReLU outputs rising evenly over their bytes."""
    raw, a = graph.tensor_bytes, graph.arrays
    relu = np.flatnonzero(np.array(categories(graph)) == "ReLU output")
    if not len(relu):
        return preset
    relu = relu[np.argsort(a.storages[a.tensors[relu, STORAGE], BIRTH], kind="stable")]
    place = 2 * (np.cumsum(raw[relu]) - raw[relu] / 2) / raw[relu].sum() - 1  # -1 to 1
    mask = 1 / (8 * graph.platform.float_bytes)  # ZVC's bit per element
    mean = 1 - (preset["ZVC"][relu].sum() / raw[relu].sum() - mask)
    kept: NDArray[np.float64] = 1 - np.clip(mean + _SPREAD * place, 0, _MOST_ZEROS)
    found = {}
    for codec, sizes in preset.items():
        total = sizes[relu].sum()
        per_kept = (total / raw[relu].sum() - mask) / (1 - mean)
        share = mask + kept * per_kept
        share *= total / (share * raw[relu]).sum()
        wire = sizes.copy()
        wire[relu] = np.minimum(raw[relu], np.ceil(raw[relu] * share).astype(np.int64))
        found[codec] = wire
    return found
