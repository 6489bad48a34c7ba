"""Exact sizes of the codecs that the paper compares with: ZVC, BDI and BPC.

Every function takes ``blocks``, uint8 [n, 128], and returns the bits of each block,
int64 [n]: the encoding alone, without a tag and without the choice of a raw block.
``planezip.model.registry`` adds what the paper's Fig. 3 has (raw where smaller, chunk
headers, padding).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from planezip.model.format import BLOCK_BYTES

__all__ = [
    "BDI_BITS",
    "BDI_FORMS",
    "BDI_TAG_BITS",
    "bdi_bits",
    "bdi_form",
    "bpc_base_bits",
    "zvc_bits",
]

Blocks = NDArray[np.uint8]
Bits = NDArray[np.int64]


def zvc_bits(blocks: Blocks, w: int) -> Bits:
    """Zero-value compression (cDMA): a mask of the N symbols, then the non-zero ones."""
    symbols = symbols_of(blocks, w)
    return np.asarray(symbols.shape[1] + w * np.count_nonzero(symbols, axis=1), np.int64)


def symbols_of(blocks: Blocks, w: int) -> NDArray[Any]:
    """``blocks`` as unsigned symbols of ``w`` bits (8 to 64), [n, 1024 / w]."""
    check_blocks(blocks)
    return np.ascontiguousarray(blocks).view(f"<u{w // 8}")


def check_blocks(blocks: Blocks) -> None:
    """TypeError or ValueError unless ``blocks`` is uint8 [n, 128]."""
    if not isinstance(blocks, np.ndarray) or blocks.dtype != np.uint8:
        raise TypeError(f"blocks must be a uint8 array, not {getattr(blocks, 'dtype', blocks)!r}")
    if blocks.ndim != 2 or blocks.shape[1] != BLOCK_BYTES:
        raise ValueError(f"blocks must have the shape [n, {BLOCK_BYTES}], not {blocks.shape!r}")


# --- BDI: Pekhimenko et al., PACT 2012 ------------------------------------------------

BDI_TAG_BITS = 4
BDI_FORMS = (
    "zeros",
    "repeated",
    *(f"base{b}-d{d}" for b, d in ((8, 1), (8, 2), (8, 4), (4, 1), (4, 2), (2, 1))),
)


def _bdi_size(form: str) -> int:
    """Bits of a form: data as in the paper's Table 2, mask of the two bases, and tag."""
    if form in ("zeros", "repeated"):
        return BDI_TAG_BITS + {"zeros": 8, "repeated": 64}[form]
    base, delta = int(form[4]), int(form[7])
    count = BLOCK_BYTES // base
    return BDI_TAG_BITS + 8 * base + count * (8 * delta + 1)


BDI_BITS = np.array([*map(_bdi_size, BDI_FORMS), BDI_TAG_BITS + 8 * BLOCK_BYTES], np.int64)
"""Bits of each of ``BDI_FORMS``, and of a block that fits none."""


@numba.njit(cache=True, nogil=True)
def _fits(values: NDArray[Any], bits: int, delta: int) -> bool:
    """Whether all values are near zero or near the first one that is not (modulo 2^bits)."""
    full = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)
    half = np.uint64(1) << np.uint64(8 * delta - 1)
    limit = half << np.uint64(1)
    have_base = False
    base = np.uint64(0)
    for v in values:
        x = np.uint64(v)
        if (x + half) & full < limit:
            continue
        if not have_base:
            base = x
            have_base = True
        if not (x - base + half) & full < limit:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _bdi_forms(v8: NDArray[Any], v4: NDArray[Any], v2: NDArray[Any], out: NDArray[Any]) -> None:
    for k in range(out.size):
        same = True
        for v in v8[k]:
            same &= v == v8[k, 0]
        if same:
            out[k] = 1 if v8[k, 0] else 0
        # from the smallest to the largest
        elif _fits(v8[k], 64, 1):
            out[k] = 2
        elif _fits(v4[k], 32, 1):
            out[k] = 5
        elif _fits(v8[k], 64, 2):
            out[k] = 3
        elif _fits(v4[k], 32, 2):
            out[k] = 6
        elif _fits(v2[k], 16, 1):
            out[k] = 7
        elif _fits(v8[k], 64, 4):
            out[k] = 4
        else:
            out[k] = 8


def bdi_form(blocks: Blocks) -> NDArray[np.uint8]:
    """Index into ``BDI_FORMS`` of the smallest form of each block, or 8 if none fits.

    A value of 8, 4 or 2 bytes is stored as a difference of 1, 2 or 4 bytes from one of
    two bases: zero, or the first value of the block that is not near zero.
    """
    out = np.empty(len(blocks), np.uint8)
    _bdi_forms(symbols_of(blocks, 64), symbols_of(blocks, 32), symbols_of(blocks, 16), out)
    return out


def bdi_bits(blocks: Blocks) -> Bits:
    """Base-delta-immediate: the smallest of eight forms, 4 bits naming the form included.

    The original is for lines of 32 and 64 bytes; here the block has 128. Its Table 2
    leaves out the mask that tells the two bases apart (in its cache the mask is with the
    tags); it is needed to decode and counted here, a bit per value.
    """
    return np.asarray(BDI_BITS[bdi_form(blocks)], np.int64)


# --- BPC: Kim et al., ISCA 2016 -------------------------------------------------------


def bpc_base_bits(words: NDArray[np.uint32]) -> Bits:
    """Bits of BPC's code of a base word, uint32 [n].

    ====================  =========================  ====
    word                  code                       bits
    ====================  =========================  ====
    zero                  ``000``                       3
    4 bits with sign      ``001`` and 4 bits            7
    8 bits with sign      ``010`` and 8 bits           11
    16 bits with sign     ``011`` and 16 bits          19
    other                 ``1`` and 32 bits            33
    ====================  =========================  ====
    """
    signed = words.view(np.int32)
    out = np.full(words.shape, 33, np.int64)
    for bits, size in ((16, 19), (8, 11), (4, 7)):
        half = 1 << (bits - 1)
        out[(signed >= -half) & (signed < half)] = size
    out[signed == 0] = 3
    return out
