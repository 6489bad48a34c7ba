"""Arrays of every kind as flat bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planezip.model import dtypes
from planezip.model.format import BLOCK_BYTES, CHUNK_BYTES, DEFAULT

__all__ = ["PIECE_BYTES", "check_width", "flat_bytes", "pieces"]

PIECE_BYTES = 256 * CHUNK_BYTES


def flat_bytes(array: Any) -> tuple[NDArray[np.uint8], str, tuple[int, ...]]:
    """Bytes of an array in C order, its dtype's name, and its shape.

    Takes NumPy arrays and scalars, torch tensors on any device (torch itself is never
    imported), and whatever has ``__array__`` or ``__dlpack__``. The bytes are a view
    where the array is contiguous and little-endian, else a copy; big-endian arrays
    become little-endian.

    Raises
    ------
    TypeError
        For other objects and for dtypes without fixed-size numbers in them.
    """
    if _is_torch(array):
        return _flat_torch(array)
    if not isinstance(array, np.ndarray):
        if hasattr(array, "__array__"):
            array = np.asarray(array)
        elif hasattr(array, "__dlpack__"):
            array = np.from_dlpack(array)
        else:
            raise TypeError(f"array must be a NumPy array or a tensor, not {type(array).__name__}")
    name = dtypes.name_of(array.dtype)
    shape = array.shape
    flat = np.ascontiguousarray(array, dtypes.dtype_of(name)).reshape(-1)
    return flat.view(np.uint8), name, shape


def _is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _flat_torch(tensor: Any) -> tuple[NDArray[np.uint8], str, tuple[int, ...]]:
    torch = sys.modules["torch"]
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in dtypes.DTYPES or tensor.layout != torch.strided:
        raise TypeError(f"tensor must be dense with a plain dtype, not {tensor.dtype}")
    dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    flat = dense.reshape(-1).view(torch.uint8).numpy()
    return flat, name, tuple(tensor.shape)


def check_width(w: int) -> None:
    """ValueError unless ``w`` is a symbol width of the format."""
    if w not in DEFAULT.symbol_bits:
        raise ValueError(f"w must be one of {DEFAULT.symbol_bits}, not {w!r}")


def pieces(data: NDArray[np.uint8], word: str) -> Iterator[NDArray[Any]]:
    """Blocks of ``data``, 256 chunks at a time, the last block padded with zeros.

    Yields
    ------
    read-only ``word`` [blocks, words of a block]
        A view, or a copy where the data are not aligned or padding is needed. Always
        read-only, so that the kernels are compiled for one type.
    """
    for at in range(0, data.size, PIECE_BYTES):
        piece = data[at : at + PIECE_BYTES]
        if piece.size % BLOCK_BYTES:
            piece = np.concatenate([piece, np.zeros(-piece.size % BLOCK_BYTES, np.uint8)])
        words = np.require(piece.view(word), requirements=["A"])
        words = words.reshape(-1, BLOCK_BYTES // words.itemsize)
        words.flags.writeable = False
        yield words
