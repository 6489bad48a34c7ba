"""Deterministic test blocks by property: each kind aims at one corner of the format.

>>> blocks("codes-bx", count=100, w=16, seed=1).shape
(100, 128)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from planezip.model.format import BLOCK_BYTES, DEFAULT, PlaneCode, Tag
from planezip.model.generate_values import constant, indices, mask, normal, ramps, relu

__all__ = ["KINDS", "blocks", "mixed"]

Rng = np.random.Generator
Symbols = NDArray[np.uint64]
Bits = NDArray[np.bool_]


def blocks(kind: str, count: int, w: int, seed: int) -> NDArray[np.uint8]:
    """``count`` blocks of one kind, as bytes ``[count, 128]``; same arguments, same bytes.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    count : int
        Number of blocks.
    w : int
        Symbol width the property holds for, 16 or 32.
    seed : int
        Seed of the generator.
    """
    if kind not in _MAKERS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if w not in DEFAULT.symbol_bits:
        raise ValueError(f"w must be one of {DEFAULT.symbol_bits}, not {w!r}")
    rng = np.random.default_rng([seed, w, KINDS.index(kind)])
    made = _MAKERS[kind](rng, count, w)
    return made.astype(f"<u{w // 8}").view(np.uint8).reshape(count, BLOCK_BYTES)


def mixed(count: int, w: int, seed: int) -> NDArray[np.uint8]:
    """``count`` blocks of all kinds in equal shares, in random order."""
    share = -(-count // len(KINDS))
    every = np.concatenate([blocks(kind, share, w, seed) for kind in KINDS])
    return every[np.random.default_rng([seed, w]).permutation(len(every))[:count]]


# --- planes by code -------------------------------------------------------------------


def _planes(
    rng: Rng,
    width: NDArray[np.int64],
    top: NDArray[np.int64],
    size: tuple[int, int, int],
    codes: list[PlaneCode],
) -> Bits:
    """Planes ``[count, planes, N]``, top plane first, of random ``codes``.

    Planes above ``top`` are zero and so are the bits from ``width`` upwards. Each block
    draws weights of its own, so that rare codes come in long rows too.
    """
    count, planes, symbols = size
    at = np.arange(symbols)
    inside = at < width[:, None]
    weights = rng.exponential(size=(count, len(codes))) ** 2
    edges = np.cumsum(weights, 1) / weights.sum(1, keepdims=True)
    rest = np.zeros(count, np.int64)  # planes left of a zero run
    above = np.zeros((count, symbols), bool)
    out = np.zeros(size, bool)
    for k in range(planes):
        pick = np.minimum((rng.random((count, 1)) > edges).sum(1), len(codes) - 1)
        code = np.array(codes)[pick]
        starts = (code == PlaneCode.ZERO_RUN) & (rest == 0)
        rest[starts] = rng.integers(1, planes + 1, starts.sum())
        zero = (rest > 0) | (k < top) | (code == PlaneCode.ZERO)
        ones = 1 + (code == PlaneCode.PAIR)
        position = (rng.random(count) * np.maximum(width - ones + 1, 1)).astype(np.int64)
        dense = rng.random((count, symbols)) < rng.choice([0.1, 0.5, 0.9], (count, 1))
        single = (at >= position[:, None]) & (at < (position + ones)[:, None])
        plane = np.where(
            ((code == PlaneCode.PAIR) | (code == PlaneCode.ONE))[:, None], single, dense
        )
        plane[code == PlaneCode.ONES] = True
        plane = np.where((code == PlaneCode.PRE_ZERO)[:, None], above, plane)
        plane &= inside & ~zero[:, None]
        out[:, k] = plane
        above ^= plane
        rest = np.maximum(rest - 1, 0)
    return out


def _values(planes: Bits) -> Symbols:
    """Symbols or deltas ``[count, N]`` whose XORed planes are ``planes``."""
    pre = np.logical_xor.accumulate(planes, axis=1)
    places = np.arange(planes.shape[1] - 1, -1, -1, dtype=np.uint64)
    return (pre.astype(np.uint64) << places[:, None]).sum(1, dtype=np.uint64)


def _scatter(rng: Rng, values: Symbols, width: NDArray[np.int64]) -> Symbols:
    """Moves the first ``width`` symbols of each block to random places, in order."""
    order = np.argsort(rng.random(values.shape), axis=1)
    chosen = np.zeros(values.shape, bool)
    np.put_along_axis(chosen, order, np.arange(values.shape[1]) < width[:, None], axis=1)
    out = np.zeros_like(values)
    out[chosen] = values[np.arange(values.shape[1]) < width[:, None]]
    return out


def _coded(
    tag: Tag, codes: list[PlaneCode], high: bool = True
) -> Callable[[Rng, int, int], Symbols]:
    """Maker of blocks whose planes in the encoding ``tag`` are of the given codes."""

    def make(rng: Rng, count: int, w: int) -> Symbols:
        symbols, planes = DEFAULT.symbols(w), DEFAULT.planes(tag, w)
        width = np.full(count, symbols - (tag == Tag.DBX))
        if tag == Tag.ZBX:
            width = rng.integers(0, symbols + 1, count)
        top = rng.integers(0, planes, count) * (rng.random(count) < 0.5)
        if not high:
            top[:] = 0
        values = _values(_planes(rng, width, top, (count, planes, symbols), codes))
        if tag == Tag.ZBX:
            return _scatter(rng, values, width)
        if tag == Tag.BX:
            return values
        return _integrate(rng, values, w)

    return make


def _integrate(rng: Rng, deltas: Symbols, w: int) -> Symbols:
    """Symbols from a random base and ``deltas``.

    Half of the blocks wrap around, which changes the top two planes; in the other half
    the deltas shrink to signed numbers small enough for all sums to stay in range, and
    their top plane keeps its code.
    """
    count, symbols = deltas.shape
    top = deltas >> np.uint64(w) & np.uint64(1)
    small = np.uint64((1 << w) // (4 * symbols) - 1)
    shrunk = (deltas & small) - top * (small + np.uint64(1))
    calm = rng.random((count, 1)) < 0.5
    base = rng.integers(1 << w, size=(count, 1), dtype=np.uint64)
    base = np.where(calm, (base >> np.uint64(1)) + np.uint64(1 << w >> 2), base)
    steps = np.concatenate([base, np.where(calm, shrunk, deltas)[:, :-1]], axis=1)
    return np.cumsum(steps, axis=1, dtype=np.uint64) & np.uint64((1 << w) - 1)


# --- other corners --------------------------------------------------------------------


def _edge_planes(rng: Rng, count: int, w: int) -> Symbols:
    """Symbols that differ in the top plane, the bottom plane or both; some blocks are steps."""
    choice = np.array([[0, 1], [0, 1 << (w - 1)], [1, 1 << (w - 1)], [0, (1 << w) - 1]], np.uint64)
    pick = rng.integers(len(choice), size=count)
    bit = (rng.random((count, DEFAULT.symbols(w))) < rng.random((count, 1))).astype(np.int64)
    bit = np.where(rng.random((count, 1)) < 0.3, np.sort(bit, axis=1), bit)
    return choice[pick[:, None], bit]


def _nonzero(rng: Rng, count: int, w: int) -> Symbols:
    """0, 1, 2, N - 1 or N non-zero symbols: random, equal, or close to each other."""
    symbols = DEFAULT.symbols(w)
    width = rng.choice([0, 1, 2, symbols - 1, symbols], count)
    limit = np.uint64(1) << rng.integers(1, w, (count, 1), dtype=np.uint64)
    values = rng.integers(1 << w, size=(count, symbols), dtype=np.uint64)
    near = values[:, :1] ^ values % limit
    values = np.where(rng.random((count, 1)) < 0.5, near, values)
    return _scatter(rng, np.maximum(values, np.uint64(1)), width)


def _special_floats(rng: Rng, count: int, w: int) -> Symbols:
    """NaN with payloads, infinities, denormals and -0.0 among ordinary numbers."""
    mantissa = np.where(rng.random((count, 1)) < 0.5, {16: 7, 32: 23}[w], {16: 10, 32: 23}[w])
    sign = np.uint64(1 << (w - 1))
    shift = mantissa.astype(np.uint64)
    inf = sign - (np.uint64(1) << shift)
    shape = (count, DEFAULT.symbols(w))
    payload = rng.integers(1 << w, size=shape, dtype=np.uint64) & (
        (np.uint64(1) << shift) - np.uint64(1)
    )
    usual = normal(rng, count, w)
    special = [
        inf | payload,
        inf + np.zeros(shape, np.uint64),
        payload,
        np.zeros(shape, np.uint64),
        usual,
    ]
    pick = rng.integers(len(special), size=shape)
    pick[rng.random(shape) < rng.random((count, 1))] = len(special) - 1
    pick[rng.random(count) < 0.2] = rng.integers(len(special) - 1)
    flip = (rng.random(shape) < 0.3) * sign
    return np.choose(pick, special) ^ flip


def _random(rng: Rng, count: int, w: int) -> Symbols:
    """Uniform bits: no encoding helps, and whole chunks stay raw."""
    return rng.integers(1 << w, size=(count, DEFAULT.symbols(w)), dtype=np.uint64)


def _raw_or_zvc(rng: Rng, count: int, w: int) -> Symbols:
    """Random symbols, as many non-zero ones as make RAW and ZVC equal."""
    width = np.full(count, (w - 1) * DEFAULT.symbols(w) // w)
    return _scatter(rng, np.maximum(_random(rng, count, w), np.uint64(1)), width)


def _ties(rng: Rng, count: int, w: int) -> Symbols:
    """Blocks that two encodings make equally small, pairs of encodings in turn.

    No block has RAW equal to DBX, BX or ZBX: no sum of plane codes gives 1024 bits. None
    with ZVC equal to DBX is known at w = 32.
    """
    from planezip.model.measure import measure  # here: numba takes half a second

    makers = [_nonzero, relu, _MAKERS["codes-bx"], _MAKERS["max-control-zbx"]]
    found: list[Symbols] = []
    ranks: list[NDArray[np.int64]] = []
    while len(found) == 0 or sum(map(len, found)) < count:
        pools = [maker(rng, 1000, w) for maker in makers]
        pool = np.concatenate([*pools, ramps(rng, 20_000, w), _raw_or_zvc(rng, 100, w)])
        sizes = measure(pool.astype(f"<u{w // 8}").view(np.uint8), w)
        least = sizes.bits == sizes.best_bits[:, None]
        for one, other in combinations(Tag, 2):
            found.append(pool[least[:, one] & least[:, other]])
            ranks.append(np.arange(len(found[-1])))
    order = np.argsort(np.concatenate(ranks), kind="stable")
    return np.concatenate(found)[order[:count]]


_ALL = list(PlaneCode)
_LONGEST = [PlaneCode.ONES, PlaneCode.PRE_ZERO, PlaneCode.PAIR, PlaneCode.ONE]
_RUNS = [PlaneCode.ZERO_RUN, PlaneCode.ZERO, *_LONGEST]

_MAKERS: dict[str, Callable[[Rng, int, int], Symbols]] = {
    "codes-dbx": _coded(Tag.DBX, _ALL),  # every plane code at every plane
    "codes-bx": _coded(Tag.BX, _ALL),
    "codes-zbx": _coded(Tag.ZBX, _ALL),
    "runs-dbx": _coded(Tag.DBX, _RUNS),  # zero runs of every length between short codes
    "runs-bx": _coded(Tag.BX, _RUNS),
    "runs-zbx": _coded(Tag.ZBX, _RUNS),
    "max-control-dbx": _coded(Tag.DBX, _LONGEST, high=False),  # 5 bits for every plane
    "max-control-bx": _coded(Tag.BX, _LONGEST, high=False),
    "max-control-zbx": _coded(Tag.ZBX, _LONGEST, high=False),
    "edge-planes": _edge_planes,
    "nonzero": _nonzero,
    "special-floats": _special_floats,
    "incompressible": _random,
    "normal": normal,
    "relu": relu,
    "mask": mask,
    "indices": indices,
    "constant": constant,
    "ramps": ramps,
    "ties": _ties,
}

KINDS: tuple[str, ...] = tuple(_MAKERS)
"""Names of the kinds of blocks."""
