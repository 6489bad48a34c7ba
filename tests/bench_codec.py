"""Speed, size and memory of the golden codec beside other compressors (`make bench`).

Real activations, at least 100 MB per dtype (a smaller sample is repeated), one thread
each, all codecs in turn in each of five rounds, medians. Speed counts processor time, so
that other processes do not count; two threads are timed by both. Memory is touched
before every timing (touch()). Prints a table and writes build/bench/codec.json.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import blosc2
import lz4.block
import numpy as np
import zstandard

import planezip.model as pz
from planezip.model import dtypes, measure
from tests.bench_data import SHARED, real_data

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
LEAST_BYTES = 100_000_000

Codec = tuple[Callable[[bytes], object], Callable[[object, int], object] | None]


def codecs(dtype: str) -> Iterator[tuple[str, Codec]]:
    """Name, compressor and decompressor; a compressor may return just a size."""
    w, item = dtypes.symbol_bits(dtype), dtypes.dtype_of(dtype).itemsize
    yield (
        "planezip",
        (
            lambda data: pz.encode(np.frombuffer(data, dtypes.dtype_of(dtype))),
            lambda c, n: pz.decode(c),
        ),
    )
    yield (
        "planezip size model",
        (lambda data: measure.wire_bytes(np.frombuffer(data, np.uint8), w), None),
    )
    if dtype in ("bfloat16", "float32"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import zipnn
        z = zipnn.ZipNN(bytearray_dtype=dtype, threads=1)
        yield "zipnn", (z.compress, lambda c, n: z.decompress(c))
    one = {"codec": blosc2.Codec.LZ4, "filters": [blosc2.Filter.BITSHUFFLE], "clevel": 1}
    blosc2.set_nthreads(1)
    yield (
        "blosc2 bitshuffle+lz4",
        (
            lambda data: blosc2.compress2(data, typesize=item, nthreads=1, **one),
            lambda c, n: blosc2.decompress2(c, nthreads=1),
        ),
    )
    yield "lz4", (lz4.block.compress, lambda c, n: lz4.block.decompress(c))
    zstd = zstandard.ZstdCompressor(1)
    yield "zstd-1", (zstd.compress, lambda c, n: zstandard.ZstdDecompressor().decompress(c))


def size_of(packed: Any) -> int:
    """Bytes of what a compressor returned."""
    if isinstance(packed, pz.Stream):
        return packed.wire_bytes
    return packed if isinstance(packed, int) else len(packed)


def touch(count: int) -> None:
    """Takes ``count`` bytes of memory for a moment.

    A virtual machine hands memory that was free for seconds back to its host; the first
    access then costs more than any codec here. What every codec allocates in its timing
    comes from the memory touched here, which has not been free for so long.
    """
    np.empty(count, np.uint8)[::4096] = 1


def seconds(function: Callable[..., object], *arguments: object) -> tuple[float, object]:
    """Processor time of a call, and its result."""
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def compare(dtype: str, data: bytes) -> list[dict[str, Any]]:
    """One row per codec."""
    every = dict(codecs(dtype))
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in every}
    wire: dict[str, int] = {}
    for compress, decompress in every.values():  # compile, fill caches
        small = compress(bytearray(data[:1_000_000]))
        if decompress:
            decompress(small, 1_000_000)
    for _ in range(ROUNDS):
        for name, (compress, decompress) in every.items():
            copy = bytearray(data)  # ZipNN reorders its input in place
            touch(4 * len(data))
            spent, packed = seconds(compress, copy)
            times[name][0].append(spent)
            wire[name] = size_of(packed)
            if decompress:
                back = None
                touch(4 * len(data))
                spent, back = seconds(decompress, packed, len(data))
                times[name][1].append(spent)
                if not np.array_equal(np.frombuffer(back, np.uint8), np.frombuffer(data, np.uint8)):
                    raise AssertionError(f"{name} does not return its input")
    return [
        {
            "dtype": dtype,
            "codec": name,
            "raw_bytes": len(data),
            "wire_bytes": wire[name],
            "ratio": len(data) / wire[name],
            "compress_mb_per_s": len(data) / statistics.median(times[name][0]) / 1e6,
            "decompress_mb_per_s": len(data) / statistics.median(times[name][1]) / 1e6
            if times[name][1]
            else None,
        }
        for name in every
    ]


def scaling(dtype: str, data: bytes) -> dict[str, Any]:
    """Speed-up of two threads over one: by the clock, and the limit by processor time.

    The limit is Amdahl's, from the calling thread's share of the processor time of all; cores that
    share a memory or a clock with others reach less.
    """
    array = np.frombuffer(data, dtypes.dtype_of(dtype))
    best: dict[tuple[str, int], float] = {}
    limits: dict[str, list[float]] = {"encode": [], "decode": []}
    for threads in (1, 2) * ROUNDS:
        touch(4 * len(data))
        stream = pz.encode(array)
        for name in limits:
            clocks = time.perf_counter, time.thread_time, time.process_time
            before = [clock() for clock in clocks]
            if name == "encode":
                pz.encode(array, threads=threads)
            else:
                pz.decode(stream, threads=threads)
            spent, own, every = (c() - b for c, b in zip(clocks, before, strict=True))
            best[name, threads] = min(spent, best.get((name, threads), spent))
            if threads == 2:
                limits[name].append(2 / (1 + own / every))
    return {
        "dtype": dtype,
        **{name: best[name, 1] / best[name, 2] for name in limits},
        **{f"{name}_limit": statistics.median(found) for name, found in limits.items()},
    }


MEMORY = """
import sys, numpy as np, planezip.model as pz
def status(key):
    line = next(x for x in open('/proc/self/status') if x.startswith(key))
    return int(line.split()[1]) * 1024
def above(function, kept):
    open('/proc/self/clear_refs', 'w').write('5')
    before = status('VmRSS')
    result = function()
    return status('VmHWM') - before - kept(result), result
count = int(sys.argv[1])
data = np.random.default_rng(0).normal(size=1 << 16).astype(np.float32)
data = np.tile(data, count // data.nbytes)
pz.decode(pz.encode(data[:4096], threads=2), threads=2)
pz.ratio(data[:4096])
encode, stream = above(lambda: pz.encode(data, threads=2), lambda s: s.wire_bytes)
decode, _ = above(lambda: pz.decode(stream, threads=2), lambda a: a.nbytes)
size, _ = above(lambda: pz.ratio(data), lambda r: 0)
print(encode, decode, size)
"""


def memory(count: int) -> dict[str, int]:
    """Peak memory above the warm process, input and output, in bytes; two threads."""
    run = [sys.executable, "-c", MEMORY, str(count)]
    encode, decode, size = subprocess.run(run, check=True, capture_output=True).stdout.split()
    return {"raw_bytes": count, "encode": int(encode), "decode": int(decode), "ratio": int(size)}


FIRST = """
import time, numpy as np, planezip.model as pz
start = time.process_time()
for name in ('float16', 'float32'):
    data = np.ones(5000, name)
    pz.decode(pz.encode(data))
    pz.sizes(data)
print(time.process_time() - start)
"""


def first_calls() -> dict[str, float]:
    """Processor seconds of the first calls ever, which compile; of later processes' too."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        run = [sys.executable, "-c", FIRST]
        compiled, loaded = (
            float(subprocess.run(run, check=True, capture_output=True, env=environment).stdout)
            for _ in range(2)
        )
    return {"all_compiled": compiled, "from_disk": loaded}


def report_line(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """Speed of a codec, and speed of encode, size model and decode over it."""
    encode, sizes = rows[0], rows[1]
    text = f"{row['dtype'] + ', ' + row['codec']:31}{row['ratio']:7.3f}"
    speed = row["compress_mb_per_s"]
    text += f"{speed:9.0f}{encode['compress_mb_per_s'] / speed:8.2f}x"
    text += f"{sizes['compress_mb_per_s'] / speed:8.2f}x"
    if row["decompress_mb_per_s"]:
        speed = row["decompress_mb_per_s"]
        text += f"{speed:11.0f}{encode['decompress_mb_per_s'] / speed:8.2f}x"
    return text


def main() -> None:
    rows, speedups = [], []
    print(f"{'':31}{'size':>7}{'compress,':>9}{'planezip':>9}{'sizes':>9}{'decompress,':>11}")
    print(f"{'dtype, codec':31}{'ratio':>7}{'MB/s':>9}{'over it':>9}{'over it':>9}{'MB/s':>11}")
    for dtype, sample in real_data().items():
        data = np.tile(sample, -(-LEAST_BYTES // sample.size)).tobytes()
        measured = compare(dtype, data)
        rows += measured
        print(*(report_line(row, measured) for row in measured), sep="\n", flush=True)
        if dtype in ("bfloat16", "float32"):
            speedups.append(scaling(dtype, data))
    for s in speedups:
        told = (
            f"{name} {s[name]:.2f}x by the clock, {s[f'{name}_limit']:.2f}x by processor time"
            for name in ("encode", "decode")
        )
        print(f"two threads, {s['dtype']}:", ", ".join(told))
    extra = [memory(count) for count in (1 << 26, 1 << 28)]
    for m in extra:
        print(
            f"memory beyond {m['raw_bytes'] >> 20} MB in and out, MB: encode "
            f"{m['encode'] / 1e6:.1f}, decode {m['decode'] / 1e6:.1f}, ratio {m['ratio'] / 1e6:.1f}"
        )
    first = first_calls()
    print(
        f"first calls of everything, processor seconds: {first['all_compiled']:.1f} to compile, "
        f"{first['from_disk']:.2f} in later processes"
    )
    file = ROOT / "build" / "bench" / "codec.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "version": 1,
        "machine": platform.processor() or platform.machine(),
        "source": "shared" if SHARED.exists() else "shipped sample, repeated",
        "rounds": ROUNDS,
        "codecs": rows,
        "two_threads": speedups,
        "memory_bytes": extra,
        "first_calls_seconds": first,
    }
    file.write_text(json.dumps(report, indent=1) + "\n")
    print(f"written: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
