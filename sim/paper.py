"""Numbers that the paper prints (arXiv:2610.25033v1), to stand beside ours."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "FIG_1A",
    "FIG_1B_RANGE",
    "FIG_3",
    "FIG_3_MEAN",
    "FIG_3_OTHER_LABELS",
    "MODELS",
    "TABLE_1",
    "TABLE_3",
    "TABLE_4",
    "Producer",
]


class Producer(NamedTuple):
    """A row of Table III.

    Share of the saved bytes (least and largest percent of a model), ratio by encoding,
    the most frequent encoding and its percent of the blocks.
    """

    share: tuple[int, int]
    ratios: dict[str, float]
    top: str
    top_percent: int


MODELS = ("resnet50", "densenet121", "efficientnet_b0", "vit_b16", "gpt2")
"""Workloads of :data:`planezip.sim.shipped.WORKLOADS` in the paper's order."""

TABLE_1: dict[str, tuple[int, float, int]] = {
    "resnet50": (216, 11.0, 896),
    "densenet121": (494, 16.7, 3162),
    "efficientnet_b0": (314, 11.3, 1276),
    "vit_b16": (211, 9.0, 1910),
    "gpt2": (275, 21.2, 2115),
}
"""Saved tensors, saved GB, operators."""

FIG_1A: dict[str, tuple[float, float]] = {"A": (10.1, 95.0), "B": (12.6, 99.9)}
"""Median ratio of swap to recompute time, and percent of the bytes above 1."""

FIG_1B_RANGE: dict[str, tuple[int, int]] = {"A": (7, 37), "B": (6, 12)}
"""Least and largest share, in percent, that the link can move."""

FIG_3: dict[str, dict[str, float]] = {
    "bfloat16": {
        "resnet50": 1.88,
        "densenet121": 2.14,
        "efficientnet_b0": 1.40,
        "vit_b16": 1.31,
        "gpt2": 1.97,
    },
    "float32": {
        "resnet50": 1.50,
        "densenet121": 1.74,
        "efficientnet_b0": 1.15,
        "vit_b16": 1.11,
        "gpt2": 1.57,
    },
}
"""PlaneZip ratio of each model.

The figure's text has the FP32 labels sorted by value, not by model. This order is the one
in which our own FP32 ratios come out when the (BF16, FP32) pairs of two states of each
model are continued to the printed BF16 ratio: 1.64, 1.58 and 1.54 for DenseNet-121, GPT-2
and ResNet-50.
"""

FIG_3_OTHER_LABELS = {"resnet50": 1.74, "densenet121": 1.57, "gpt2": 1.50}
"""FP32 labels if they stood in the order of Table I, for a sensitivity run."""

FIG_3_MEAN: dict[str, dict[str, float]] = {
    "bfloat16": {"ZVC": 1.18, "BPC": 1.50, "PlaneZip": 1.71, "PlaneZip-32": 1.65},
    "float32": {"ZVC": 1.20, "PlaneZip": 1.39, "PlaneZip-32": 1.39},
}
"""Geometric means over the five models, where the text has them."""

TABLE_3: dict[str, Producer] = {
    "Conv output": Producer((18, 52), {"ZVC": 1.00, "BX": 1.43, "PlaneZip": 1.45}, "BX", 74),
    "Elementwise": Producer((26, 39), {"ZVC": 1.00, "BX": 1.33, "PlaneZip": 1.33}, "BX", 88),
    "ReLU output": Producer((45, 48), {"ZVC": 2.16, "BX": 1.85, "PlaneZip": 3.21}, "ZBX", 60),
    "Copy/concat": Producer((6, 32), {"ZVC": 1.02, "BX": 1.41, "PlaneZip": 1.41}, "BX", 84),
    "Softmax": Producer((16, 23), {"ZVC": 1.51, "BX": 2.02, "PlaneZip": 2.10}, "BX", 62),
    "Linear output": Producer((6, 21), {"ZVC": 1.00, "BX": 1.32, "PlaneZip": 1.32}, "BX", 96),
    "Dropout output": Producer((23, 23), {"ZVC": 1.94, "BX": 2.21, "PlaneZip": 2.50}, "ZBX", 51),
    "Norm in/out": Producer((0, 11), {"ZVC": 1.00, "BX": 1.31, "PlaneZip": 1.31}, "BX", 98),
    "Log-softmax": Producer((0, 8), {"ZVC": 1.00, "BX": 2.20, "PlaneZip": 2.23}, "DBX", 72),
    "Dropout mask": Producer((6, 6), {"ZVC": 1.00, "BX": 5.96, "PlaneZip": 5.86}, "BX", 100),
    "Indices": Producer((0, 2), {"ZVC": 1.88, "BX": 3.01, "PlaneZip": 5.25}, "ZBX", 100),
}
"""Rows by producer; BF16."""

TABLE_4: dict[str, tuple[tuple[float, float, float], float, float, float, float | None]] = {
    "resnet50": ((1.88, 1.88, 1.89), 0.6, 9.7, 28.7, 1.78),
    "densenet121": ((2.14, 2.13, 2.15), 0.7, 12.5, 43.1, None),
    "efficientnet_b0": ((1.40, 1.40, 1.41), 0.8, 4.3, 4.8, None),
    "vit_b16": ((1.31, 1.31, 1.31), 0.3, 2.6, 4.3, 1.41),
    "gpt2": ((1.97, 1.97, 1.97), 0.2, 3.2, 29.8, 2.22),
}
"""Ratio per iteration; error in percent per tensor, operator type and global; ratio at
random initialisation; BF16."""
