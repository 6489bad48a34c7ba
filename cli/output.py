"""Writing of .npy, .npz and .safetensors files, piece by piece."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from planezip.cli.errors import CliError
from planezip.cli.files import SAFETENSORS
from planezip.cli.source import Source
from planezip.model import dtypes

__all__ = ["WRITERS", "check_free"]


def check_free(path: str, force: bool) -> None:
    """CliError for a file that is there already, unless ``force``."""
    if Path(path).exists() and not (force and Path(path).is_file()):
        raise CliError(f"{path} is there already: name another with -o, or say --force")


def _write_array(file: IO[bytes], source: Source) -> None:
    """One array in the .npy format."""
    descr = np.lib.format.dtype_to_descr(dtypes.dtype_of(source.dtype))
    header: dict[str, Any] = {"descr": descr, "fortran_order": False, "shape": source.shape}
    np.lib.format.write_array_header_1_0(file, header)
    for piece in source.pieces():
        file.write(piece.data)


def _npy(file: IO[bytes], sources: Sequence[Source]) -> None:
    if len(sources) != 1:
        raise CliError(f"a .npy file holds one tensor, not {len(sources)}: say -o NAME.npz")
    _write_array(file, sources[0])


def _npz(file: IO[bytes], sources: Sequence[Source]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for source in sources:
            info = zipfile.ZipInfo(source.name + ".npy")
            with archive.open(info, "w", force_zip64=True) as member:
                _write_array(member, source)


def _safetensors(file: IO[bytes], sources: Sequence[Source]) -> None:
    names = {ours: theirs for theirs, ours in SAFETENSORS.items()}
    header = {}
    at = 0
    for source in sources:
        if source.dtype not in names or source.name == "__metadata__":
            raise CliError(
                f"{source.name}: safetensors has no {source.dtype} or not this name: "
                "say -o NAME.npz"
            )
        span = [at, at + source.raw_bytes]
        header[source.name] = {
            "dtype": names[source.dtype],
            "shape": list(source.shape),
            "data_offsets": span,
        }
        at = span[1]
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for source in sources:
        for piece in source.pieces():
            file.write(piece.data)


WRITERS = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors}
"""Writers by the suffix of the file's name."""
