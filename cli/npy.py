"""Tensors of .npy and .npz files."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from planezip.cli.errors import CliError
from planezip.cli.source import PIECE_BYTES, Piece, Source, damaged, map_pieces, regroup
from planezip.model import dtypes

__all__ = ["npy_source", "npz_source"]


def npy_source(path: str, bits_as: str | None) -> Source:
    """The array of a .npy file."""
    with Path(path).open("rb") as file:
        shape, fortran, dtype = _npy_header(file, path)
        start = file.tell()
        rest = os.fstat(file.fileno()).st_size - start
    dtype = _plain(dtype, bits_as, path)
    _check_length(path, shape, dtype, rest)

    def in_order() -> Iterator[Piece]:
        order: Any = "F" if fortran else "C"
        return _array_pieces(np.memmap(path, dtype, "r", start, shape, order))

    plain = not rest or (dtype.byteorder != ">" and not (fortran and len(shape) > 1))
    pieces = map_pieces(path, start, start + rest) if plain else in_order
    return Source(path, Path(path).name.removesuffix(".npy"), dtypes.name_of(dtype), shape, pieces)


def npz_source(
    path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, bits_as: str | None
) -> Source:
    """One array of a .npz file that is open."""
    what = f"{path}: {info.filename}"
    if not info.filename.endswith(".npy"):
        raise CliError(f"{what} is not an array: is this an archive of numpy.savez?")
    with damaged(what), archive.open(info) as file:
        shape, fortran, dtype = _npy_header(file, what)
        start = file.tell()
    dtype = _plain(dtype, bits_as, what)
    _check_length(what, shape, dtype, info.file_size - start)

    def read() -> Iterator[Piece]:
        with damaged(what), archive.open(info) as file:
            file.read(start)
            while data := file.read(PIECE_BYTES):
                yield np.frombuffer(data, np.uint8)

    def pieces() -> Iterator[Piece]:
        if not fortran and dtype.byteorder != ">":
            return regroup(read())
        flat = np.concatenate([*read()]) if info.file_size > start else np.empty(0, np.uint8)
        return _array_pieces(flat.view(dtype).reshape(shape, order="F" if fortran else "C"))

    return Source(path, info.filename.removesuffix(".npy"), dtypes.name_of(dtype), shape, pieces)


def _npy_header(file: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    with damaged(what):
        version = np.lib.format.read_magic(file)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"version {version} of the .npy format")
        shape, fortran, dtype = readers[version](file)
        if any(n < 0 for n in shape):
            raise ValueError(f"the shape is {shape}")
    return shape, fortran, dtype


def _plain(dtype: np.dtype[Any], bits_as: str | None, what: str) -> np.dtype[Any]:
    """A dtype with a name of ours, or CliError."""
    if dtype.hasobject:
        raise CliError(
            f"{what}: holds pickled Python objects, which are never loaded: save numbers"
        )
    if bits_as and dtype in (np.dtype("V2"), np.dtype("<u2")):
        return dtypes.dtype_of(bits_as)
    if dtype == np.dtype("V2"):
        raise CliError(
            f"{what}: 2-byte elements without a type: say --bits-as bfloat16 if they are"
        )
    try:
        dtypes.name_of(dtype)
    except TypeError as error:
        raise CliError(f"{what}: {error}") from None
    return dtype


def _check_length(what: str, shape: tuple[int, ...], dtype: np.dtype[Any], rest: int) -> None:
    need = math.prod(shape) * dtype.itemsize
    if need != rest:
        raise CliError(f"{what}: damaged: {need} bytes announced, {rest} there")


def _array_pieces(array: NDArray[Any]) -> Iterator[Piece]:
    """Little-endian bytes in C order; only an array in another order is copied whole."""
    flat = array.reshape(-1)
    step = PIECE_BYTES // array.itemsize
    little = array.dtype.newbyteorder("<")
    for k in range(0, flat.size, step):
        part = np.ascontiguousarray(flat[k : k + step], little)
        yield part.view(np.uint8)
