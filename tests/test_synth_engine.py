# amaranth: UnusedElaboratable=no
"""Rows of the engine: netlists linked, on a circuit with two instances of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.instances import add
from planezip.synth import __main__ as command
from planezip.synth import engine, make_library, measure, timing
from planezip.synth.engine import ENGINES, Level, counts
from planezip.synth.flow import rtlil_text
from planezip.synth.library import read_libraries
from planezip.synth.modules import MODULES
from planezip.synth.nodes import node_of

pytest.importorskip("pyosys", reason="pyosys is not installed: nothing can be synthesised")


class _Inner(wiring.Component):
    """A product in a register."""

    def __init__(self) -> None:
        super().__init__({"a": In(6), "b": In(6), "product": Out(12)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.product.eq(self.a * self.b)
        return m


class _Outer(wiring.Component):
    """A product, one added to it, and the product of that."""

    def __init__(self) -> None:
        super().__init__({"a": In(6), "out": Out(12)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first: Any = add(m, _Inner(), "first", "planezip_inner")
        taken = Signal(6)
        second: Any = add(m, _Inner(), "second", "planezip_inner")
        m.d.sync += taken.eq(self.a)
        m.d.comb += [
            first.a.eq(taken),
            first.b.eq(3),
            second.a.eq(first.product + 1),
            second.b.eq(first.product[6:]),
            self.out.eq(second.product),
        ]
        return m


LEVELS = (
    Level("inner", "planezip_inner", lambda p: _Inner()),
    Level("outer", "planezip_outer", lambda p: _Outer()),
)


def test_linked_netlists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engine.ENGINES, "outer", (2, LEVELS))  # type: ignore[index]
    (library,) = read_libraries([make_library.FILE], tmp_path / "work")
    node = node_of(library)
    texts = [rtlil_text(level.make(command.DEFAULT), level.row) for level in LEVELS]
    common = (library, node, node.constraint(), tmp_path, ["area"])
    whole, cached = measure.measure_engine("outer", texts, *common)
    assert not cached
    assert measure.measure_engine("outer", texts, *common) == (whole, True)
    part, _ = measure.measure(
        "inner", texts[0], library, node, node.constraint(), tmp_path, None, ["area"]
    )
    assert whole.parts == {"inner": 2}
    assert whole.area_um2 == pytest.approx(2 * part.area_um2 + whole.own_um2, abs=0.02)
    assert whole.flip_flops == 2 * part.flip_flops + 6 == 30
    assert whole.own_um2 > 0
    assert whole.gb_per_s == pytest.approx(2 * 32 * whole.clock_ghz, abs=0.01)
    if timing.opensta():  # from the first one's register through the adder to the second one's
        assert (whole.path_start[:14], whole.path_end[:14]) == ("first/product_", "second/product")
        assert whole.path_ps > part.path_ps - 0.3 * 1500


def test_instances_are_counted() -> None:
    _, levels = ENGINES["axi_x2"]
    texts = [
        "",
        "",
        "cell \\planezip_compressor \\lane_0\n  cell \\planezip_compressor \\lane_1\n"
        "cell \\planezip_decompressor \\lane_0\ncell \\planezip_decompressor \\lane_1\n",
        "  cell \\planezip_engine \\engine\n",
    ]
    assert counts(levels, texts) == {
        "compressor": 2,
        "decompressor": 2,
        "engine_x2": 1,
        "axi_x2": 1,
    }


def test_engines_and_modules_have_names_of_their_own() -> None:
    assert not set(ENGINES) & set(MODULES)
