"""Trace of a step with notes: operator counts, what cannot be evicted, and how the saved
set compares with autograd's saved-tensor hooks (this module imports torch)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from planezip.sim.trace import Kind, Trace
from planezip.sim.tracer import Step, Tracer, trace_iteration

__all__ = ["trace_step"]


def trace_step(step: Step, source: str, notes: Mapping[str, Any] | None = None) -> Trace:
    """Trace one iteration of ``step``, and compare its saved set with autograd's hooks.

    Parameters
    ----------
    step : Step
        On the meta device or with real tensors. Gradients must be None; they are set.
    source : str
        Name of the model in the trace.
    notes : mapping
        Goes into the trace's notes, beside:

        ``operators``
            ``dispatched`` (every ATen call of forward and backward pass), ``views``
            (those that only make views or allocate) and ``computing`` (the rest).
        ``excluded``
            Storages that exist before the backward pass and are read in it, but that
            cannot be evicted, by reason.
        ``saved_tensor_hooks``
            ``only_in_trace`` and ``only_in_hooks``: storage and explanation.

    Raises
    ------
    TraceError
        If the step uses what cannot be traced.
    """
    trace = trace_iteration(step, source)
    hooked = _hooked_storages(step)
    return replace(
        trace,
        notes={
            **(notes or {}),
            "operators": _operator_counts(trace),
            "excluded": _excluded(trace),
            "saved_tensor_hooks": _differences(trace, hooked),
        },
    )


def _operator_counts(trace: Trace) -> dict[str, int]:
    ops = trace.ops[: trace.backward_end]
    views = sum(op.view for op in ops)
    return {"dispatched": len(ops), "views": views, "computing": len(ops) - views}


def _backward_readers(trace: Trace) -> dict[int, str]:
    """Storages that exist before the backward pass, with their first reader in it."""
    readers: dict[int, str] = {}
    for op in trace.ops[trace.backward_start : trace.backward_end]:
        if not op.view:
            for n in op.reads:
                if trace.storages[n].producer < trace.backward_start:
                    readers.setdefault(n, op.name)
    return readers


def _excluded(trace: Trace) -> dict[str, list[int]]:
    reasons: dict[str, list[int]] = {"parameter": [], "buffer": [], "empty": []}
    saved = set(trace.saved)
    for n in sorted(_backward_readers(trace)):
        if n not in saved:
            storage = trace.storages[n]
            reasons.setdefault(storage.kind.value if storage.bytes else "empty", []).append(n)
    return reasons


def _differences(trace: Trace, hooked: set[int]) -> dict[str, list[list[int | str]]]:
    readers = _backward_readers(trace)
    saved = set(trace.saved)
    evictable = {
        n
        for n in hooked
        if trace.storages[n].bytes and trace.storages[n].kind in (Kind.INPUT, Kind.ACTIVATION)
    }
    return {
        "only_in_trace": [
            [n, f"read by {readers[n]} without being saved"] for n in sorted(saved - evictable)
        ],
        "only_in_hooks": [
            [n, "saved but not read in the backward pass"] for n in sorted(evictable - saved)
        ],
    }


def _hooked_storages(step: Step) -> set[int]:
    """Storages that autograd saves in a forward pass; numbers are those of the trace.

    The hooks keep nothing, so no backward pass follows; they add no storage, so the
    numbers agree.
    """
    tracer = Tracer(step.model)
    found: set[int] = set()

    def pack(tensor: torch.Tensor) -> Any:
        found.add(tracer.number(tensor))

    def unpack(_: Any) -> torch.Tensor:
        raise AssertionError("no backward pass follows")

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack), tracer:
        step.loss(step.model, *step.inputs)
    return found
