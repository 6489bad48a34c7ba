"""Derived figures and deviations from made-up rows, by hand; variants of the ratios."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import planezip.sim
from planezip.sim.build_graph import build_graph
from planezip.sim.claims import claims, deviations, index
from planezip.sim.graph import Graph
from planezip.sim.measurements import shipped_ratios
from planezip.sim.paper import FIG_3, MODELS
from planezip.sim.paper_eval import CLAIMS
from planezip.sim.platform import load_platform
from planezip.sim.results import markdown
from planezip.sim.shipped import shipped_trace
from planezip.sim.sizes import paper_sizes
from planezip.sim.variants import VARIANTS, variant_sizes

OVERHEADS = {"RECOMP": 20.0, "SWAP": 400.0, "DTE": 20.0, "BW": 10.0, "BW+ZVC": 8.0, "PlaneZip": 6.0}


def row(
    model: str, platform: str, budget: int, policy: str, overhead: float, **more: Any
) -> dict[str, Any]:
    return {
        "figure": "fig4",
        "model": model,
        "platform": platform,
        "budget_percent": budget,
        "policy": policy,
        "ratios": "paper",
        "reading": "",
        "link_gb_per_s": {"A": 12.0, "B": 24.0}[platform],
        "engine_gb_per_s": 64.0,
        "overhead_percent": overhead,
        "paper_percent": None,
        "replay_percent": overhead,
        "stall_percent": 0.5,
        "swapped_bytes": 300 if policy == "PlaneZip" else 100,
        "plan": "raw" if policy == "BW" or budget == 90 else "compressed",
        **more,
    }


def figure_4() -> list[dict[str, Any]]:
    """Overheads that fall by straight lines from 30% to 90%."""
    rows = []
    for platform in "AB":
        for budget in range(30, 100, 10):
            for policy, most in OVERHEADS.items():
                overhead = most * (90 - budget) / 60
                rows += [row(m, platform, budget, policy, overhead) for m in (*MODELS, "mean")]
    return rows


def test_claims_by_hand() -> None:
    found = {(c["claim"], c["platform"]): c["ours"] for c in claims(index(figure_4()), "paper")}
    assert found["cut of BW's overhead at 50% (%)", "A"] == pytest.approx(40)
    assert found["cut of DTE's overhead at 50% (%)", "B"] == pytest.approx(70)
    assert found["gain kept with ZVC at 30% (%)", "B"] == pytest.approx(50)
    assert found["bytes swapped over BW's at 30% (x)", "A"] == pytest.approx(3)
    assert found["less recomputation than BW at 30% (%)", "B"] == pytest.approx(40)
    assert found["largest stall of PlaneZip at 30% (%; paper: at most)", "A"] == 0.5
    assert found["budget for 5% overhead, BW (%)", "A"] == pytest.approx(60)
    assert found["BW above PlaneZip at 30% (points)", "B"] == pytest.approx(4)
    assert found["configurations where DTE is RECOMP", "A+B"] == 70
    assert found["configurations with a compression-aware plan", "A+B"] == 60
    assert not any("link" in name or "operator types" in name for name, _ in found)


def test_every_claim_has_a_formula() -> None:
    extra = [
        row(m, p, 30, policy, 12.0)
        for m in (*MODELS, "mean")
        for p in "AB"
        for policy in ("unaware", "DTE+compression", "PlaneZip-32", "op-type")
    ]
    rates = [
        row("mean", "B", 50, policy, 3.0, link_gb_per_s=link, engine_gb_per_s=4 * link)
        for link in (24, 48, 192)
        for policy in ("BW", "PlaneZip")
    ]
    names = {c["claim"] for c in claims(index([*figure_4(), *extra, *rates]), "paper")}
    assert names >= set(CLAIMS)


def test_deviations_name_the_nearest_reading() -> None:
    fig4 = figure_4()
    for r in fig4:
        if (r["model"], r["platform"], r["budget_percent"]) == ("mean", "B", 50):
            r["paper_percent"] = {"PlaneZip": 6.2, "BW": 7.0, "SWAP": 1000.0}.get(r["policy"])
    # what brings it to 6.2, but BW to 9.0 for 7.0, is no explanation
    refuted = {"PlaneZip": 6.2, "BW": 9.0}
    readings = [
        row("mean", "B", 50, p, v, figure="sensitivity", reading="charged once")
        for p, v in refuted.items()
    ]
    readings[1]["paper_percent"] = 7.0
    readings += [
        row("mean", "B", 50, "PlaneZip", value, figure="sensitivity", reading=reading)
        for reading, value in (("no setup", 4.1), ("ratios per tensor", 5.0))
    ]
    found: dict[str, list[dict[str, Any]]] = {"fig4": fig4, "fig5": [], "fig6": []}
    found |= {"sensitivity": readings, "claims": claims(index(fig4), "paper")}
    rows = deviations(found)
    # PlaneZip 4.0 for 6.2; BW's 6.7 for 7.0 is near enough, SWAP is not judged
    overhead = [r for r in rows if "claim" not in r and r["figure"].startswith("mean")]
    assert [(r["figure"], r["ours"], r["reading"], r["with_reading"]) for r in overhead] == [
        ("mean, PlaneZip at 50% (%)", 4.0, "ratios per tensor", 5.0)
    ]
    # 1 - 5.0 / 6.67 with that reading; a reading of the plan alone has no claims of its own
    cut = next(r for r in rows if r["figure"].startswith("cut of BW's") and r["platform"] == "B")
    assert (cut["ours"], cut["paper"]) == (pytest.approx(40), 31)
    assert (cut["reading"], cut["with_reading"]) == ("ratios per tensor", pytest.approx(25))
    data = {"format": "planezip-eval", "version": 1, "rows": rows}
    schema = Path(planezip.sim.__file__).parent / "schemas/eval.json"
    jsonschema.validate(data, json.loads(schema.read_text("utf-8")))
    text = markdown({**found, "deviations": rows, "discussion": [], "optimum": OPTIMUM})
    assert "| mean, PlaneZip at 50% (%) | B | paper | 4.0 | 6.2 | ratios per tensor | 5.0 |" in text


OPTIMUM = [{"optimum_ns": 10, "portfolio_ns": 11, "keeping_ns": 10}]


@pytest.fixture(scope="module", params=["A", "B"])
def densenet(request: pytest.FixtureRequest) -> Graph:
    return build_graph(shipped_trace("densenet121"), load_platform(request.param))


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_keep_the_totals(densenet: Graph, variant: str) -> None:
    raw, preset = densenet.tensor_bytes, paper_sizes(densenet, "densenet121").planned
    sizes = variant_sizes(densenet, "densenet121", variant)
    if sizes is None:
        assert (variant, densenet.platform.name) == ("other labels", "B")
        return
    assert any((wire != preset[codec]).any() for codec, wire in sizes.planned.items())
    for codec, wire in sizes.planned.items():
        assert ((wire > 0) & (wire <= raw)).all()
        other = variant == "other labels" and codec != "ZVC"
        total = raw.sum() / 1.57 if other else preset[codec].sum()
        assert wire.sum() == pytest.approx(total, rel=0.002)


def test_fp32_labels_are_in_the_order_of_our_captures() -> None:
    expected = {}
    for name in ("densenet121", "gpt2", "resnet50"):
        states = ("random", "trained" if name == "gpt2" else "short")
        pairs = []
        for state in states:
            half, full = (shipped_ratios(f"{name}_{state}", t) for t in ("bfloat16", "float32"))
            assert half is not None
            assert full is not None
            pairs.append((half.ratio(), full.ratio()))
        (x, y), (u, v) = pairs
        expected[name] = y + (v - y) / (u - x) * (FIG_3["bfloat16"][name] - x)
    order = sorted(expected, key=lambda name: -expected[name])
    labels = FIG_3["float32"]
    assert order == sorted(expected, key=lambda name: -labels[name])
    assert [round(expected[name], 2) for name in order] == [1.64, 1.58, 1.54]
