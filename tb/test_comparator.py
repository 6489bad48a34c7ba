"""Comparator against ``min``, with many ties."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from cocotb.triggers import Timer

from planezip.hdl.comparator import Comparator, largest_size, size_bits, smallest
from planezip.model.format import ALL_ENCODINGS, DEFAULT, TAG_BITS, Parameters, Tag
from tb.bench import Bench
from tb.layouts import pack
from tb.places import ROOT
from tb.run import run_bench

SUBSETS = [ALL_ENCODINGS, frozenset({Tag.RAW, Tag.BX}), frozenset({Tag.RAW, Tag.ZVC, Tag.ZBX})]


@cocotb.test()
async def smallest_wins(dut: Any) -> None:
    bench = Bench(dut)
    p = bench.arguments["parameters"]
    raw = TAG_BITS + p.block_bits
    layout = Comparator(p).sizes.shape()
    winners = set()
    for _ in range(500):
        pool = [bench.rng.randint(1, largest_size(p)) for _ in range(2)]
        pool += [raw - 1, raw, raw + 1][: bench.rng.randint(0, 3)]
        sizes = {tag: bench.rng.choice(pool) for tag in p.encodings}
        sizes[Tag.RAW] = raw
        dut.sizes.value = pack(layout, {t.name: s for t, s in sizes.items() if t != Tag.RAW})
        await Timer(1, unit="ns")
        tag = smallest(sizes)
        assert (int(dut.tag.value), int(dut.bits.value)) == (tag, sizes[tag]), (bench.seed, sizes)
        winners.add(tag)
    assert winners == p.encodings


@pytest.mark.parametrize("encodings", SUBSETS, ids=lambda e: "-".join(t.name for t in sorted(e)))
def test_comparator(encodings: frozenset[Tag]) -> None:
    p = Parameters(encodings=encodings)
    assert run_bench(Comparator(p), __name__, arguments={"parameters": p}) == 1


def test_sizes_fit() -> None:
    assert size_bits(DEFAULT) == 11


def test_waveform_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WAVES", "1")
    parameters = Parameters()
    run_bench(Comparator(parameters), __name__, arguments={"parameters": parameters})
    line = capsys.readouterr().out.strip()
    assert line.startswith("waveform: build/sim/")
    assert (ROOT / line.removeprefix("waveform: ")).stat().st_size > 0
