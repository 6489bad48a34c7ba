"""Test blocks for any :class:`Parameters` (``planezip.model.generate``: for the paper's)."""

from __future__ import annotations

import random
from collections.abc import Iterator

from planezip.model.format import DEFAULT, Parameters
from planezip.model.generate import mixed
from planezip.model.reference import number_of

__all__ = ["block_bytes", "corner_blocks", "random_block", "test_blocks"]


def block_bytes(symbols: list[int], w: int) -> bytes:
    """The block that consists of ``symbols``."""
    number = sum(s << (k * w) for k, s in enumerate(symbols))
    return number.to_bytes(len(symbols) * w // 8, "little")


def _from_planes(rng: random.Random, n: int, w: int) -> list[int]:
    """Symbols whose XORed planes are zero, full, single, pair, repeated or random ones."""
    above, pre = 0, []
    for _ in range(w):
        at = rng.randrange(n)
        kind = rng.randrange(8)
        plane = (
            0,
            0,
            0,
            (1 << n) - 1,
            above,
            1 << at,
            3 << min(at, max(n - 2, 0)),
            rng.getrandbits(n),
        )
        above ^= plane[kind] & ((1 << n) - 1)
        pre.append(above)
    return [number_of([p >> i & 1 for p in reversed(pre)]) for i in range(n)]


def random_block(rng: random.Random, w: int, parameters: Parameters = DEFAULT) -> bytes:
    """A block of a random kind; every encoding wins now and then."""
    n, top = parameters.symbols(w), (1 << w) - 1
    kind = rng.randrange(7)
    if kind == 0:  # any bits
        symbols = [rng.getrandbits(w) for _ in range(n)]
    elif kind == 1:  # smooth
        symbols = [rng.getrandbits(w)]
        step = 1 << rng.randrange(w)
        while len(symbols) < n:
            symbols.append((symbols[-1] + rng.randrange(-step, step + 1)) & top)
    elif kind == 2:  # few distinct values
        values = [rng.getrandbits(w) for _ in range(rng.randint(1, 3))]
        symbols = [rng.choice(values) for _ in range(n)]
    elif kind == 3:  # small values
        bits = rng.randint(1, w)
        symbols = [rng.getrandbits(bits) for _ in range(n)]
    elif kind == 4:
        symbols = _from_planes(rng, n, w)
    elif kind == 5:  # planes over some of the symbols, zeros between them
        count = rng.randint(0, n)
        kept = iter(_from_planes(rng, count, w) if count else [])
        places = set(rng.sample(range(n), count))
        symbols = [next(kept) if k in places else 0 for k in range(n)]
    else:  # deltas with structured planes
        deltas = _from_planes(rng, n - 1, w) if n > 1 else []
        symbols = [rng.getrandbits(w)]
        for delta in deltas:
            symbols.append((symbols[-1] + delta) & top)
    if rng.randrange(3) == 0:
        density = rng.random()
        symbols = [s if rng.random() < density else 0 for s in symbols]
    return block_bytes(symbols, w)


def corner_blocks(w: int, parameters: Parameters = DEFAULT) -> Iterator[bytes]:
    """Zero, full, single symbols and bits, every count of non-zero symbols, every run of planes."""
    n, top = parameters.symbols(w), (1 << w) - 1
    yield block_bytes([0] * n, w)
    yield block_bytes([top] * n, w)
    yield block_bytes([k * 0x5555 & top for k in range(n)], w)
    for count in range(n + 1):
        yield block_bytes([top if k < count else 0 for k in range(n)], w)
        yield block_bytes([0 if k < n - count else 1 + k % top for k in range(n)], w)
    for low in range(w):
        yield block_bytes([(k * 37 + 1) << low & top for k in range(n)], w)
        yield block_bytes([(k * 37 + 1) & ((2 << low) - 1) for k in range(n)], w)
        for at in range(0, n, max(1, n // 4)):
            yield block_bytes([(1 << low) * (k == at) for k in range(n)], w)
            yield block_bytes([top ^ (1 << low) * (k == at) for k in range(n)], w)
            yield block_bytes([(1 << low) * (at <= k <= at + 1) for k in range(n)], w)
    for a in range(n - 1):  # two ones, adjacent only among the non-zero symbols, or not
        yield block_bytes([1 | (k in (a, n - 1)) << (w - 1) for k in range(n)], w)
        yield block_bytes([(k in (a, n - 1)) << (w - 2) | (k == (a + n) // 2) for k in range(n)], w)


def test_blocks(rng: random.Random, count: int, w: int, parameters: Parameters) -> list[bytes]:
    """Every corner block once, and ``count`` random ones."""
    made = list(dict.fromkeys(corner_blocks(w, parameters)))
    if parameters.block_bits == DEFAULT.block_bits and w in DEFAULT.symbol_bits:
        made += [b.tobytes() for b in mixed(count // 2, w, rng.getrandbits(32))]
        count -= count // 2
    return made + [random_block(rng, w, parameters) for _ in range(count)]


test_blocks.__test__ = False  # type: ignore[attr-defined]  # not a pytest function
