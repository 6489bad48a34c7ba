"""Encodings that take part in every comparison (paper Fig. 3), and how to add one.

An encoding is an object with a ``name``, ``tag_bits`` and ``bits(blocks, w)``;
``register`` it, and :func:`compare`, ``planezip ratio`` and the figures have it
(docs/codec.md has an example).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from planezip.model import baselines, dtypes
from planezip.model.arrays import flat_bytes
from planezip.model.format import BLOCK_BYTES, BLOCKS_PER_CHUNK, HEADER_BYTES, TAG_BITS, Tag
from planezip.model.measure import Sizes, measure

__all__ = [
    "BlockCodec",
    "Encoding",
    "Size",
    "check",
    "compare",
    "encodings",
    "register",
    "scope",
    "tag_counts",
    "to_blocks",
    "wire_bytes",
]

Blocks = NDArray[np.uint8]
Bits = NDArray[np.int64]
PIECE_BLOCKS = 32768  # 4 MB at a time, so that memory does not grow with the array


@runtime_checkable
class Encoding(Protocol):
    """Size of blocks in one encoding.

    Attributes
    ----------
    name : str
        Column of a table.
    tag_bits : int
        Bits in front of every block, raw ones too, that say how it is coded. The single
        encodings of the paper's Fig. 3 have 0: raw where smaller, at no charge.
    """

    @property
    def name(self) -> str: ...

    @property
    def tag_bits(self) -> int: ...

    def bits(self, blocks: Blocks, w: int) -> Bits:
        """Bits of each block without the tag; at 1024 and more the block counts as raw.

        Parameters
        ----------
        blocks : uint8 [n, 128]
        w : int
            Symbol width of the tensor, 16 or 32 bits; an encoding may ignore it.

        Returns
        -------
        int64 [n]
        """
        ...


@runtime_checkable
class BlockCodec(Encoding, Protocol):
    """An encoding that can also encode and decode one block; :func:`check` tests it."""

    def encode(self, block: bytes, w: int) -> Sequence[int]:
        """Bits of a block of 128 bytes, each 0 or 1, without the tag."""
        ...

    def decode(self, bits: Sequence[int], w: int) -> bytes:
        """The block that ``bits`` holds."""
        ...


@dataclass(frozen=True)
class Size:
    """Size of a tensor in an encoding, in bytes."""

    raw_bytes: int
    wire_bytes: int

    @property
    def ratio(self) -> float:
        """Raw over wire bytes; 1.0 for an empty tensor."""
        return self.raw_bytes / self.wire_bytes if self.wire_bytes else 1.0

    def __add__(self, other: Size) -> Size:
        return Size(self.raw_bytes + other.raw_bytes, self.wire_bytes + other.wire_bytes)


# --- registry -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Builtin:
    name: str
    tag_bits: int
    function: Callable[[Blocks, int], Bits]

    def bits(self, blocks: Blocks, w: int) -> Bits:
        return self.function(blocks, w)


def _sizes(blocks: Blocks, w: int) -> Sizes:
    baselines.check_blocks(blocks)
    return measure(np.ascontiguousarray(blocks), w)


def _single(tag: Tag) -> Callable[[Blocks, int], Bits]:
    return lambda blocks, w: _sizes(blocks, w).bits[:, tag].astype(np.int64) - TAG_BITS


def _best(blocks: Blocks, w: int) -> Bits:
    return _sizes(blocks, w).best_bits.astype(np.int64) - TAG_BITS


def _bpc(blocks: Blocks, w: int) -> Bits:
    """BPC codes every block as 32-bit words, by delta, and has a code for the base word."""
    first = np.ascontiguousarray(blocks[:, :4]).view("<u4")[:, 0]
    return _single(Tag.DBX)(blocks, 32) - 32 + baselines.bpc_base_bits(first)


_BUILTINS: tuple[Encoding, ...] = (
    _Builtin("BDI", 0, lambda blocks, w: baselines.bdi_bits(blocks)),
    _Builtin("ZVC", 0, baselines.zvc_bits),
    _Builtin("BPC", 0, _bpc),
    _Builtin("DBX", 0, _single(Tag.DBX)),
    _Builtin("BX", 0, _single(Tag.BX)),
    _Builtin("ZBX", 0, _single(Tag.ZBX)),
    _Builtin("PlaneZip", TAG_BITS, _best),
    _Builtin("PlaneZip-32", TAG_BITS, lambda blocks, w: _best(blocks, 32)),
)
_registry: dict[str, Encoding] = {e.name: e for e in _BUILTINS}


def register(encoding: Encoding) -> None:
    """Add an encoding to every comparison.

    Raises
    ------
    TypeError
        For an object without ``name``, ``tag_bits`` and ``bits``.
    ValueError
        For a name that is taken.
    """
    if not isinstance(encoding, Encoding) or isinstance(encoding, type):
        raise TypeError(f"encoding must be an object with name, tag_bits, bits, not {encoding!r}")
    if encoding.name in _registry:
        raise ValueError(f"name must be a new one, not {encoding.name!r}")
    _registry[encoding.name] = encoding


def encodings(names: Sequence[str] | None = None) -> list[Encoding]:
    """All registered encodings in order of registration, or those of the given names.

    Raises
    ------
    ValueError
        For a name that is not registered.
    """
    for name in names or ():
        if name not in _registry:
            raise ValueError(f"encoding must be one of {', '.join(_registry)}, not {name!r}")
    return list(_registry.values()) if names is None else [_registry[name] for name in names]


@contextmanager
def scope() -> Iterator[None]:
    """What is registered inside is forgotten at the end."""
    before = dict(_registry)
    try:
        yield
    finally:
        _registry.clear()
        _registry.update(before)


# --- measuring ------------------------------------------------------------------------


def to_blocks(data: NDArray[np.uint8]) -> Blocks:
    """Bytes as blocks [n, 128], the last one padded with zeros."""
    rest = -data.size % BLOCK_BYTES
    padded = np.concatenate([data, np.zeros(rest, np.uint8)]) if rest else data
    return padded.reshape(-1, BLOCK_BYTES)


def wire_bytes(encoding: Encoding, blocks: Blocks, w: int) -> int:
    """Bytes on the wire of whole chunks (the last one may be shorter).

    Raw blocks where the encoding is larger, tags, a header of 16 bits and padding to a
    byte for every chunk, raw chunks where that is smaller.
    """
    if not len(blocks):
        return 0
    bits = np.minimum(_bits(encoding, blocks, w), 8 * BLOCK_BYTES) + encoding.tag_bits
    starts = np.arange(0, len(blocks), BLOCKS_PER_CHUNK)
    body = (np.add.reduceat(bits, starts) + 7) // 8
    raw = np.diff(np.append(starts, len(blocks))) * BLOCK_BYTES
    return int(np.minimum(body, raw).sum()) + HEADER_BYTES * len(starts)


def tag_counts(blocks: Blocks, w: int) -> Bits:
    """Blocks that each :class:`Tag` encodes in the PlaneZip codec, int64 [5]."""
    return np.bincount(_sizes(blocks, w).tag, minlength=len(Tag))


def _bits(encoding: Encoding, blocks: Blocks, w: int) -> Bits:
    bits = np.asarray(encoding.bits(blocks, w))
    if bits.shape != (len(blocks),) or bits.dtype.kind not in "iu":
        raise ValueError(
            f"{encoding.name}: bits must return {len(blocks)} integers, "
            f"not {bits.dtype} of the shape {bits.shape}"
        )
    if bits.size and bits.min() < 0:
        raise ValueError(f"{encoding.name}: bits must not be negative, but {bits.min()} is there")
    return bits.astype(np.int64)


def compare(array: Any, among: Sequence[Encoding] | None = None) -> dict[str, Size]:
    """Size of an array in each encoding, by name.

    Parameters
    ----------
    array : NumPy array or torch tensor
        Of any dtype in :data:`planezip.model.dtypes.DTYPES`.
    among : sequence of Encoding, optional
        Default: all registered ones.
    """
    data, dtype, _ = flat_bytes(array)
    blocks, w = to_blocks(data), dtypes.symbol_bits(dtype)
    pieces = [blocks[k : k + PIECE_BLOCKS] for k in range(0, len(blocks), PIECE_BLOCKS)]
    return {
        e.name: Size(data.size, sum(wire_bytes(e, piece, w) for piece in pieces))
        for e in (encodings() if among is None else among)
    }


def check(encoding: Encoding, blocks: Blocks, w: int) -> None:
    """Test an encoding against its own encoder and decoder, if it has them.

    Blocks that count as raw are left out.

    Raises
    ------
    AssertionError
        Naming the first block whose bits differ in number, or that does not come back.
    """
    sizes = _bits(encoding, blocks, w)
    if not isinstance(encoding, BlockCodec):
        return
    for k in np.flatnonzero(sizes < 8 * BLOCK_BYTES):
        block = blocks[k].tobytes()
        coded = encoding.encode(block, w)
        if len(coded) != sizes[k]:
            raise AssertionError(f"block {k}: {sizes[k]} bits announced, {len(coded)} written")
        if encoding.decode(coded, w) != block:
            raise AssertionError(f"block {k} does not come back")
