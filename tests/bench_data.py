"""Real activations for the long tests and the benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np

from tb import activations
from tb.shared import shared

ROOT = Path(__file__).resolve().parents[1]
SHARED = shared("activations")


def real_data() -> dict[str, np.ndarray]:
    """All bytes at hand of each dtype; bfloat16 is made from float32, to nearest even."""
    parts: dict[str, list[np.ndarray]] = {}
    if (SHARED / "index.json").exists():
        for entry in json.loads((SHARED / "index.json").read_text()):
            array = np.load(SHARED / entry["file"]).reshape(-1)
            parts.setdefault(array.dtype.name, []).append(array.view(np.uint8))
            if array.dtype == np.float32:
                half = array.astype(ml_dtypes.bfloat16).view(np.uint8)
                parts.setdefault("bfloat16", []).append(half)
    else:
        for sample in activations.samples():
            parts.setdefault(sample.dtype, []).append(np.frombuffer(sample.data, np.uint8))
    return {name: np.concatenate(arrays) for name, arrays in sorted(parts.items())}
