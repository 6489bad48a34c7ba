# amaranth: UnusedElaboratable=no
"""The engine in one bench: compressed, over a link, decompressed; broken streams; modes."""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import pytest

from planezip.hdl.axi import AxiEngine
from planezip.hdl.engine import Engine
from planezip.model import encode_bytes
from planezip.model.format import DEFAULT, Parameters
from tb import marks
from tb.engine_runs import path_tensors, sent_back, slow, worst_cases
from tb.harness.faults import broken_tensors
from tb.harness.path import PathResult, PathStalls, build_path, run_path
from tb.harness.tensors import Tensor
from tb.run import DEFAULT_SEED, Sources

pytestmark = pytest.mark.skipif(
    os.environ.get("SIM") == "icarus", reason="the engine is built for Verilator only"
)
LANES = 2
CHUNK = 4096


@cache
def built() -> tuple[Path, Sources]:
    """The engine for Verilator; its Icarus build would take minutes."""
    return build_path(LANES)


def run(tensors: list[Tensor], name: str, **options: object) -> PathResult:
    result = run_path(LANES, built(), "verilator", tensors, name, **options)  # type: ignore[arg-type]
    assert not result.problems, "\n".join(result.problems)
    return result


@marks.slow
@pytest.mark.parametrize("stalls", [(0, 0, 0), (1, 2, 3), (2, 4, 1), (3, 1, 2)])
def test_whole_path(stalls: tuple[int, int, int]) -> None:
    """240 tensors of five element types over a link with stalls, all modes."""
    tensors = path_tensors(240, DEFAULT_SEED + sum(stalls))
    name = "path-" + "".join(map(str, stalls))
    result = run(tensors, name, stalls=PathStalls(*stalls))
    assert result.output.blocks > 3000


@marks.slow
def test_reset_in_the_middle() -> None:
    """Nothing is left of the tensors under way: all are sent again, and come as they should."""
    tensors = path_tensors(60, DEFAULT_SEED)
    for reset_at in (200, 1501):
        result = run(tensors, "reset", stalls=PathStalls(1, 2, 3), reset_at=reset_at)
        assert result.output.cycles > 1500


@marks.slow
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


@marks.slow
@pytest.mark.parametrize("case", worst_cases(DEFAULT_SEED))
def test_full_rate(case: str) -> None:
    """Both directions at once: 32 bytes per lane a cycle, whatever the lengths."""
    tensors = [Tensor("float32", data) for data in worst_cases(DEFAULT_SEED)[case]]
    result = run(tensors, f"rate-{case}", back=sent_back(tensors))
    assert not slow(result)
    for port in (result.input, result.output):
        assert port.activity["stream"] == 0
    blocks = result.input.blocks
    if case != "byte":  # a tensor of one block takes the splitter longer than its lane
        assert result.input.cycles <= 4 * blocks // LANES + CHUNK // 32
        assert result.output.cycles <= 4 * blocks // LANES + 2 * CHUNK // 32


@marks.slow
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
