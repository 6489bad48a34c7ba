"""Training of a step's model, before and between captures (this module imports torch)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from planezip.sim.batches import Batch
from planezip.sim.gpu_kernels import gpu_kernels
from planezip.sim.trace import TraceError
from planezip.sim.tracer import Step

__all__ = ["Trainer", "load_state", "save_state"]


def _nothing() -> None:
    pass


@dataclass
class Trainer:
    """Model, optimizer and batches; one call of :meth:`update` is one iteration.

    Parameters
    ----------
    step : Step
    batches : iterator of tensors
        Inputs of ``step.loss``.
    optimizer : torch.optim.Optimizer
    fused_attention : bool
    origin : str
        Where the weights are from before any training, for people.
    trained : int
        Iterations of training since then.
    """

    step: Step
    batches: Iterator[Batch]
    optimizer: torch.optim.Optimizer
    fused_attention: bool = False
    origin: str = "random"
    trained: int = 0

    @property
    def weights(self) -> str:
        """Where the weights are from, for people."""
        return f"{self.origin}, {self.trained} steps" if self.trained else self.origin

    def update(
        self,
        around_forward: AbstractContextManager[Any] | None = None,
        between: Callable[[], None] = _nothing,
        stop: bool = False,
    ) -> float:
        """One iteration: forward, ``between``, backward, optimizer. Returns the loss.

        ``stop`` ends it before the backward pass. TraceError if the model fails.
        """
        inputs = next(self.batches)
        with gpu_kernels(self.fused_attention):
            with around_forward or nullcontext():
                loss = self._loss(inputs)
            between()
            if stop:
                return float(loss.detach())
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def _loss(self, inputs: Batch) -> torch.Tensor:
        try:
            return self.step.loss(self.step.model, *inputs)
        except (ValueError, MemoryError):
            raise
        except Exception as error:  # whatever the model raises
            raise TraceError(
                f"the model fails on its inputs: {type(error).__name__}: {error}"
            ) from error

    def train(
        self, steps: int, report: Callable[[int, float, float], None] | None = None
    ) -> list[float]:
        """Losses of ``steps`` iterations; ``report(done, loss, seconds_left)`` after each."""
        losses = []
        start = time.monotonic()
        for done in range(1, steps + 1):
            losses.append(self.update())
            self.trained += 1
            if report is not None:
                report(done, losses[-1], (time.monotonic() - start) / done * (steps - done))
        return losses


def save_state(trainer: Trainer, path: Path) -> None:
    """Weights, buffers and optimizer state, as .safetensors."""
    from safetensors.torch import save_file

    tensors = {f"model.{k}": v.contiguous() for k, v in _unshared(trainer.step.model).items()}
    for number, state in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{k}": v for k, v in state.items() if v is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, {"origin": trainer.origin, "trained": str(trainer.trained)})


def load_state(trainer: Trainer, path: Path) -> None:
    """Inverse of :func:`save_state`, for the same model and optimizer.

    Raises
    ------
    ValueError
        If the file belongs to another model.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is not a .safetensors file: {error}") from error
    own = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
    expected = set(_unshared(trainer.step.model))
    if set(own) != expected:
        wrong = sorted(set(own) ^ expected)[0]
        raise ValueError(f"{path} is the state of another model: {wrong} is in one only")
    trainer.step.model.load_state_dict(own, strict=False)
    states: dict[int, dict[str, Any]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".")
            states.setdefault(int(number), {})[name] = tensor
    groups = trainer.optimizer.state_dict()["param_groups"]
    trainer.optimizer.load_state_dict({"state": states, "param_groups": groups})
    trainer.origin = metadata.get("origin", path.name)
    trainer.trained = int(metadata.get("trained", 0))


def _unshared(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """State dictionary in which every storage appears once (tied weights)."""
    found: dict[int, str] = {}
    state = model.state_dict()
    for name, tensor in state.items():
        found.setdefault(tensor.data_ptr(), name)
    return {name: state[name] for name in found.values()}
