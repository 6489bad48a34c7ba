"""The measurements behind Fig. 3 and Tables III and IV, and their shipped results.

``planezip characterise --measure`` makes them anew; the files in ``data/`` were made so.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from planezip.sim.ratios import Ratios, load_ratios, save_ratios
from planezip.sim.session import Options, Reporter, run_capture
from planezip.sim.shipped import DATA, WORKLOADS, shipped_trace

__all__ = ["MEASUREMENTS", "measure", "ratios_path", "shipped_ratios"]

_CNN: dict[str, Any] = {"types": ("bfloat16", "float32"), "batch": 8}
_SHORT: dict[str, Any] = {**_CNN, "train_steps": 12, "learning_rate": 1e-3}
_GPT2: dict[str, Any] = {"types": ("bfloat16", "float32"), "batch": 1}

MEASUREMENTS: dict[str, Options] = {
    "resnet50_random": Options("timm:resnet50", iterations=1, **_CNN),
    "densenet121_random": Options("timm:densenet121", iterations=1, **_CNN),
    "efficientnet_b0_random": Options("timm:efficientnet_b0", iterations=1, **_CNN),
    "vit_b16_random": Options("timm:vit_base_patch16_224", iterations=1, **_CNN),
    "gpt2_random": Options("hf:gpt2", iterations=1, **_GPT2),
    "resnet50_short": Options("timm:resnet50", **_SHORT),
    "densenet121_short": Options("timm:densenet121", **_SHORT),
    "efficientnet_b0_short": Options("timm:efficientnet_b0", **_SHORT),
    "vit_b16_short": Options("timm:vit_base_patch16_224", **_SHORT),
    "gpt2_trained": Options("hf:gpt2", train_steps=300, train_batch=1, train_sequence=128, **_GPT2),
    "efficientnet_lite0_pretrained": Options(
        "pypi:efficientnet-lite0", pretrained=True, learning_rate=1e-3, **_CNN
    ),
    "resnet50_pretrained": Options("timm:resnet50", pretrained=True, learning_rate=1e-3, **_CNN),
    "densenet121_pretrained": Options(
        "timm:densenet121", pretrained=True, learning_rate=1e-3, **_CNN
    ),
    "efficientnet_b0_pretrained": Options(
        "timm:efficientnet_b0", pretrained=True, learning_rate=1e-3, **_CNN
    ),
    "vit_b16_pretrained": Options(
        "timm:vit_base_patch16_224", pretrained=True, learning_rate=1e-3, **_CNN
    ),
}
"""Capture of each measurement, by ``WORKLOAD_STATE``.

The last four are the paper's; they download weights.
"""


def ratios_path(name: str, dtype: str, folder: Path = DATA) -> Path:
    """File of a measurement in a type."""
    return folder / f"{name}.{dtype}.ratios.json.gz"


def shipped_ratios(name: str, dtype: str, folder: Path = DATA) -> Ratios | None:
    """Result of a measurement in a type; None if it was not made."""
    path = ratios_path(name, dtype, folder)
    return load_ratios(path) if path.exists() else None


def measure(
    name: str,
    images: Path | None,
    text: Path | None,
    folder: Path,
    reporter: Reporter | None = None,
    state: Path | None = None,
) -> dict[str, Ratios]:
    """Make a measurement and write its ratios to ``folder``.

    Parameters
    ----------
    name : str
        Of :data:`MEASUREMENTS`.
    images, text : Path or None
        Data for the models that take them; None: random data.
    state : Path or None
        Trained state to start from, instead of training.

    Raises
    ------
    MissingExtraError, ModelError, DataError
    """
    if name not in MEASUREMENTS:
        raise ValueError(f"measurement must be one of {', '.join(MEASUREMENTS)}, not {name!r}")
    options = MEASUREMENTS[name]
    if options.model.startswith("hf:"):
        options = replace(options, text=text)
    else:
        options = replace(options, images=images)
    if state is not None:
        options = replace(options, state=state, train_steps=0)
    workload = name.rpartition("_")[0]
    trace = shipped_trace(workload) if workload in WORKLOADS else None
    measured = run_capture(options, measure=True, against=trace, reporter=reporter)
    folder.mkdir(parents=True, exist_ok=True)
    for dtype, ratios in measured.items():
        save_ratios(ratios, ratios_path(name, dtype, folder))
    return measured
