"""Variants of the codec for the sweep, what each costs in ratio, and its simulation.

The benches and the sample of real activations are those of ``tb``, which is not installed:
the sweep runs in a checkout.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from planezip.hdl.compressor import CompressorLane
from planezip.hdl.decompressor import DecompressorLane
from planezip.model.format import (
    ALL_ENCODINGS,
    BLOCK_BYTES,
    BLOCKS_PER_CHUNK,
    HEADER_BYTES,
    Parameters,
    Tag,
)
from planezip.model.measure import measure

__all__ = ["VARIANTS", "activations", "ratios", "simulate"]

_CHOICES = (Tag.ZVC, Tag.DBX, Tag.BX, Tag.ZBX)

VARIANTS: Mapping[str, Parameters] = {
    "all": Parameters(),
    **{f"no_{tag.name.lower()}": Parameters(encodings=ALL_ENCODINGS - {tag}) for tag in _CHOICES},
    "only_16": Parameters(64, (16,)),
    "only_32": Parameters(32, (32,)),
}
"""All encodings, each left out in turn, and one symbol width."""

_LANES: Mapping[str, tuple[Callable[[Parameters], Any], str, Mapping[str, Any]]] = {
    "compressor": (
        CompressorLane,
        "tb.test_compressor",
        {"beats": 4, "rounds": 1, "pauses": ["never", "never"]},
    ),
    "decompressor": (DecompressorLane, "tb.test_decompressor", {"most_bytes": 3000}),
}

Activations = Mapping[str, Mapping[str, NDArray[np.uint8]]]


def simulate(lane: str, parameters: Parameters) -> int:
    """Run the lane's bench ``mixed_tensors`` against the golden codec; the number of tests.

    Raises
    ------
    tb.run.BenchFailure, tb.run.SimulatorMissing
    """
    from tb.run import run_bench

    make, module, arguments = _LANES[lane]
    return run_bench(
        make(parameters),
        module,
        name=f"{lane}_lane",
        arguments={"parameters": parameters, **arguments},
        testcase="mixed_tensors",
        flatten=True,
    )


def activations() -> tuple[str, Activations]:
    """Where the data is from, and the bytes by model and dtype (bfloat16, float32).

    ../shared/activations where it is there (PLANEZIP_SHARED), the shipped sample otherwise.
    """
    from tb.shared import shared

    folder = shared("activations")
    parts: dict[str, dict[str, list[NDArray[np.uint8]]]] = {}
    if (folder / "index.json").exists():
        for entry in json.loads((folder / "index.json").read_text()):
            array = np.load(folder / entry["file"]).reshape(-1)
            if array.dtype == np.float32:
                model = parts.setdefault(entry["file"].split("/")[0], {})
                model.setdefault("float32", []).append(array.view(np.uint8))
                half = array.astype(ml_dtypes.bfloat16).view(np.uint8)
                model.setdefault("bfloat16", []).append(half)
        source = "shared/activations"
    else:
        from tb.activations import samples

        for sample in samples():
            if sample.dtype in ("bfloat16", "float32"):
                model = parts.setdefault(sample.name.split("/")[0], {})
                model.setdefault(sample.dtype, []).append(np.frombuffer(sample.data, np.uint8))
        source = "tb/data/activations.npz"
    return source, {
        name: {dtype: np.concatenate(arrays) for dtype, arrays in model.items()}
        for name, model in parts.items()
    }


def ratios(data: Activations, parameters: Parameters) -> dict[str, float]:
    """Geometric mean over the models of raw over wire bytes, by dtype.

    A lane with one symbol width takes every tensor as symbols of that width.
    """
    found: dict[str, list[float]] = {}
    for model in data.values():
        for dtype, raw in model.items():
            narrow = dtype == "bfloat16"
            w = parameters.symbol_bits[0 if narrow else -1]
            found.setdefault(dtype, []).append(_ratio(raw, w, parameters))
    return {dtype: math.prod(each) ** (1 / len(each)) for dtype, each in sorted(found.items())}


def _ratio(raw: NDArray[np.uint8], w: int, parameters: Parameters) -> float:
    bits = measure(raw, w).bits[:, sorted(parameters.encodings)].min(axis=1).astype(np.int64)
    starts = np.arange(0, len(bits), BLOCKS_PER_CHUNK)
    bodies = (np.add.reduceat(bits, starts) + 7) // 8
    chunks = np.diff(np.append(starts, len(bits))) * BLOCK_BYTES
    return float(raw.size / (np.minimum(bodies, chunks).sum() + HEADER_BYTES * len(starts)))
