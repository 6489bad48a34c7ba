"""Choose the shipped sample of real activations: ``python -m tb.data.choose``.

Reads ``../shared/activations`` (or ``$PLANEZIP_SHARED/activations``) and writes
``activations.npz`` beside this file. The rule is in README.md; same input, same bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tb.shared import shared

HERE = Path(__file__).resolve().parent
SOURCE = shared("activations")
PIECE_BYTES = 8192  # the unit in which the capture sampled large tensors
CHUNK_BYTES = 4096
CHUNKS = {"bfloat16": 744, "other": 692}  # 4 KB chunks of each symbol width

Pieces = dict[str, list[npt.NDArray[np.generic]]]


def pieces() -> tuple[Pieces, Pieces]:
    """8 KB pieces of every group ``model/producer``: those for bfloat16 and the others.

    The pieces of a group are numbered in file order; of floating-point groups the even
    ones are for bfloat16 and the odd ones stay float32, so that no value appears twice.
    """
    half: Pieces = {}
    full: Pieces = {}
    for entry in json.loads((SOURCE / "index.json").read_text()):
        data = np.load(SOURCE / entry["file"], allow_pickle=False).reshape(-1)
        step = PIECE_BYTES // data.itemsize
        name = entry["file"].split("/")[0] + "/" + slug(entry["producer"])
        for start in range(0, data.size - step + 1, step):
            piece = data[start : start + step]
            if data.dtype != np.float32:
                full.setdefault(f"{name}/{data.dtype}", []).append(piece)
                continue
            evens, odds = half.setdefault(name, []), full.setdefault(f"{name}/float32", [])
            (evens if len(evens) <= len(odds) else odds).append(piece)
    converted: Pieces = {
        f"{name}/bfloat16": [p.astype(ml_dtypes.bfloat16).view(np.uint16) for p in group]
        for name, group in half.items()
    }
    return converted, full


def slug(producer: str) -> str:
    """``Norm in/out`` -> ``norm-in-out``."""
    return producer.lower().replace(" ", "-").replace("/", "-")


def shares(available: dict[str, int], total: int) -> dict[str, int]:
    """Equal shares of ``total``; what a small group leaves goes to the larger ones."""
    out: dict[str, int] = {}
    for left, name in zip(
        range(len(available), 0, -1), sorted(available, key=lambda n: available[n]), strict=True
    ):
        out[name] = min(available[name], (total - sum(out.values())) // left)
    return out


def spread(group: list[npt.NDArray[np.generic]], count: int) -> Iterator[npt.NDArray[np.generic]]:
    """``count`` pieces at equal distances."""
    for k in range(count):
        yield group[k * len(group) // count]


def choose() -> dict[str, npt.NDArray[np.generic]]:
    """The arrays of the sample by name ``model/producer/dtype``."""
    out = {}
    for pool, chunks in zip(pieces(), CHUNKS.values(), strict=True):
        size = next(iter(pool.values()))[0].nbytes
        count = shares(
            {name: len(group) for name, group in pool.items()}, chunks * CHUNK_BYTES // size
        )
        for name, group in pool.items():
            if count[name]:
                out[name] = np.concatenate(list(spread(group, count[name])))
    return dict(sorted(out.items()))


def main() -> None:
    """Write the sample; a fixed time stamp in the archive keeps it reproducible."""
    with zipfile.ZipFile(HERE / "activations.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, array in choose().items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            z.writestr(zipfile.ZipInfo(name + ".npy"), buffer.getvalue(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
