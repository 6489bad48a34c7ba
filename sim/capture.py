"""Contents of saved activations (paper Section IV, Tensor capture).

Consecutive iterations with optimizer updates: one that only traces, to learn which
storages are saved, then those whose contents are visited at the end of their forward
pass, when every saved activation is final. This module imports torch; others import
it in functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray

from planezip.model.dtypes import dtype_of
from planezip.sim.gpu_kernels import gpu_kernels
from planezip.sim.samples import sample_chunks
from planezip.sim.trace import Storage, Trace, TraceError
from planezip.sim.tracer import Tracer, trace_iteration
from planezip.sim.training import Trainer

__all__ = ["TYPES", "SavedTensor", "capture", "profile"]

TYPES = ("bfloat16", "float32")
"""Types in which FP32 activations can be compressed."""


@dataclass(frozen=True)
class SavedTensor:
    """One saved activation of one iteration, in the type that is compressed.

    Parameters
    ----------
    storage : int
        Number in the trace of the profiled iteration, which has producer and slot.
    dtype : str
    raw_bytes : int
        Of the whole tensor.
    sampled_every : int
        1 if ``data`` is all of it, 4 if it is every fourth chunk of 4 KB.
    data : array [elements] of ``dtype``
    """

    storage: int
    dtype: str
    raw_bytes: int
    sampled_every: int
    data: NDArray[Any]


def profile(trainer: Trainer, source: str) -> Trace:
    """Trace of forward and backward pass of the next batch, without an update."""
    inputs = next(trainer.batches)
    step = replace(trainer.step, inputs=inputs, batch=inputs[0].shape[0])
    with gpu_kernels(trainer.fused_attention):
        trace = trace_iteration(step, source)
    trainer.optimizer.zero_grad(set_to_none=True)
    return trace


def capture(
    trainer: Trainer,
    trace: Trace,
    iterations: int,
    visit: Callable[[int, str, Iterator[SavedTensor]], None],
    types: Sequence[str] = TYPES,
) -> None:
    """Run ``iterations`` iterations, updates between them, and visit what they save.

    Parameters
    ----------
    trainer : Trainer
    trace : Trace
        From :func:`profile`.
    iterations : int
    visit : function of an iteration, a type and the saved tensors in it
        Called at the end of every forward pass, once for each of ``types``; it takes
        the tensors in the order of ``trace.saved``.
    types : sequence of str
        Types that FP32 (and FP64) storages are converted to, of :data:`TYPES`; others
        are as they are.

    Raises
    ------
    TraceError
        If the operators of an iteration differ from those of the trace.
    """
    expected = [op.name for op in trace.ops[: trace.backward_start]]
    for iteration in range(iterations):
        tracer = Tracer(trainer.step.model, hold=trace.saved)

        def between(iteration: int = iteration, tracer: Tracer = tracer) -> None:
            _check_sequence(iteration, [op.name for op in tracer.ops], expected)
            for dtype in types:
                visit(iteration, dtype, _tensors(trace, tracer, dtype))
            tracer.held.clear()

        trainer.update(tracer, between, stop=iteration == iterations - 1)


def _check_sequence(iteration: int, names: list[str], expected: list[str]) -> None:
    if names != expected:
        pairs = enumerate(zip(names, expected, strict=False))
        at = next((k for k, (a, b) in pairs if a != b), min(len(names), len(expected)))
        raise TraceError(
            f"iteration {iteration} leaves the profiled sequence at operator {at}: "
            "a model with dynamic control flow cannot be captured"
        )


def _tensors(trace: Trace, tracer: Tracer, dtype: str) -> Iterator[SavedTensor]:
    for number in trace.saved:
        values = _contents(tracer.held[number], trace.storages[number])
        if values.dtype in (torch.float32, torch.float64):
            values = values.to(getattr(torch, dtype))  # rounds to nearest, ties to even
        name = str(values.dtype).removeprefix("torch.")
        raw = values.view(torch.uint8).numpy()
        data, every = sample_chunks(raw)
        yield SavedTensor(number, name, raw.size, every, data.view(dtype_of(name)))


def _contents(storage: torch.UntypedStorage, description: Storage) -> torch.Tensor:
    dtype = getattr(torch, description.dtype)
    flat: torch.Tensor = torch.empty(0, dtype=dtype, device=storage.device).set_(storage)
    return flat.detach().cpu()
