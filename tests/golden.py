"""Golden vectors: `python -m tests.golden` writes tests/vectors (README.md there says what).

Deterministic: only ``random.Random(seed)`` and the reference codec go into them.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planezip.model import reference
from planezip.model.codec import decode_blocks
from planezip.model.errors import ErrorCode
from planezip.model.format import CHUNK_BYTES, DEFAULT, FORMAT_VERSION, Tag
from planezip.model.measure import measure
from tests import golden_streams

FOLDER = Path(__file__).parent / "vectors"


@dataclass(frozen=True)
class Vector:
    """A stream, its symbol width, the bytes its tensor has, and the fault it must give."""

    name: str
    w: int
    raw_bytes: int
    stream: bytes
    fault: tuple[ErrorCode, int, int] | None = None

    @property
    def data(self) -> bytes:
        """What a decoder delivers: the tensor, or the blocks before the fault."""
        data, error = decode_blocks(self.stream, self.raw_bytes, self.w)
        found = (error.code, error.chunk, error.block) if error else None
        if found != self.fault:
            raise AssertionError(f"{self.name}: {found} in place of {self.fault}")
        return data.tobytes()

    def entry(self) -> dict[str, Any]:
        """What index.json says about it."""
        code, chunk, block = self.fault or (None, 0, 0)
        row = {"name": self.name, "symbol_bits": self.w, "raw_bytes": self.raw_bytes}
        if code is not None:
            error = {"code": code.value, "name": code.name, "chunk": chunk, "block": block}
            return row | {"error": error}
        padded = self.data + bytes(-len(self.data) % 128)
        blocks = (padded[k : k + 128] for k in range(0, len(padded), 128))
        symbols = [reference.split_symbols(block, self.w) for block in blocks]
        written = reference.encode_tensor(self.data, self.w)
        return row | {
            "error": None,
            "canonical": written == self.stream,
            "sizes": [[reference.encode_block(t, s, self.w).bits for t in Tag] for s in symbols],
        }


def _winner(tag: Tag, w: int, rng: random.Random) -> bytes:
    """A block that ``tag`` codes best."""
    n = DEFAULT.symbols(w)
    sparse = [rng.random() < 0.4 for _ in range(n)]
    narrow = [1 << (w - 2) | rng.getrandbits(5) for _ in range(n)]
    symbols = {
        Tag.RAW: [rng.getrandbits(w) | 1 for _ in range(n)],
        Tag.ZVC: [(rng.getrandbits(w) | 1) * some for some in sparse],
        Tag.DBX: [100 * k + rng.getrandbits(3) for k in range(n)],
        Tag.BX: narrow,
        Tag.ZBX: [s * some for s, some in zip(narrow, sparse, strict=True)],
    }[tag]
    if reference.select(symbols, w).tag != tag:
        raise AssertionError(f"{tag!r} does not win at {w} bits")
    return _bytes(symbols, w)


def _bytes(symbols: list[int], w: int) -> bytes:
    return struct.pack(f"<{len(symbols)}{'H' if w == 16 else 'I'}", *symbols)


def _ties(w: int, rng: random.Random) -> bytes:
    """Blocks with two best encodings, one of each pair that turns up."""
    n = DEFAULT.symbols(w)
    tried = []
    for _ in range(20_000):
        low, high = rng.randrange(1 << rng.randrange(1, w)), rng.randrange(1 << rng.randrange(1, w))
        share = rng.random() ** 2
        symbols = [rng.choice((low, high)) * (rng.random() < share) for _ in range(n)]
        tried.append(_bytes(symbols, w))
    blocks = np.frombuffer(b"".join(tried), np.uint8).reshape(-1, 128)
    sizes = measure(blocks.reshape(-1), w)
    best = sizes.bits == sizes.best_bits[:, None]
    first = {tuple(row): k for k, row in reversed([*enumerate(best.tolist())]) if sum(row) > 1}
    return blocks[sorted(first.values())].tobytes()


def _written(w: int) -> Iterator[tuple[str, bytes]]:
    """Tensors that an encoder compresses."""
    rng = random.Random(w)
    n = DEFAULT.symbols(w)
    for tag in Tag:
        blocks = [_winner(tag, w, rng) for _ in range(3)]
        yield f"tag-{tag.name.lower()}", b"".join([*blocks, bytes(256)])
    for size in (0, 1, 2, 127, 128, 129, 4095, 4096, 4097, 8300):
        text = b"".join(_winner(Tag(1 + k % 4), w, rng) for k in range(-(-size // 128)))
        yield f"length-{size}", text[: size - 1] + b"\x7f" * (size > 0)
    falls = [
        [-100 * k + rng.getrandbits(3) for k in range(n)],
        [100 * abs(k - 9) for k in range(n)],
    ]
    falls += [[(1 << w) - 500 + 100 * k for k in range(n)], [-(k // 5) * 1000 for k in range(n)]]
    falls.append([50_000 - 100 * k for k in range(n)])
    for places in ((7,), (7, 8), (7, 12), (7, 8, 9), (7, 9, 11)):  # of negative deltas
        falls.append([1000 + k - 300 * sum(k >= place for place in places) for k in range(n)])
    yield "deltas", b"".join(_bytes([s % (1 << w) for s in fall], w) for fall in falls)
    noise = b"".join(_winner(Tag.RAW, w, rng) for _ in range(32))
    yield "raw-chunk", noise + bytes(256) + _winner(Tag.BX, w, rng)
    yield "raw-last-chunk", bytes(CHUNK_BYTES) + noise[:381]
    high, low = {16: (0, 14), 32: (0b10101, 27)}[w]  # 919 bits: 4095 bytes with the 31 others
    block = _bytes([high << low | rng.getrandbits(low) for _ in range(n)], w)
    yield "largest-coded-chunk", noise[:-128] + block
    some = [
        (rng.getrandbits(w) | 1) * (k < (928 - n) // w) for k in range(n)
    ]  # 931 bits: 4096 bytes
    yield "smallest-raw-chunk", noise[:-128] + _bytes(some, w)
    yield "all-zero", bytes(2 * CHUNK_BYTES)
    halves = (0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFFF, 1, 0x8001, 0x007F, 0x0080, 0x7C00, 0x03FF)
    special = struct.pack("<12H", *halves) + struct.pack("<3I", 0x7FC12345, 0x3F800000, 0x80000001)
    yield "float-specials", special + bytes(7) + special * 9
    yield "ties", _ties(w, rng)
    residues: set[int] = set()
    while len(residues) < 8:
        block = _winner(Tag.ZBX, w, rng)
        bits = reference.select(reference.split_symbols(block, w), w).bits
        if -bits % 8 not in residues:
            residues.add(-bits % 8)
            yield f"padding-{-bits % 8}", block
    orders = ((Tag.BX, Tag.ZBX, Tag.DBX), (Tag.ZVC, Tag.RAW, Tag.ZVC), (Tag.ZBX, Tag.DBX, Tag.BX))
    text = [_winner(order[k % 3], w, rng) for order in orders for k in range(32)]
    yield "other-tags-in-place", b"".join(text)


def vectors() -> Iterator[Vector]:
    """All of them."""
    for w in DEFAULT.symbol_bits:
        for name, data in _written(w):
            yield Vector(f"{name}.{w}", w, len(data), reference.encode_tensor(data, w))
        for name, blocks, stream in golden_streams.legal(w):
            yield Vector(f"{name}.{w}", w, 128 * blocks, stream)
        for name, raw_bytes, stream, fault in golden_streams.broken(w):
            yield Vector(f"error-{name}.{w}", w, raw_bytes, stream, fault)


def files() -> Iterator[tuple[str, bytes]]:
    """Name and contents of every file that the command writes."""
    entries = []
    for vector in vectors():
        entries.append(json.dumps(vector.entry()))
        yield f"{vector.name}.stream", vector.stream
        yield f"{vector.name}.raw", vector.data
    head = f'{{"version": 1, "format_version": {FORMAT_VERSION}, "vectors": [\n'
    yield "index.json", (head + ",\n".join(entries) + "\n]}\n").encode()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in (*FOLDER.glob("*.stream"), *FOLDER.glob("*.raw")):
        old.unlink()
    made = dict(files())
    for name, content in made.items():
        (FOLDER / name).write_bytes(content)
    print(f"{len(made)} files, {sum(map(len, made.values())):,} bytes: tests/vectors")


if __name__ == "__main__":
    main()
