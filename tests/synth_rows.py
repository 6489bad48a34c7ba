"""Made-up rows and points of a synthesis report."""

from __future__ import annotations

from planezip.synth import sweep, variants
from planezip.synth.measure import Row

__all__ = ["made_up_points", "made_up_row"]


def made_up_row(name: str, area: float, path_ps: float, ghz: float) -> Row:
    return Row(
        name=name,
        library="made_up",
        corner="typical 1 V 25 C",
        node_nm=45,
        constraint_ps=1500.0,
        mapping="area",
        area_um2=area,
        kge=area / 1000,
        flip_flops=1,
        clock_gates=0,
        cells=2,
        sram_bits=10,
        sram_um2=9.0,
        total_um2=area + 9,
        path_ps=path_ps,
        path_start="a",
        path_end="b",
        path_with_wires_ps=None,
        abc_ps=path_ps,
        met=True,
        timing_method="none",
        clock_ghz=ghz,
        clock_with_wires_ghz=None,
        gb_per_s=32 * ghz,
        gb_per_s_per_mm2=None,
        kge_per_bit_per_cycle=None,
        power_mw=None,
        power_method=None,
        own_um2=area,
        parts={},
    )


def made_up_points() -> list[sweep.Point]:
    rows, ratio = {}, {}
    for k, variant in enumerate(variants.VARIANTS):
        rows[variant, "compressor"] = made_up_row("compressor", 60.0 - k, 1400.0, 0.6)
        rows[variant, "decompressor"] = made_up_row("decompressor", 40.0, 1410.0, 0.5)
        ratio[variant] = {"bfloat16": 2.0 * 0.9**k, "float32": 1.5}
    return sweep.points(rows, ratio, dict.fromkeys(variants.VARIANTS, "bench"))
