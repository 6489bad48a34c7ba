"""Compressed sizes of a model's saved activations, as measured (needs no torch).

The file is versioned JSON, compressed with gzip (``schemas/ratios.json``). Planner and
figures work from it; ``planezip capture --ratios`` writes it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from planezip.sim.trace import Trace

__all__ = [
    "Ratios",
    "RatiosError",
    "TensorSizes",
    "load_ratios",
    "placed",
    "save_ratios",
    "wire_bytes",
]

RATIOS_VERSION = 1


class RatiosError(ValueError):
    """A ratios file is not valid; the text says where and what helps."""


@dataclass(frozen=True)
class TensorSizes:
    """Sizes of one saved activation.

    Parameters
    ----------
    position, slot : int
        Producing operator in the captured sequence and place among its results.
    operator, category : str
        Its name, and the producer as Table III names it.
    dtype : str
        Type that was compressed.
    raw_bytes : int
    wire_bytes : mapping of str to sequence of int
        By encoding, in every iteration; of the whole tensor, scaled where it was sampled.
    tags : sequence of int
        Blocks of each tag in the PlaneZip codec, first iteration, of what was sampled.
    storage : int
        Counterpart in the trace at the training batch size; -1: none.
    """

    position: int
    slot: int
    operator: str
    category: str
    dtype: str
    raw_bytes: int
    wire_bytes: Mapping[str, Sequence[int]]
    tags: Sequence[int]
    storage: int


@dataclass(frozen=True)
class Ratios:
    """Sizes of all saved activations of a model in one type.

    Parameters
    ----------
    model : str
        As the trace calls it.
    weights : str
        Where the weights are from, for people.
    dtype : str
        ``bfloat16`` or ``float32``: type of the floating-point activations.
    batch, iterations : int
    tensors : sequence of TensorSizes
    unmatched_bytes, trace_bytes : int
        Saved bytes of the trace without a counterpart, and all of them; 0 without trace.
    notes : mapping
        JSON values, not interpreted.
    """

    model: str
    weights: str
    dtype: str
    batch: int
    iterations: int
    tensors: Sequence[TensorSizes]
    unmatched_bytes: int = 0
    trace_bytes: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)

    def ratio(self, encoding: str = "PlaneZip", iteration: int = 0) -> float:
        """Raw over wire bytes of all tensors (a tensor that grows counts as it is)."""
        self.check(encoding, iteration)
        raw = sum(t.raw_bytes for t in self.tensors)
        wire = sum(t.wire_bytes[encoding][iteration] for t in self.tensors)
        return raw / wire

    def check(self, encoding: str, iteration: int) -> None:
        """RatiosError unless ``encoding`` was measured in ``iteration``."""
        known = list(self.tensors[0].wire_bytes) if self.tensors else []
        if encoding not in known:
            raise RatiosError(f"encoding must be one of {', '.join(known)}, not {encoding!r}")
        if not 0 <= iteration < self.iterations:
            raise RatiosError(f"iteration must be below {self.iterations}, not {iteration!r}")


def wire_bytes(
    trace: Trace,
    ratios: Ratios,
    encoding: str = "PlaneZip",
    iteration: int = 0,
    float_bytes: int | None = None,
) -> dict[int, int]:
    """Predicted wire bytes of every saved storage of ``trace``.

    Parameters
    ----------
    float_bytes : int
        Bytes of a floating-point element (None: as traced).

    Returns
    -------
    dict of storage to bytes
        Rounded up and never above the raw bytes, since the runtime bypasses the engine;
        storages without a measurement have their raw bytes (paper Section IV).
    """
    ratios.check(encoding, iteration)
    found = {n: trace.storages[n].size_bytes(float_bytes) for n in trace.saved}
    for t in ratios.tensors:
        if t.storage in found:
            raw = found[t.storage]
            found[t.storage] = min(raw, -(-raw * t.wire_bytes[encoding][iteration] // t.raw_bytes))
    return found


def placed(ratios: Ratios, trace: Trace) -> Ratios:
    """``ratios`` with each tensor's storage in ``trace``, whose batch size may differ.

    Ratios that were mapped to this trace (``planezip capture --against``) stay as they are,
    others are found by their signature.

    Raises
    ------
    RatiosError
        If the signatures are not those of ``trace``.
    """
    if ratios.trace_bytes == sum(trace.storages[n].bytes for n in trace.saved):
        return ratios
    number = {}
    for n in trace.saved:
        s = trace.storages[n]
        name = trace.ops[s.producer].name if s.producer >= 0 else "input"
        number[s.producer, s.slot, name] = n
    wanted = [(t.position, t.slot, t.operator) for t in ratios.tensors]
    if missing := [w for w in wanted if w not in number]:
        raise RatiosError(
            f"result {missing[0][1]} of operator {missing[0][0]} ({missing[0][2]}) is not saved in "
            "this trace: measure with `planezip capture --against TRACE`, which aligns the two"
        )
    tensors = [replace(t, storage=number[w]) for t, w in zip(ratios.tensors, wanted, strict=True)]
    return replace(ratios, tensors=tensors)


def save_ratios(ratios: Ratios, path: Path | str) -> None:
    """Write ``ratios`` to ``path``; equal ratios give equal files."""
    data = {"format": "planezip-ratios", "version": RATIOS_VERSION, **asdict(ratios)}
    text = json.dumps(data, separators=(",", ":"))
    Path(path).write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def load_ratios(path: Path | str) -> Ratios:
    """Read a ratios file.

    Raises
    ------
    RatiosError
        If it cannot be read or is not valid.
    """
    try:
        data = json.loads(gzip.decompress(Path(path).read_bytes()))
        if not isinstance(data, dict) or data.pop("format", None) != "planezip-ratios":
            raise RatiosError("not a PlaneZip ratios file")
        if data.pop("version", None) != RATIOS_VERSION:
            raise RatiosError(f"its version is not {RATIOS_VERSION}")
        data["tensors"] = tuple(TensorSizes(**row) for row in data["tensors"])
        ratios = Ratios(**data)
        _check(ratios)
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ) as error:
        raise RatiosError(
            f"{path}: cannot be read as ratios ({error}); write them with `planezip capture`"
        ) from error
    return ratios


def _check(ratios: Ratios) -> None:
    """RatiosError unless all sizes are positive integers, one for every iteration."""
    _check_types(ratios)
    for k, t in enumerate(ratios.tensors):
        _check_types(t)
        sizes = [size for column in t.wire_bytes.values() for size in column]
        lengths = {len(column) for column in t.wire_bytes.values()}
        if lengths - {ratios.iterations} or t.raw_bytes < 1:
            raise RatiosError(f"tensors[{k}] has not one size for every iteration")
        if not all(type(size) is int and size > 0 for size in sizes):
            raise RatiosError(f"tensors[{k}] has a size that is not a positive integer")


def _check_types(record: Ratios | TensorSizes) -> None:
    for f in fields(record):
        value = getattr(record, f.name)
        if (f.type == "int" and type(value) is not int) or (
            f.type == "str" and type(value) is not str
        ):
            raise RatiosError(f"{f.name} must be {f.type}, not {value!r:.40}")
