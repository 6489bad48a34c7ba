# amaranth: UnusedElaboratable=no
"""Plane classes against the reference codec, every width in one run, with idle cycles."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.plane_status import PlaneStatus, block_classes, classes, status_beat
from planezip.hdl.summary import PlaneClass
from planezip.model.format import DEFAULT, Parameters, Tag
from planezip.model.reference import split_symbols
from tb.bench import Bench
from tb.blocks import test_blocks
from tb.layouts import unpack
from tb.marks import sampled, sizes
from tb.run import run_bench
from tb.test_delta import block_deltas

GEOMETRIES = [
    (DEFAULT, 4),
    (Parameters(64, (4, 8, 16), 2), 4),
    (Parameters(16, (4, 8), 2), 2),
    (Parameters(8, (8,), 2), 1),
]
CODED = {"dbx": [Tag.DBX], "bx": [Tag.BX], "zbx": [Tag.ZBX], "both": [Tag.BX, Tag.ZBX]}


def status_beats(
    block: bytes, width: int, p: Parameters, beats: int, dbx: bool
) -> list[dict[str, int]]:
    """Beats of one block as :class:`PlaneStatus` takes them."""
    w, narrow = p.symbol_bits[width], p.symbol_bits[0]
    keep = 0
    for k, symbol in enumerate(split_symbols(block, w)):
        if k if dbx else symbol:
            keep |= ((1 << (w // narrow)) - 1) << (k * w // narrow)
    size = p.block_bits // beats
    parts = size // narrow
    number = int.from_bytes(block, "little")
    made = block_deltas(block, width, p, beats)
    for k, beat in enumerate(made):
        beat["keep"] = keep >> (k * parts) & ((1 << parts) - 1)
        if not dbx:
            beat["data"], beat["tops"] = number >> (k * size) & ((1 << size) - 1), 0
    return made


def expected_classes(tag: Tag, block: bytes, w: int, p: Parameters) -> dict[str, Any]:
    """Classes as in the hardware's layout."""
    planes = block_classes(tag, split_symbols(block, w), w)
    extra = planes.pop(0) if tag == Tag.DBX else PlaneClass.VERBATIM
    return {"extra": extra, "planes": planes + [PlaneClass.VERBATIM] * (p.symbol_bits[-1] - w)}


@cocotb.test()
async def classes_of_planes(dut: Any) -> None:
    bench = Bench(dut)
    p, beats = bench.arguments["parameters"], bench.arguments["beats"]
    tags = [Tag(t) for t in bench.arguments["tags"]]
    source = bench.source("beats", status_beat(p, beats), bench.arguments["pause"])
    await bench.reset()
    blocks = [
        (width, block)
        for width, w in enumerate(p.symbol_bits)
        for block in test_blocks(bench.rng, bench.arguments["blocks"], w, p)
    ]
    bench.rng.shuffle(blocks)
    for width, block in blocks:
        source.extend(status_beats(block, width, p, beats, Tag.DBX in tags))
    seen = 0
    while seen < len(blocks):
        assert await bench.until(lambda: int(dut.valid.value) == 1, 100), f"{seen} results only"
        bits = int(dut.results.value)
        width, block = blocks[seen]
        for tag in tags:
            size = classes(p).size
            actual = unpack(classes(p), bits & ((1 << size) - 1))
            bits >>= size
            w = p.symbol_bits[width]
            assert actual == expected_classes(tag, block, w, p), (tag, seen, w, block.hex())
        seen += 1
        assert (
            bench.cycle - 2 == source.times[seen * beats - 1] or bench.arguments["pause"] != "never"
        )
        await bench.step()


@pytest.mark.parametrize("tags", sampled(CODED, "both"))
@sizes(GEOMETRIES)
def test_plane_status(parameters: Parameters, beats: int, tags: str) -> None:
    component = PlaneStatus(parameters, beats, frozenset(CODED[tags]))
    arguments = {"parameters": parameters, "beats": beats, "tags": CODED[tags], "blocks": 100}
    pause = "never" if tags == "both" else "random"
    arguments["pause"] = pause
    assert run_bench(component, __name__, arguments=arguments, flatten=True) == 1


def test_encodings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"encodings must be {DBX}, or BX, ZBX or both"):
        PlaneStatus(encodings=frozenset({Tag.DBX, Tag.BX}))
