"""What the choices that the paper leaves open cost: `python -m tests.choices`.

Sizes of the float32 activations at hand, and of the same as bfloat16, when one choice of
docs/format.md is made otherwise; written from the format page in plain NumPy. Prints the
table of that page and writes build/choices.json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planezip.model import measure
from planezip.model.baselines import bpc_base_bits
from planezip.model.format import DEFAULT
from tests.bench_data import SHARED, real_data

FILE = Path(__file__).resolve().parents[1] / "build" / "choices.json"
PIECE = 16_384  # blocks, whole chunks
Bits = NDArray[np.int64]


@dataclass(frozen=True)
class Choices:
    """The format; each field is something that could have been chosen otherwise."""

    top_first: bool = True
    code_top: bool = True
    raw_base: bool = True
    full_position: bool = False
    long_runs: bool = False
    cheapest: bool = False
    tag_bits: int = 3
    header_bits: int = 16
    chunk_align: int = 8
    block_align: int = 1


OTHERWISE = {
    "planes coded from the top: from the bottom, XORed with the plane below": {"top_first": False},
    "top plane XORed with zero and coded: verbatim": {"code_top": False},
    "base of w bits: BPC's code of a base word": {"raw_base": False},
    "position of log2 n bits in ZBX: of log2 N bits": {"full_position": True},
    "run field of 4 bits at w = 16: of 5 bits": {"long_runs": True},
    "fixed precedence of codes: the cheapest that fits": {"cheapest": True},
    "tag of 3 bits: of 4 bits": {"tag_bits": 4},
    "header of 16 bits: of 32 bits": {"header_bits": 32},
    "chunk padded to a byte: not at all": {"chunk_align": 1},
    "chunk padded to a byte: to 4 bytes": {"chunk_align": 32},
    "chunk padded to a byte: every block": {"block_align": 8},
}


def log2_ceil(width: Bits) -> Bits:
    """Elementwise; 0 for 0 and 1."""
    return np.ceil(np.log2(np.maximum(width, 1))).astype(np.int64)


def plane_bits(
    values: NDArray[np.uint64], planes: int, width: Bits, run: int, position: Bits, c: Choices
) -> Bits:
    """Bits of the codes of all planes of ``values [blocks, N]``, the first ``width`` of each."""
    inside = np.arange(values.shape[1]) < width[:, None]
    total = np.zeros(len(values), np.int64)
    zeros = np.zeros(len(values), np.int64)  # length of the run so far
    above = np.zeros(values.shape, bool)
    order = range(planes - 1, -1, -1) if c.top_first else range(planes)
    for number, p in enumerate(order):
        pre = ((values >> np.uint64(p)) & np.uint64(1)).astype(bool) & inside
        x = pre ^ above
        above = pre
        ones = x.sum(axis=1)
        pair = (ones == 2) & (x[:, 1:] & x[:, :-1]).any(axis=1)
        fits = [(ones == width, 5), (~pre.any(axis=1), 5), (pair | (ones == 1), 5 + position)]
        cost = 1 + width
        if not c.code_top and number == 0:
            total += width
            continue
        for where, bits in reversed(fits):
            cost = np.where(where, np.minimum(bits, cost) if c.cheapest else bits, cost)
        zero = ones == 0
        zeros = np.where(zero, zeros + 1, 0)
        total += np.where(zero, np.choose(np.minimum(zeros, 3), [0, 3, run - 1, 0]), cost)
    return total


def wire_bits(blocks: NDArray[np.uint8], w: int, c: Choices) -> int:
    """Bits on the wire of whole chunks."""
    s = blocks.view(f"<u{w // 8}").astype(np.uint64)
    symbols = s.shape[1]
    kept = np.argsort(s == 0, axis=1, kind="stable")
    n = (s != 0).sum(axis=1)
    every = np.full(len(s), symbols)
    run = 5 if c.long_runs or w == 32 else 4
    deltas = (s[:, 1:] - s[:, :-1]) & np.uint64((1 << (w + 1)) - 1)
    base = np.full(len(s), w)
    if not c.raw_base:
        sign = s[:, 0].astype(np.int64) - ((s[:, 0] >> np.uint64(w - 1)).astype(np.int64) << w)
        base = np.minimum(bpc_base_bits(sign.astype(np.int32).view(np.uint32)), w + 1)
    position = log2_ceil(every)
    sparse = position if c.full_position else log2_ceil(n)
    best = np.minimum.reduce(
        [
            np.full(len(s), 1024),
            symbols + w * n,
            base + plane_bits(deltas, w + 1, every - 1, run, log2_ceil(every - 1), c),
            plane_bits(s, w, every, run, position, c),
            symbols + plane_bits(np.take_along_axis(s, kept, 1), w, n, run, sparse, c),
        ]
    )
    best += c.tag_bits
    best = -(-best // c.block_align) * c.block_align
    starts = np.arange(0, len(best), DEFAULT.blocks_per_chunk)
    bodies = -(-np.add.reduceat(best, starts) // c.chunk_align) * c.chunk_align
    raw = 1024 * np.diff(np.append(starts, len(best)))
    return int(np.minimum(bodies, raw).sum() + c.header_bits * len(starts))


def main() -> None:
    rows: dict[str, dict[str, float]] = {text: {} for text in OTHERWISE}
    for name, w in (("bfloat16", 16), ("float32", 32)):
        data = real_data()[name]
        blocks = data[: data.size // 128 * 128].reshape(-1, 128)
        pieces = [blocks[k : k + PIECE] for k in range(0, len(blocks), PIECE)]
        own = sum(wire_bits(piece, w, Choices()) for piece in pieces)
        assert own == 8 * measure.wire_bytes(blocks, w), "the size model disagrees"
        for text, change in OTHERWISE.items():
            other = replace(Choices(), **change)
            size = sum(wire_bits(piece, w, other) for piece in pieces)
            rows[text][name] = 100 * (size / own - 1)
            print(f"| {text} | {name} | {rows[text][name]:+.3f}% |", flush=True)
    print("\n| chosen: otherwise | bfloat16 | float32 |\n|---|---|---|")
    for text, change in rows.items():
        print(f"| {text} | {change['bfloat16']:+.2f}% | {change['float32']:+.2f}% |")
    FILE.parent.mkdir(exist_ok=True)
    source = "shared/activations" if SHARED.exists() else "shipped sample"
    report = {"version": 1, "source": source, "size_change_percent": rows}
    FILE.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
