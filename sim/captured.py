"""The folder that ``planezip capture`` writes: tensors, trace and an index.

``index.json`` (``schemas/capture.json``) has a row for every saved activation and the
names of the .safetensors files, one per iteration and type; in each file the tensor
has the row's name. ``trace.json.gz`` is the trace of the captured step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planezip.sim.samples import SAMPLE_ABOVE_BYTES
from planezip.sim.trace import Trace
from planezip.sim.trace_file import save_trace

if TYPE_CHECKING:
    from planezip.sim.capture import SavedTensor

__all__ = ["CaptureWriter", "make_folder"]

CAPTURE_VERSION = 1


def make_folder(folder: Path) -> None:
    """Make ``folder``; ValueError if it holds a capture."""
    if (folder / "index.json").exists():
        raise ValueError(f"{folder} holds a capture already: name another folder")
    folder.mkdir(parents=True, exist_ok=True)


class CaptureWriter:
    """Writes a capture; :meth:`visit` is a visitor of :func:`planezip.sim.capture.capture`.

    Parameters
    ----------
    folder : Path
        Made if missing; must not hold a capture.
    trace : Trace
        Of the captured iterations.
    add : function of a number of bytes
        Hears of the progress.
    """

    def __init__(self, folder: Path, trace: Trace, add: Callable[[int], None]) -> None:
        make_folder(folder)
        self.folder = folder
        self.trace = trace
        self.add = add
        self._files: list[dict[str, Any]] = []
        self._rows: dict[str, dict[str, Any]] = {}

    def visit(self, iteration: int, dtype: str, tensors: Iterator[SavedTensor]) -> None:
        """Write the saved tensors of one iteration in one type."""
        from safetensors.numpy import save_file

        arrays = {}
        for tensor in tensors:
            row = self._row(tensor)
            arrays[row["name"]] = tensor.data
            self.add(tensor.data.nbytes)
        file = f"iteration-{iteration}.{dtype}.safetensors"
        save_file(arrays, self.folder / file)
        self._files.append({"file": file, "iteration": iteration, "dtype": dtype})

    def _row(self, tensor: SavedTensor) -> dict[str, Any]:
        storage = self.trace.storages[tensor.storage]
        made = storage.producer >= 0
        op = self.trace.ops[storage.producer] if made else None
        name = f"{storage.producer if made else 'input'}.{storage.slot}"
        row = self._rows.setdefault(
            name,
            {
                "name": name,
                "storage": tensor.storage,
                "position": storage.producer,
                "slot": storage.slot,
                "operator": op.name if op else "input",
                "scope": op.scope if op else "",
                "category": storage.category,
                "types": {},
            },
        )
        row["types"][tensor.dtype] = {
            "raw_bytes": tensor.raw_bytes,
            "sampled_every": tensor.sampled_every,
        }
        return row

    def finish(
        self, matched: Mapping[int, int], unmatched_bytes: int, notes: Mapping[str, Any]
    ) -> None:
        """Write index and trace.

        Parameters
        ----------
        matched : mapping
            Storage here to its counterpart in the trace at the training batch size.
        unmatched_bytes : int
            Saved bytes of that trace without a counterpart.
        notes : mapping
            JSON values: where model, weights and data are from.
        """
        index = {
            "format": "planezip-capture",
            "version": CAPTURE_VERSION,
            "model": self.trace.model,
            "batch": self.trace.batch,
            "notes": dict(notes),
            "sampling": {"above_bytes": SAMPLE_ABOVE_BYTES, "chunk_bytes": 4096},
            "trace": "trace.json.gz",
            "unmatched_bytes": unmatched_bytes,
            "files": self._files,
            "tensors": [
                {**row, "trace_storage": matched.get(row["storage"], -1)}
                for row in self._rows.values()
            ],
        }
        save_trace(self.trace, self.folder / "trace.json.gz")
        (self.folder / "index.json").write_text(json.dumps(index, indent=1) + "\n")
