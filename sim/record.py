"""Record the trace of a model by name (torch is imported when a function is called)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from planezip.sim.extra import require_capture
from planezip.sim.shipped import WORKLOADS
from planezip.sim.trace import Trace
from planezip.sim.trace_file import save_trace

__all__ = ["record_trace", "record_workloads"]


def record_trace(
    model: str,
    batch: int,
    *,
    device: str = "meta",
    fused_attention: bool = False,
    sequence: int | None = None,
    pretrained: bool = False,
) -> Trace:
    """Trace of one training iteration of ``model``.

    See :func:`planezip.sim.workloads.build_step` for the parameters and
    :func:`planezip.sim.tracer.trace_step` for the notes in the trace.

    Raises
    ------
    MissingExtraError
        Without torch or the library that has the model.
    ModelError, TraceError
        If the model cannot be had or cannot be traced.
    """
    require_capture()
    from planezip.sim.gpu_kernels import gpu_kernels
    from planezip.sim.trace_step import trace_step
    from planezip.sim.workloads import build_step, versions

    step = build_step(
        model,
        batch,
        device=device,
        fused_attention=fused_attention,
        sequence=sequence,
        pretrained=pretrained,
    )
    notes = {
        "versions": versions(),
        "attention": "fused" if fused_attention else "non-fused",
    }
    with gpu_kernels(fused_attention):
        return trace_step(step, model, notes)


def record_workloads(folder: Path) -> Iterator[tuple[str, Trace]]:
    """Write the trace files of all shipped workloads to ``folder``; yields each as it is done."""
    require_capture("timm", "transformers")
    folder.mkdir(parents=True, exist_ok=True)
    for name, workload in WORKLOADS.items():
        trace = record_trace(
            workload.model, workload.batch, fused_attention=workload.fused_attention
        )
        save_trace(trace, folder / f"{name}.trace.json.gz")
        yield name, trace
