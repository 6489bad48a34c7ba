"""Operator trace of one training iteration (paper Section IV, Tensor capture).

A trace is what planner and simulator know of a model: the operators in the order
in which they run and, for each tensor storage, who made it, who reads and writes it
and when the framework lets go of it. Views are no storages of their own: an operator
that reads a view reads the storage below it.

:mod:`planezip.sim.trace_file` reads and writes the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from planezip.sim.categories import CATEGORIES

__all__ = [
    "FLOAT_BYTES",
    "LIMIT",
    "OUTSIDE_BUDGET",
    "Kind",
    "Op",
    "Phase",
    "Storage",
    "Trace",
    "TraceError",
]

LIMIT = 1 << 62
"""No count or size may reach it."""

FLOAT_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of an element of each type that a platform's precision replaces."""


class TraceError(ValueError):
    """The trace or its file is not valid; the text says where and what helps."""


class Phase(StrEnum):
    """Part of the iteration, in order."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


class Kind(StrEnum):
    """What a storage is for."""

    INPUT = "input"  # model input or target
    PARAMETER = "parameter"
    BUFFER = "buffer"
    ACTIVATION = "activation"  # made in the forward pass
    GRADIENT = "gradient"  # made in the backward pass: activation gradient or temporary
    PARAMETER_GRADIENT = "parameter_gradient"
    OPTIMIZER_STATE = "optimizer_state"


OUTSIDE_BUDGET = frozenset(
    (Kind.PARAMETER, Kind.BUFFER, Kind.PARAMETER_GRADIENT, Kind.OPTIMIZER_STATE)
)
"""Kinds that the activation budget does not count (paper Section IV, Simulator)."""


@dataclass(frozen=True)
class Op:
    """One operator.

    Parameters
    ----------
    name : str
        As the framework calls it, for example ``aten.convolution``.
    phase : Phase
    flops : int
        Two per multiply-add.
    float_elements : int
        Floating-point elements of every tensor argument and result; the precision of
        the platform gives their bytes.
    other_bytes : int
        Bytes of all other arguments and results, and of an optimizer pass.
    reads, writes : tuple of int
        Storages, each once. ``writes`` has those that the operator creates, in slot
        order, and those it changes in place; a storage changed in place is in
        ``reads`` as well unless its old contents do not matter.
    view : bool
        Only makes a view, or allocates: touches no data, takes no time unless one was
        recorded, and may come after the last real use of what it reads.
    random : bool
        Draws random numbers: a replay has to restore the generator first.
    time_ns : int or None
        Recorded time, which then replaces the cost model.
    scope : str
        Module path, for reports.
    """

    name: str
    phase: Phase
    flops: int = 0
    float_elements: int = 0
    other_bytes: int = 0
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    view: bool = False
    random: bool = False
    time_ns: int | None = None
    scope: str = ""


@dataclass(frozen=True)
class Storage:
    """One tensor storage.

    Parameters
    ----------
    bytes : int
        In the type that was traced.
    dtype : str
        Element type as torch calls it, without prefix (``float32``, ``uint8``).
    kind : Kind
    producer : int
        Operator that creates it; -1 if it exists before the iteration.
    slot : int
        Position among the results of the producer: with ``producer``, the signature
        of the predictor (paper Section III-B).
    death : int
        Last operator during which it exists: the last use, or later if the framework
        holds on to it; the number of operators if it outlives the iteration.
    category : str
        Producer in Table III, or empty.
    """

    bytes: int
    dtype: str
    kind: Kind
    producer: int
    slot: int
    death: int
    category: str = ""

    @property
    def is_float(self) -> bool:
        """Whether the platform's precision sets the element size."""
        return self.dtype in FLOAT_BYTES

    def size_bytes(self, float_bytes: int | None) -> int:
        """Bytes with ``float_bytes`` per floating-point element (None: as traced)."""
        if float_bytes is None or not self.is_float:
            return self.bytes
        return self.bytes // FLOAT_BYTES[self.dtype] * float_bytes


@dataclass(frozen=True)
class Trace:
    """Operators and storages of one iteration.

    Parameters
    ----------
    model : str
    batch : int
        Samples per iteration.
    ops : tuple of Op
        Forward, backward, optimizer, in order. The optimizer step is one operator,
        a memory-bound pass.
    storages : tuple of Storage
    parameter_count : int
    parameter_bytes, gradient_bytes, optimizer_state_bytes : int
        Device memory outside the activation budget.
    notes : mapping
        What else the tracer has to say (versions, excluded tensors, differences to
        the saved-tensor hooks); JSON values, not interpreted.

    Raises
    ------
    TraceError
        If operators and storages contradict each other.
    """

    model: str
    batch: int
    ops: tuple[Op, ...]
    storages: tuple[Storage, ...]
    parameter_count: int = 0
    parameter_bytes: int = 0
    gradient_bytes: int = 0
    optimizer_state_bytes: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def backward_start(self) -> int:
        """First operator that is not in the forward pass."""
        return next(
            (i for i, op in enumerate(self.ops) if op.phase is not Phase.FORWARD),
            len(self.ops),
        )

    @cached_property
    def backward_end(self) -> int:
        """First operator of the optimizer step, or the number of operators."""
        return next(
            (i for i, op in enumerate(self.ops) if op.phase is Phase.OPTIMIZER),
            len(self.ops),
        )

    @cached_property
    def uses(self) -> tuple[tuple[int, ...], ...]:
        """For each storage the operators that read or write it, views left out."""
        found: list[list[int]] = [[] for _ in self.storages]
        for i, op in enumerate(self.ops):
            if not op.view:
                for s in dict.fromkeys(op.reads + op.writes):
                    found[s].append(i)
        return tuple(map(tuple, found))

    @cached_property
    def saved(self) -> tuple[int, ...]:
        """Storages that exist before the backward pass and are read in it.

        Parameters, buffers and empty storages are not among them; input and target
        are (paper Section IV, Table I).
        """
        read = {
            s
            for op in self.ops[self.backward_start : self.backward_end]
            if not op.view
            for s in op.reads
        }
        return tuple(
            i
            for i, s in enumerate(self.storages)
            if i in read
            and s.bytes
            and s.kind not in OUTSIDE_BUDGET
            and s.producer < self.backward_start
        )


def _check(trace: Trace) -> None:
    """Raise TraceError at the first contradiction."""
    storages, count = trace.storages, len(trace.ops)
    order = list(Phase)
    phase = 0
    for name in (
        "batch",
        "parameter_count",
        "parameter_bytes",
        "gradient_bytes",
        "optimizer_state_bytes",
    ):
        if not 0 <= getattr(trace, name) < LIMIT:
            raise TraceError(f"{name} must not be negative, not {getattr(trace, name)!r}")
    for i, op in enumerate(trace.ops):
        where = f"ops[{i}]"
        if order.index(op.phase) < phase:
            raise TraceError(f"{where} is {op.phase} but comes after {order[phase]}")
        phase = order.index(op.phase)
        for number in (op.flops, op.float_elements, op.other_bytes, op.time_ns or 0):
            if not 0 <= number < LIMIT:
                raise TraceError(f"{where} has a count that is negative or too large: {number!r}")
        for name, group in (("reads", op.reads), ("writes", op.writes)):
            if len(set(group)) != len(group):
                raise TraceError(f"{where}.{name} has a storage twice")
            for s in group:
                if not 0 <= s < len(storages):
                    raise TraceError(f"{where}.{name}: there is no storage {s!r}")
                lives = storages[s]
                if i < lives.producer or (i > lives.death and not op.view):
                    raise TraceError(
                        f"{where}.{name}: storage {s} exists only "
                        f"from operator {lives.producer} to {lives.death}"
                    )
                if name == "reads" and lives.producer == i:
                    raise TraceError(f"{where} reads storage {s}, which it creates")
    for s, storage in enumerate(storages):
        where = f"storages[{s}]"
        if not 0 <= storage.bytes < LIMIT:
            raise TraceError(f"{where}.bytes must not be negative, not {storage.bytes!r}")
        if storage.is_float and storage.bytes % FLOAT_BYTES[storage.dtype]:
            raise TraceError(f"{where}.bytes is not a multiple of the size of {storage.dtype}")
        if storage.category not in CATEGORIES:
            raise TraceError(f"{where}.category must be of Table III, not {storage.category!r:.40}")
        if not max(storage.producer, 0) <= storage.death <= count or storage.producer < -1:
            raise TraceError(f"{where} lives from {storage.producer} to {storage.death}")
        if storage.slot < 0:
            raise TraceError(f"{where}.slot must not be negative, not {storage.slot!r}")
        if storage.producer >= 0 and s not in trace.ops[storage.producer].writes:
            raise TraceError(f"{where}: operator {storage.producer} does not write it")
    if sum(s.bytes for s in storages) >= LIMIT:
        raise TraceError("the storages together are too large")
