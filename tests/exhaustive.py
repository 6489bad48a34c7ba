"""Long test of the codec: `python -m tests.exhaustive [generated blocks per width]`.

All real activations at hand (../shared/activations, else the shipped sample) in both
symbol widths, float32 also as bfloat16 to nearest even, and 500,000 generated blocks per
width: encoder, size model and decoder agree on every distinct block to the bit, whole
tensors come back, and the reference agrees on 2,000 blocks of each source and width.
Prints one line per source and width and writes build/exhaustive.json.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

import planezip.model as pz
from planezip.model import generate, measure, reference
from planezip.model.format import DEFAULT, Tag
from tests.agreement import assert_agreement
from tests.bench_data import real_data

FILE = Path(__file__).resolve().parents[1] / "build" / "exhaustive.json"
SAMPLE = 2000


def check(data: np.ndarray, w: int) -> dict[str, object]:
    """Checks bytes as symbols of ``w`` bits; counts of blocks and winners."""
    wire = pz.encode_bytes(data.data, w, threads=2)
    assert pz.decode_bytes(wire, data.size, w, threads=2) == data.tobytes()
    assert len(wire) == measure.wire_bytes(data, w)
    whole = np.concatenate([data, np.zeros(-data.size % 128, np.uint8)]).reshape(-1, 128)
    blocks = np.unique(whole, axis=0)
    assert_agreement(blocks, w)
    sizes = measure.measure(blocks, w)
    some = np.random.default_rng(0).choice(len(blocks), min(SAMPLE, len(blocks)), replace=False)
    for k in some:
        symbols = reference.split_symbols(blocks[k].tobytes(), w)
        bits = [reference.encode_block(tag, symbols, w).bits for tag in Tag]
        assert sizes.bits[k].tolist() == bits
    part = blocks[some[:330]].tobytes()
    assert pz.encode_bytes(part, w) == reference.encode_tensor(part, w)
    tags = np.bincount(sizes.tag, minlength=len(Tag)).tolist()
    return {"blocks": len(whole), "distinct": len(blocks), "tags": tags}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    rows = []
    for w in DEFAULT.symbol_bits:
        sources = real_data()
        sources["generated"] = generate.mixed(count, w, 123).reshape(-1)
        for name, data in sources.items():
            start = time.perf_counter()
            row = {"source": name, "symbol_bits": w, **check(data, w)}
            rows.append(row)
            print(*row.values(), f"{time.perf_counter() - start:.0f} s", flush=True)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps({"version": 1, "mismatches": 0, "rows": rows}, indent=1) + "\n")
    total = sum(row["distinct"] for row in rows)
    print(f"{total:,} distinct blocks, no mismatch; written: build/exhaustive.json")


if __name__ == "__main__":
    main()
