"""The workloads of Table I and their traces, which ``planezip trace --all`` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planezip.sim.trace import Trace
from planezip.sim.trace_file import load_trace

__all__ = ["DATA", "WORKLOADS", "Workload", "shipped_trace"]

DATA = Path(__file__).parent / "data"
"""Folder of the files that come with the package."""


@dataclass(frozen=True)
class Workload:
    """A model at its training batch size.

    Parameters
    ----------
    label : str
        Name in the paper.
    model : str
        As :func:`planezip.sim.workloads.build_step` takes it.
    batch : int
        Images, or sequences of 1,024 tokens.
    fused_attention : bool
        Whether attention runs fused (paper Section V-F).
    """

    label: str
    model: str
    batch: int
    fused_attention: bool = False


WORKLOADS = {
    "resnet50": Workload("ResNet-50", "timm:resnet50", 128),
    "densenet121": Workload("DenseNet-121", "timm:densenet121", 128),
    "efficientnet_b0": Workload("EffNet-B0", "timm:efficientnet_b0", 128),
    "vit_b16": Workload("ViT-B/16", "timm:vit_base_patch16_224", 64),
    "gpt2": Workload("GPT-2", "hf:gpt2", 8),
    "gpt2_fused": Workload("GPT-2, fused attention", "hf:gpt2", 8, fused_attention=True),
}
"""Shipped workloads; the first five are Table I."""


def shipped_trace(name: str) -> Trace:
    """Trace of a workload of :data:`WORKLOADS`; needs no torch."""
    if name not in WORKLOADS:
        raise ValueError(f"workload must be one of {', '.join(WORKLOADS)}, not {name!r}")
    return load_trace(DATA / f"{name}.trace.json.gz")
