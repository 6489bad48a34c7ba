"""Wire bytes of every tensor of a graph, from captures or from what the paper prints.

The ``paper`` preset needs no capture. Platform B: Table III's ratio of each tensor's
producer, rescaled so that the model's total is the one Fig. 3 prints; ZVC as Table III
has it. Platform A: the ZVC ratios follow from those of BF16, since the share of zeros
does not depend on the type; PlaneZip takes our FP32 ratio of each tensor where a capture
comes with the package and the producer's BF16 ratio where not, rescaled to Fig. 3's FP32
label (:data:`planezip.sim.paper.FIG_3` maps the labels to models).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planezip.sim.graph import STORAGE, Graph, Ints
from planezip.sim.measurements import shipped_ratios
from planezip.sim.paper import FIG_3, FIG_3_MEAN, TABLE_3
from planezip.sim.predictor import Predictor, Report, Signature, Variant
from planezip.sim.ratios import Ratios, wire_bytes

__all__ = [
    "Sizes",
    "captured_sizes",
    "categories",
    "paper_sizes",
    "scaled",
    "shipped_state",
    "table_sizes",
]

_STATES = ("pretrained", "trained", "short", "random")


@dataclass(frozen=True)
class Sizes:
    """Wire bytes per tensor: what a plan is made with, and what transfers take.

    Parameters
    ----------
    source : str
        For reports.
    planned, actual : dict of str to array
        By codec: ``ZVC``, ``PlaneZip``, ``PlaneZip-32``; ``planned`` also has
        ``op_type``, PlaneZip predicted per operator type, where captures allow it.
    """

    source: str
    planned: dict[str, Ints]
    actual: dict[str, Ints]


def shipped_state(workload: str, dtype: str) -> tuple[str, Ratios] | None:
    """Capture of a workload that comes with the package, the most trained one."""
    for state in _STATES:
        ratios = shipped_ratios(f"{workload}_{state}", dtype)
        if ratios is not None:
            return state, ratios
    return None


def captured_sizes(graph: Graph, ratios: Ratios, source: str) -> Sizes:
    """Sizes from a capture: planned with its first iteration, moved with its second."""
    float_bytes = graph.platform.float_bytes or None
    later = min(1, ratios.iterations - 1)

    def sizes(encoding: str, iteration: int) -> Ints:
        found = wire_bytes(graph.trace, ratios, encoding, iteration, float_bytes)
        return _per_tensor(graph, found)

    codecs = ("ZVC", "PlaneZip", "PlaneZip-32")
    planned = {codec: sizes(codec, 0) for codec in codecs}
    planned["op_type"] = _by_category(graph, planned["PlaneZip"])
    return Sizes(source, planned, {codec: sizes(codec, later) for codec in codecs})


def paper_sizes(graph: Graph, workload: str, total: float | None = None) -> Sizes:
    """Sizes of the ``paper`` preset for one of the five workloads; ``total`` replaces the
    model's printed ratio."""
    dtype = "bfloat16" if graph.platform.float_bytes == 2 else "float32"
    raw = graph.tensor_bytes
    zvc = _from_table(graph, "ZVC")
    ratio = _from_table(graph, "PlaneZip")
    source = "paper: Table III per producer"
    if dtype == "float32":
        zvc = 1 / (1 / 32 + 1 / zvc - 1 / 16)
        shipped = shipped_state(workload, dtype)
        if shipped is not None:
            measured = captured_sizes(graph, shipped[1], "").planned["PlaneZip"]
            ratio = raw / measured
            source = f"paper: our FP32 ratios ({shipped[0]})"
    total = FIG_3[dtype][workload] if total is None else total
    mean = FIG_3_MEAN[dtype]
    narrow = total * mean["PlaneZip-32"] / mean["PlaneZip"]
    sizes = {
        "ZVC": scaled(raw, np.maximum(zvc, 1.0), None),
        "PlaneZip": scaled(raw, ratio, total),
        "PlaneZip-32": scaled(raw, ratio, narrow),
    }
    return Sizes(f"{source}, scaled to {total}", sizes, sizes)


def table_sizes(graph: Graph) -> Sizes:
    """Sizes for any model without a capture: Table III's ratio of each producer, BF16.

    With 4-byte elements what exceeds 1 shrinks as the paper's geometric means do.
    """
    raw, ratio, zvc = graph.tensor_bytes, _from_table(graph, "PlaneZip"), _from_table(graph, "ZVC")
    if graph.platform.float_bytes != 2:
        share = (FIG_3_MEAN["float32"]["PlaneZip"] - 1) / (FIG_3_MEAN["bfloat16"]["PlaneZip"] - 1)
        ratio = 1 + (ratio - 1) * share
        zvc = 1 / (1 / 32 + 1 / zvc - 1 / 16)
    sizes = {
        "ZVC": scaled(raw, np.maximum(zvc, 1.0), None),
        "PlaneZip": scaled(raw, ratio, None),
    }
    return Sizes("Table III per producer (no capture given)", sizes, sizes)


def _per_tensor(graph: Graph, by_storage: dict[int, int]) -> Ints:
    storages = (graph.storage_of[s] for s in graph.arrays.tensors[:, STORAGE])
    raw = graph.tensor_bytes
    return np.array([by_storage.get(s, raw[t]) for t, s in enumerate(storages)], np.int64)


def categories(graph: Graph) -> list[str]:
    """Producer of each tensor as Table III names it."""
    return [
        graph.trace.storages[graph.storage_of[s]].category for s in graph.arrays.tensors[:, STORAGE]
    ]


def _by_category(graph: Graph, wire: Ints) -> Ints:
    """Sizes as the operator-type predictor gives them after one iteration."""
    predictor = Predictor(Variant.OP_TYPE)
    signatures = [
        Signature(*signature, category)
        for signature, category in zip(graph.signatures, categories(graph), strict=True)
    ]
    raw = graph.tensor_bytes.tolist()
    predictor.report(
        Report(s, r, w) for s, r, w in zip(signatures, raw, wire.tolist(), strict=True)
    )
    predicted = [predictor.predict(s, r) for s, r in zip(signatures, raw, strict=True)]
    return np.minimum(np.array(predicted, np.int64), graph.tensor_bytes)


def _from_table(graph: Graph, encoding: str) -> np.ndarray:
    """Table III's ratio of each tensor; 1 for what is not in it."""
    return np.array(
        [TABLE_3[c].ratios[encoding] if c in TABLE_3 else 1.0 for c in categories(graph)]
    )


def scaled(raw: Ints, ratio: np.ndarray, total: float | None) -> Ints:
    """Wire bytes with ratios times one factor, such that raw over wire is ``total``.

    Rounded up, and never above the raw bytes; by bisection, since that bends the sum.
    """

    def wire(factor: float) -> Ints:
        return np.minimum(raw, np.ceil(raw / (ratio * factor)).astype(np.int64))

    if total is None:
        return wire(1.0)
    low, high = 0.1, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if raw.sum() / wire(middle).sum() < total else (low, middle)
    return wire(high)
