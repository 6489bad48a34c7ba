"""Importer for operator logs recorded by DTR's PyTorch prototype (Kirisame et al., ICLR 2021).

A log is one JSON object a line, numbers as strings, times in ns, sizes in bytes:
``CONSTANT`` (pinned), ``CALL`` with one ``MEMORY`` and ``ALIAS`` per result, ``MUTATE``
(in place), ``COPY``/``COPY_FROM``/``RELEASE`` (references) and ``ANNOTATE`` (``START``,
``BACKWARD``). A storage dies when its last reference is dropped; what still has one at
the end outlives the iteration.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from planezip.sim.trace import Kind, Op, Phase, Storage, Trace, TraceError

__all__ = ["import_dtr_log"]

_CATEGORY = {
    "cudnn_convolution": "Conv output",
    "relu": "ReLU output",
    "_cat": "Copy/concat",
    "clone": "Copy/concat",
    "_softmax": "Softmax",
    "mm": "Linear output",
    "addmm": "Linear output",
    "_log_softmax": "Log-softmax",
    "cudnn_batch_norm": "Norm in/out",
    "native_layer_norm": "Norm in/out",
}
_RANDOM = frozenset(("_fused_droupout_", "bernoulli_"))  # spelled as in the logs


def import_dtr_log(path: Path | str, *, batch: int = 1) -> Trace:
    """Trace of a recorded log, each operator with its recorded time.

    Constants are parameters (outside the budget, never evicted). Sizes are as recorded.

    Parameters
    ----------
    path : path
        Log, plain or compressed with gzip.
    batch : int
        Samples per iteration; the log does not say.

    Raises
    ------
    TraceError
        If the file cannot be read or a line makes no sense; the text has its number.
    """
    path = Path(path)
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as stream:
            return _Importer(path.name.split(".")[0], batch).run(stream)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise TraceError(f"{path}: cannot be read as a DTR log ({error})") from error
    except TraceError as error:
        raise TraceError(f"{path}: {error}; is it a log of DTR's prototype?") from error


class _Importer:
    def __init__(self, model: str, batch: int) -> None:
        self.model = model
        self.batch = batch
        self.ops: list[Op] = []
        self.storages: list[Storage] = []
        self.references: list[int] = []  # per storage
        self.names: dict[str, int] = {}  # to storage
        self.phase = Phase.FORWARD

    def run(self, lines: Iterable[str]) -> Trace:
        rows = enumerate(lines, start=1)
        for _, line in rows:
            if '"START"' in line:
                break
        else:
            raise TraceError("there is no ANNOTATE START")
        for number, line in rows:
            try:
                self._line(json.loads(line), rows)
            except (
                KeyError,
                ValueError,
                IndexError,
                TypeError,
                StopIteration,
            ) as error:
                raise TraceError(
                    f"line {number}: {type(error).__name__} {error} in {line.strip()!r:.80}"
                ) from error
        end = len(self.ops)
        alive = [s for s, count in enumerate(self.references) if count > 0]
        for s in alive:
            self.storages[s] = replace(self.storages[s], death=end)
        return Trace(
            self.model,
            self.batch,
            tuple(self.ops),
            tuple(self.storages),
            parameter_bytes=sum(s.bytes for s in self.storages if s.kind is Kind.PARAMETER),
            notes={"source": "DTR operator log, recorded times"},
        )

    def _line(self, row: dict[str, Any], rows: Iterator[tuple[int, str]]) -> None:
        match row["INSTRUCTION"]:
            case "ANNOTATE":
                if row["ANNOTATION"] == "BACKWARD":
                    self.phase = Phase.BACKWARD
            case "CONSTANT":
                _, line = next(rows)
                self._constant(row["NAME"], _size(json.loads(line)))
            case "CALL":
                self._call(row, rows)
            case "MUTATE":
                reads = self._storages(row["ARGS"])
                written = self._storages([row["ARGS"][i] for i in row["MUTATE"]])
                self._op(row, reads, written)
                if category := _CATEGORY.get(row["NAME"].rstrip("_"), ""):
                    for s in written:
                        self.storages[s] = replace(self.storages[s], category=category)
            case "COPY":
                self._name(row["DST"], self.names[row["SRC"]])
            case "COPY_FROM":
                source = self.names[row["SRC"]]
                self._release(row["DST"])
                self._name(row["DST"], source)
            case "RELEASE":
                self._release(row["NAME"])
            case other:
                raise ValueError(f"unknown instruction {other!r:.40}")

    def _constant(self, name: str, size: int) -> None:
        """A constant between two operators exists from the earlier one on."""
        producer = len(self.ops) - 1
        slot = len(self.ops[-1].writes) if self.ops else 0
        s = self._create(size, producer, slot, "")
        self.storages[s] = replace(self.storages[s], kind=Kind.PARAMETER)
        if self.ops:
            self.ops[-1] = replace(self.ops[-1], writes=(*self.ops[-1].writes, s))
        self._name(name, s)

    def _call(self, row: dict[str, Any], rows: Iterator[tuple[int, str]]) -> None:
        reads = self._storages(row["ARGS"])
        created = []
        for slot, name in enumerate(row["RESULT"]):
            size = _size(json.loads(next(rows)[1]))
            alias = int(json.loads(next(rows)[1])["ALIAS"])
            if alias >= 0:
                self._name(name, self.names[row["ARGS"][alias]])
            else:
                category = _CATEGORY.get(row["NAME"], "Elementwise")
                if row["NAME"] in _RANDOM:
                    category = "Dropout mask" if slot else "Dropout output"
                s = self._create(size, len(self.ops), slot, category)
                self._name(name, s)
                created.append(s)
        self._op(row, reads, tuple(created), view=not created)

    def _op(
        self,
        row: dict[str, Any],
        reads: tuple[int, ...],
        writes: tuple[int, ...],
        view: bool = False,
    ) -> None:
        name = row["NAME"]
        self.ops.append(
            Op(
                name,
                self.phase,
                reads=reads,
                writes=writes,
                view=view,
                random=name in _RANDOM,
                time_ns=int(row["TIME"]),
            )
        )
        if not view:
            for s in reads + writes:
                self.storages[s] = replace(self.storages[s], death=len(self.ops) - 1)

    def _create(self, size: int, producer: int, slot: int, category: str) -> int:
        kind = Kind.ACTIVATION if self.phase is Phase.FORWARD else Kind.GRADIENT
        self.storages.append(Storage(size, "uint8", kind, producer, slot, 0, category))
        self.references.append(0)
        return len(self.storages) - 1

    def _storages(self, names: list[str]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.names[name] for name in names))

    def _name(self, name: str, storage: int) -> None:
        self.names[name] = storage
        self.references[storage] += 1

    def _release(self, name: str) -> None:
        s = self.names.pop(name)
        self.references[s] -= 1
        if self.references[s] == 0:
            death = max(len(self.ops) - 1, 0)
            self.storages[s] = replace(self.storages[s], death=death)


def _size(row: dict[str, Any]) -> int:
    if row["INSTRUCTION"] != "MEMORY":
        raise ValueError(f"MEMORY must follow, not {row['INSTRUCTION']!r:.40}")
    size = int(row["MEMORY"])
    if size < 0:
        raise ValueError(f"a size must not be negative, not {size!r}")
    return size
