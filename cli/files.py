"""Tensors of .npy, .npz, .safetensors and .pz files, piece by piece."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from planezip.cli.errors import CliError
from planezip.model import container, decode_bytes, dtypes
from planezip.model.directory import MAGIC
from planezip.model.format import CHUNK_BYTES

__all__ = ["PIECE_BYTES", "SAFETENSORS", "Piece", "Source", "in_bfloat16", "is_pz", "open_sources"]

PIECE_BYTES = 4096 * CHUNK_BYTES
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

Piece = NDArray[np.uint8]


def is_pz(path: str) -> bool:
    """Whether a file is of our own format."""
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


@dataclass(frozen=True)
class Source:
    """A tensor in a file.

    Attributes
    ----------
    file, name : str
        Path of the file, and the tensor's name in it.
    dtype : str
    shape : tuple of int
    pieces : callable
        Yields the little-endian bytes in C order, uint8 [PIECE_BYTES], the last piece
        shorter.
    """

    file: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[Piece]]

    @property
    def raw_bytes(self) -> int:
        """Bytes of the tensor."""
        return math.prod(self.shape) * dtypes.dtype_of(self.dtype).itemsize


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
            yield [_npy(path, bits_as)]
        elif head.startswith(b"PK"):
            with _damaged(path):
                archive = stack.enter_context(zipfile.ZipFile(path))
            yield [_npz(path, archive, info, bits_as) for info in archive.infolist()]
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
        return _regroup(_rounded(piece) for piece in source.pieces())

    return replace(source, dtype="bfloat16", pieces=pieces)


def _rounded(piece: Piece) -> Piece:
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return piece.view("<f4").astype(ml_dtypes.bfloat16).view(np.uint8)


def _regroup(parts: Iterator[Piece]) -> Iterator[Piece]:
    """Pieces of any length as pieces of ``PIECE_BYTES``."""
    held: list[Piece] = []
    size = 0
    for part in parts:
        while size + part.size >= PIECE_BYTES:
            cut = PIECE_BYTES - size
            yield np.concatenate([*held, part[:cut]]) if held else part[:cut]
            held, size, part = [], 0, part[cut:]
        if part.size:
            held.append(part)
            size += part.size
    if held:
        yield np.concatenate(held)


@contextmanager
def _damaged(what: str) -> Iterator[None]:
    """Whatever NumPy and zipfile raise for damaged input, as one CliError."""
    try:
        yield
    except CliError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CliError(f"{what}: damaged or not supported: {error}") from None


# --- .npy and .npz --------------------------------------------------------------------


def _npy(path: str, bits_as: str | None) -> Source:
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
    pieces = _map_pieces(path, start, start + rest) if plain else in_order
    return Source(path, Path(path).name.removesuffix(".npy"), dtypes.name_of(dtype), shape, pieces)


def _npz(path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, bits_as: str | None) -> Source:
    what = f"{path}: {info.filename}"
    if not info.filename.endswith(".npy"):
        raise CliError(f"{what} is not an array: is this an archive of numpy.savez?")
    with _damaged(what), archive.open(info) as file:
        shape, fortran, dtype = _npy_header(file, what)
        start = file.tell()
    dtype = _plain(dtype, bits_as, what)
    _check_length(what, shape, dtype, info.file_size - start)

    def read() -> Iterator[Piece]:
        with _damaged(what), archive.open(info) as file:
            file.read(start)
            while data := file.read(PIECE_BYTES):
                yield np.frombuffer(data, np.uint8)

    def pieces() -> Iterator[Piece]:
        if not fortran and dtype.byteorder != ">":
            return _regroup(read())
        flat = np.concatenate([*read()]) if info.file_size > start else np.empty(0, np.uint8)
        return _array_pieces(flat.view(dtype).reshape(shape, order="F" if fortran else "C"))

    return Source(path, info.filename.removesuffix(".npy"), dtypes.name_of(dtype), shape, pieces)


def _npy_header(file: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    with _damaged(what):
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


# --- .safetensors and .pz -------------------------------------------------------------


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
        pieces = _map_pieces(path, start, end)
        sources.append(Source(path, name, dtype, tuple(entry["shape"]), pieces))
    return sources


def _map_pieces(path: str, start: int, end: int) -> Callable[[], Iterator[Piece]]:
    """Bytes ``start`` to ``end`` of a file, mapped piece by piece."""

    def pieces() -> Iterator[Piece]:
        for at in range(start, end, PIECE_BYTES):
            yield np.memmap(path, np.uint8, "r", at, (min(PIECE_BYTES, end - at),))

    return pieces


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
