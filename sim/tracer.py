"""Trace of a PyTorch training step (paper Section IV, Tensor capture).

A dispatch mode sees every ATen operator of forward and backward pass, on the meta
device (shapes without data) or on real tensors, and books every read and write on the
storage below the tensor. This module imports torch; others import it in functions only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from planezip.sim.categories import category
from planezip.sim.flops import Shape, operator_flops
from planezip.sim.trace import FLOAT_BYTES, Kind, Op, Phase, Storage, Trace, TraceError

__all__ = ["SGD_BYTES_PER_PARAMETER", "Step", "Tracer", "trace_iteration"]

SGD_BYTES_PER_PARAMETER = 20
"""Traffic of SGD with momentum in FP32: weight, gradient, momentum read, two written."""

_OVERWRITES = {
    f"aten.{name}"
    for name in (
        "copy_",
        "zero_",
        "fill_",
        "bernoulli_",
        "normal_",
        "uniform_",
        "random_",
    )
}  # in-place operators to which the old contents do not matter
_ALLOCATES = {
    f"aten.{name}"
    for name in (
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
    )
}  # these launch no kernel
_RUNNING_STATISTICS = {"aten.native_batch_norm", "aten.cudnn_batch_norm"}
# (they change running_mean and running_var, which their schema does not say)


@dataclass(frozen=True)
class Step:
    """One training step: ``loss(model, *inputs)`` is a scalar to call ``backward`` on."""

    model: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    loss: Callable[..., torch.Tensor]
    batch: int


class Tracer(TorchDispatchMode):
    """Records operators and storages while it is active.

    Parameters
    ----------
    model : torch.nn.Module
        Its parameters and buffers get the first storage numbers.
    hold : collection of int
        Storages to keep alive in ``held``.

    Attributes
    ----------
    phase : Phase
        Of the operators that come next.
    ops : list of Op
    storages : list of Storage
        As they are when they first appear; ``death`` is set by :meth:`finish`.
    held : dict of int to torch.UntypedStorage
    """

    def __init__(self, model: torch.nn.Module, hold: Collection[int] = ()) -> None:
        super().__init__()
        self.phase = Phase.FORWARD
        self.ops: list[Op] = []
        self.storages: list[Storage] = []
        self.held: dict[int, torch.UntypedStorage] = {}
        self._hold = frozenset(hold)
        self._numbers: dict[int, int] = {}
        self._references: list[StorageWeakRef] = []  # an address is used once while they live
        self._writer: dict[int, tuple[str, int]] = {}  # last operator and slot, forward only
        self._before: Counter[Kind] = Counter()  # storages without producer
        self._scope: list[str] = []
        for parameter in model.parameters():
            self.number(parameter, Kind.PARAMETER)
        for buffer in model.buffers():
            self.number(buffer, Kind.BUFFER)

    def number(self, tensor: torch.Tensor, kind: Kind = Kind.INPUT, slot: int | None = None) -> int:
        """Number of the storage below ``tensor``; a new one is of ``kind``.

        ``slot`` is the position among the results of the running operator, None for
        a tensor that was there before.
        """
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError) as error:
            raise TraceError(
                f"operator {len(self.ops)} uses a tensor without a storage ({tensor.layout}): "
                "only dense tensors can be traced"
            ) from error
        key = storage._cdata
        if key not in self._numbers:
            self._numbers[key] = len(self.storages)
            if len(self.storages) in self._hold:
                self.held[len(self.storages)] = storage
            self._references.append(StorageWeakRef(storage))
            self.storages.append(
                Storage(
                    bytes=storage.nbytes(),
                    dtype=_dtype(tensor),
                    kind=kind,
                    producer=-1 if slot is None else len(self.ops),
                    slot=self._before[kind] if slot is None else slot,
                    death=0,
                )
            )
            self._before[kind] += slot is None
        return self._numbers[key]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.replace("::", ".")
        named = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
        arguments = _tensors(named)
        reads = [self.number(t) for t in arguments]
        changed = [
            self.number(t)
            for a in func._schema.arguments
            if a.alias_info is not None and a.alias_info.is_write
            for t in _tensors(named.get(a.name))
        ]
        if name in _RUNNING_STATISTICS and named.get("training"):
            changed += map(self.number, _tensors((named["running_mean"], named["running_var"])))
        shapes = tree_map(lambda x: Shape(x.shape) if isinstance(x, torch.Tensor) else x, named)
        known = len(self.storages)

        results = func(*args, **kwargs)

        outputs = _tensors(results)
        kind = Kind.ACTIVATION if self.phase is Phase.FORWARD else Kind.GRADIENT
        slots = [self.number(t, kind, slot) for slot, t in enumerate(outputs)]
        created = [n for n in slots if n >= known]
        view = name in _ALLOCATES or (bool(slots) and not created and not changed)
        touched = [] if view else arguments + outputs
        if name in _OVERWRITES:
            reads = [n for n in reads if n not in changed]
        if self.phase is Phase.FORWARD:
            self._writer |= dict.fromkeys(changed, (name, 0))
            self._writer |= {n: (name, self.storages[n].slot) for n in created}
        self.ops.append(
            Op(
                name=name,
                phase=self.phase,
                flops=operator_flops(name, shapes, [Shape(t.shape) for t in outputs]),
                float_elements=sum(t.numel() for t in touched if _dtype(t) in FLOAT_BYTES),
                other_bytes=sum(
                    t.numel() * t.element_size() for t in touched if _dtype(t) not in FLOAT_BYTES
                ),
                reads=tuple(dict.fromkeys(reads)),
                writes=tuple(dict.fromkeys(created + changed)),
                view=view,
                random=torch.Tag.nondeterministic_seeded in func.tags,
                scope=self._scope[-1] if self._scope else "",
            )
        )
        return results

    @contextmanager
    def scopes(self, model: torch.nn.Module) -> Iterator[None]:
        """Names the modules of ``model`` as scopes of the operators in their forward."""

        def enter(name: str) -> Callable[..., None]:
            return lambda *_: self._scope.append(name)

        def leave(*_: object) -> None:
            self._scope.pop()

        handles = []
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(enter(name)))
            handles.append(module.register_forward_hook(leave, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def finish(self, step: Step, source: str) -> Trace:
        """The trace, with the optimizer step as one memory-bound operator at its end."""
        parameters = list(step.model.parameters())
        weights = tuple(dict.fromkeys(map(self.number, parameters)))
        gradients = dict.fromkeys(
            self.number(p.grad, Kind.PARAMETER_GRADIENT) for p in parameters if p.grad is not None
        )
        count = sum(p.numel() for p in parameters)
        ops = (
            *self.ops,
            Op(
                name="optimizer",
                phase=Phase.OPTIMIZER,
                other_bytes=SGD_BYTES_PER_PARAMETER * count,
                reads=tuple(dict.fromkeys((*weights, *gradients))),
                writes=weights,
            ),
        )
        last_use = [max(s.producer, 0) for s in self.storages]
        for i, op in enumerate(ops):
            if not op.view:
                for n in op.reads + op.writes:
                    last_use[n] = i
        lasting = (Kind.PARAMETER, Kind.BUFFER, Kind.PARAMETER_GRADIENT)
        storages = []
        for n, storage in enumerate(self.storages):
            kind = Kind.PARAMETER_GRADIENT if n in gradients else storage.kind
            storages.append(
                replace(
                    storage,
                    kind=kind,
                    death=len(ops) if kind in lasting else last_use[n],
                    category=category(*self._writer[n]) if kind is Kind.ACTIVATION else "",
                )
            )
        parameter_bytes = sum(self.storages[n].bytes for n in weights)
        return Trace(
            model=source,
            batch=step.batch,
            ops=ops,
            storages=tuple(storages),
            parameter_count=count,
            parameter_bytes=parameter_bytes,
            gradient_bytes=sum(self.storages[n].bytes for n in gradients),
            optimizer_state_bytes=parameter_bytes,  # momentum
        )


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def trace_iteration(step: Step, source: str) -> Trace:
    """Trace of forward and backward pass of ``step``, without notes.

    Raises
    ------
    TraceError
        If the step fails or uses what cannot be traced.
    """
    tracer = Tracer(step.model)
    try:
        with tracer.scopes(step.model), tracer:
            loss = step.loss(step.model, *step.inputs)
            tracer.phase = Phase.BACKWARD
            loss.backward()
    except TraceError:
        raise
    except Exception as error:  # whatever the model raises
        last = tracer.ops[-1].name if tracer.ops else "its start"
        needs_data = "meta tensor" in str(error)
        raise TraceError(
            f"the step failed in the {tracer.phase} pass after {last}: "
            f"{type(error).__name__}: {error}"
            + ("; trace it with data instead of shapes (--device cpu)" if needs_data else "")
        ) from error
    return tracer.finish(step, source)
