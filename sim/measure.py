"""Measure captured activations: sizes in every encoding, per tensor and iteration.

This module imports torch; others import it in functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from planezip.model.dtypes import symbol_bits
from planezip.model.format import Tag
from planezip.model.registry import Encoding, tag_counts, to_blocks
from planezip.model.registry import wire_bytes as encoded_bytes
from planezip.sim.align import match_storages
from planezip.sim.capture import SavedTensor
from planezip.sim.ratios import Ratios, TensorSizes
from planezip.sim.samples import scale_bytes
from planezip.sim.trace import Trace

__all__ = ["Measurement"]

_PIECE_BLOCKS = 32_768  # whole chunks; bounds the memory that the encodings use


class Measurement:
    """Collects sizes; :meth:`visit` is a visitor of :func:`planezip.sim.capture.capture`.

    Parameters
    ----------
    trace : Trace
        Of the captured iterations.
    encodings : sequence of Encoding
    add : function of a number of bytes
        Hears of the progress.
    """

    def __init__(
        self, trace: Trace, encodings: Sequence[Encoding], add: Callable[[int], None]
    ) -> None:
        self.trace = trace
        self.encodings = encodings
        self.add = add
        self._rows: dict[str, dict[int, dict[str, Any]]] = {}

    def visit(self, iteration: int, dtype: str, tensors: Iterator[SavedTensor]) -> None:
        """Sizes of the saved tensors of one iteration."""
        rows = self._rows.setdefault(dtype, {})
        for tensor in tensors:
            row = rows.setdefault(
                tensor.storage,
                {"dtype": tensor.dtype, "raw_bytes": tensor.raw_bytes, "wire": {}, "tags": []},
            )
            sizes, tags = self._sizes(tensor)
            for name, size in sizes.items():
                row["wire"].setdefault(name, []).append(size)
            row["tags"] = row["tags"] or tags
            self.add(tensor.data.nbytes)

    def _sizes(self, tensor: SavedTensor) -> tuple[dict[str, int], list[int]]:
        blocks = to_blocks(tensor.data.view("uint8"))
        w = symbol_bits(tensor.dtype)
        pieces = [blocks[k : k + _PIECE_BLOCKS] for k in range(0, len(blocks), _PIECE_BLOCKS)]
        sizes = {}
        for encoding in self.encodings:
            wire = sum(encoded_bytes(encoding, piece, w) for piece in pieces)
            sizes[encoding.name] = scale_bytes(wire, tensor.data.nbytes, tensor.raw_bytes)
        tags = [0] * len(Tag)
        for piece in pieces:
            tags = [a + int(b) for a, b in zip(tags, tag_counts(piece, w), strict=True)]
        return sizes, tags

    def ratios(
        self, dtype: str, iterations: int, weights: str, full: Trace | None, notes: Any
    ) -> Ratios:
        """What was measured in ``dtype``, mapped to the trace ``full`` of another batch size."""
        matched = {} if full is None else match_storages(self.trace, full)
        tensors = []
        for number, row in self._rows[dtype].items():
            storage = self.trace.storages[number]
            operator = self.trace.ops[storage.producer].name if storage.producer >= 0 else "input"
            tensors.append(
                TensorSizes(
                    position=storage.producer,
                    slot=storage.slot,
                    operator=operator,
                    category=storage.category,
                    dtype=row["dtype"],
                    raw_bytes=row["raw_bytes"],
                    wire_bytes=row["wire"],
                    tags=row["tags"],
                    storage=matched.get(number, -1),
                )
            )
        saved = {} if full is None else {n: full.storages[n].bytes for n in full.saved}
        unmatched = sum(saved.values()) - sum(saved[n] for n in matched.values())
        return Ratios(
            model=self.trace.model,
            weights=weights,
            dtype=dtype,
            batch=self.trace.batch,
            iterations=iterations,
            tensors=tuple(tensors),
            unmatched_bytes=unmatched,
            trace_bytes=sum(saved.values()),
            notes=notes,
        )
