"""The engine in one bench: compressed, over a link, decompressed; broken streams; modes."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from planezip.hdl.axi import AxiEngine
from planezip.hdl.engine import Engine
from planezip.model import encode_bytes
from planezip.model.format import DEFAULT, Parameters
from tb.harness.faults import broken_tensors
from tb.harness.path import PathResult, PathStalls, build_path, run_path
from tb.harness.sets import Sets
from tb.harness.tensors import Tensor
from tb.run import DEFAULT_SEED, Sources

LANES = 2
CHUNK, BLOCK = 4096, 128
FIVE = ("bfloat16", "float16", "float32", "int64", "uint8")
LENGTHS = (0, 1, 31, 64, 128, 129, 4095, 4096, 4097, 5000, 8192, 12_300)


@cache
def built() -> tuple[Path, Sources]:
    """The engine for Verilator; its Icarus build would take minutes."""
    return build_path(LANES)


def run(tensors: list[Tensor], name: str, **options: object) -> PathResult:
    result = run_path(LANES, built(), "verilator", tensors, name, **options)  # type: ignore[arg-type]
    assert not result.problems, "\n".join(result.problems)
    return result


def sets(dtypes: tuple[str, ...], count: int, seed: int) -> list[Tensor]:
    """``count`` tensors of mixed lengths, element types in turn."""
    rng = random.Random(seed)
    blocks = {w: Sets(seed).generated(w, 600) for w in (16, 32)}
    made = []
    for k in range(count):
        dtype = dtypes[k % len(dtypes)]
        w = 16 if dtype in ("bfloat16", "float16") else 32
        pool = rng.choice(blocks[w]).data
        size = rng.choice((*LENGTHS, rng.randrange(20_000)))
        at = rng.randrange(max(1, len(pool) - size))
        data = (pool[at:] + pool)[:size].ljust(size, b"\1")
        mode = rng.choice(("stream",) * 6 + ("bypass", "measure"))
        made.append(Tensor(dtype, data, mode))
    return made


@pytest.mark.parametrize("stalls", [(0, 0, 0), (1, 2, 3), (2, 4, 1), (3, 1, 2)])
def test_whole_path(stalls: tuple[int, int, int]) -> None:
    """240 tensors of five element types over a link with stalls, all modes."""
    tensors = sets(FIVE, 240, DEFAULT_SEED + sum(stalls))
    name = "path-" + "".join(map(str, stalls))
    result = run(tensors, name, stalls=PathStalls(*stalls))
    assert result.output.blocks > 3000


def test_broken_streams() -> None:
    """The error of each stream in its completion, zeros in its place, the next one untouched."""
    back = [tensor for w in (16, 32) for tensor in broken_tensors(DEFAULT_SEED, w, 60)]
    extra = Tensor("float32", b"", "stream", b"more")
    nothing = Tensor("float32", bytes(2 * CHUNK), "stream", b"")
    back = [extra, nothing, *back, nothing, extra, Tensor("int8", b"\5")]
    random.Random(DEFAULT_SEED).shuffle(back)
    for stalls in ((0, 0, 0), (1, 2, 3)):
        name = f"broken-{''.join(map(str, stalls))}"
        run([Tensor("float32", bytes(300))], name, stalls=PathStalls(*stalls), back=back)


def test_full_rate() -> None:
    """Both directions at once: 32 bytes per lane a cycle, whatever the lengths."""
    rng = random.Random(DEFAULT_SEED)
    cases = {
        "noise": [rng.randbytes(40 * CHUNK), rng.randbytes(33 * CHUNK + 1)],
        "zeros": [bytes(40 * CHUNK)] * 2,
        "chunk and a byte": [rng.randbytes(CHUNK + 1) for _ in range(40)],
        "chunk, byte": [rng.randbytes(size) for _ in range(40) for size in (CHUNK, 1)],
        "block, block, chunk": [
            rng.randbytes(size) for _ in range(40) for size in (BLOCK, BLOCK, CHUNK)
        ],
    }
    for name, parts in cases.items():
        tensors = [Tensor("float32", data) for data in parts]
        back = [Tensor("float32", data, "stream", encode_bytes(data, 32)) for data in parts]
        result = run(tensors, name.replace(" ", "-").replace(",", ""), back=back)
        for port in (result.input, result.output):
            assert port.late <= CHUNK // 32, name
            bubbles = port.cycles - port.activity["move"]
            assert bubbles == sum(port.activity.values()) - port.activity["move"]
            assert port.activity["queue"] == port.activity["stream"] == 0, name


def test_measure_does_not_wait() -> None:
    """Tensors that are measured pass while the output of the engine never moves."""
    tensors = [
        Tensor("bfloat16", random.Random(k).randbytes(CHUNK * k), "measure") for k in range(9)
    ]
    back = [Tensor("float32", bytes(9000), "measure", encode_bytes(bytes(9000), 32))]
    result = run(tensors, "measure", stalls=PathStalls(output=7), back=back)
    assert result.output.blocks == 0


@pytest.mark.parametrize("component", [Engine, AxiEngine])
@pytest.mark.parametrize(
    ("parameters", "lanes", "error", "text"),
    [
        (DEFAULT, 3, ValueError, "lanes must be 1, 2 or 4, not 3"),
        (DEFAULT, "2", TypeError, "lanes must be an integer, not '2'"),
        (Parameters(8, (8,), 4), 2, ValueError, "parameters must have blocks of 1024 bits"),
        ("paper", 2, TypeError, "parameters must be a Parameters object, not 'paper'"),
    ],
)
def test_arguments(
    component: type, parameters: object, lanes: object, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        component(parameters, lanes)
