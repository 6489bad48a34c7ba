"""Tensors of .npy, .npz, .safetensors and .pz files, piece by piece."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np

from planezip.cli.errors import CliError
from planezip.cli.npy import npy_source, npz_source
from planezip.cli.source import PIECE_BYTES, Piece, Source, damaged, map_pieces, regroup
from planezip.model import container, decode_bytes, dtypes
from planezip.model.directory import MAGIC
from planezip.model.format import CHUNK_BYTES

__all__ = ["SAFETENSORS", "in_bfloat16", "is_pz", "open_sources"]

FORMATS = ".npy, .npz, .safetensors or .pz"
SAFETENSORS = {
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}
"""Element types by the names of the safetensors format."""


def is_pz(path: str) -> bool:
    """Whether a file is of our own format."""
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


@contextmanager
def open_sources(path: str, bits_as: str | None = None, threads: int = 1) -> Iterator[list[Source]]:
    """The tensors of a file, which stays open meanwhile.

    Parameters
    ----------
    path : str
    bits_as : str, optional
        ``bfloat16`` or ``float16``: what uint16 and V2 elements are.
    threads : int
        Threads that decode a .pz file.

    Raises
    ------
    CliError
        For a file that is none of ours, is damaged, or holds what cannot be compressed.
    OSError
    """
    with Path(path).open("rb") as file:
        head = file.read(8)
    with ExitStack() as stack:
        if head.startswith(b"\x93NUMPY"):
            yield [npy_source(path, bits_as)]
        elif head.startswith(b"PK"):
            with damaged(path):
                archive = stack.enter_context(zipfile.ZipFile(path))
            yield [npz_source(path, archive, info, bits_as) for info in archive.infolist()]
        elif head == MAGIC:
            yield _pz(path, stack.enter_context(container.File(path)), threads)
        elif path.endswith(".safetensors"):
            yield _safetensors(path)
        else:
            raise CliError(f"{path}: not a {FORMATS} file: convert it to one of these")


def in_bfloat16(source: Source) -> Source:
    """A float32 tensor rounded to bfloat16, to nearest, ties to even; others unchanged."""
    if source.dtype != "float32":
        return source

    def pieces() -> Iterator[Piece]:
        return regroup(_rounded(piece) for piece in source.pieces())

    return replace(source, dtype="bfloat16", pieces=pieces)


def _rounded(piece: Piece) -> Piece:
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return piece.view("<f4").astype(ml_dtypes.bfloat16).view(np.uint8)


def _safetensors(path: str) -> list[Source]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np"):  # checks names, sizes and offsets
            pass
    except SafetensorError as error:
        raise CliError(f"{path}: damaged or not a safetensors file: {error}") from None
    with Path(path).open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    sources = []
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        if entry["dtype"] not in SAFETENSORS:
            raise CliError(f"{path}: {name}: element type {entry['dtype']} is not supported")
        dtype = SAFETENSORS[entry["dtype"]]
        start, end = (8 + size + at for at in entry["data_offsets"])
        pieces = map_pieces(path, start, end)
        sources.append(Source(path, name, dtype, tuple(entry["shape"]), pieces))
    return sources


def _pz(path: str, file: container.File, threads: int) -> list[Source]:
    def pieces_of(name: str) -> Callable[[], Iterator[Piece]]:
        return lambda: (np.frombuffer(raw, np.uint8) for raw in _decoded(file, name, threads))

    return [
        Source(path, name, entry.dtype, entry.shape, pieces_of(name))
        for name, entry in file.entries.items()
    ]


def _decoded(file: container.File, name: str, threads: int) -> Iterator[bytes]:
    """Raw bytes of a tensor of a .pz file, ``PIECE_BYTES`` at a time."""
    entry = file.entries[name]
    w = dtypes.symbol_bits(entry.dtype)
    at = 0
    for wire in file.pieces(name, PIECE_BYTES // CHUNK_BYTES):
        count = min(PIECE_BYTES, entry.raw_bytes - at)
        with container.chunk_numbers_from(at // CHUNK_BYTES):
            yield decode_bytes(wire, count, w, threads)
        at += count
