"""Fig. 1, from the shipped traces to the printed digit, and by hand on a small trace."""

from __future__ import annotations

import pytest

from planezip.sim.motivation import (
    CostRatio,
    cost_ratios,
    movable_share,
    share_above,
    weighted_median,
)
from planezip.sim.platform import Platform, load_platform
from planezip.sim.shipped import shipped_trace
from planezip.sim.trace import Kind, Op, Phase, Storage, Trace

FIVE = ("resnet50", "densenet121", "efficientnet_b0", "vit_b16", "gpt2")


@pytest.mark.parametrize(("name", "median", "above"), [("A", 10.1, 95.0), ("B", 12.6, 100.0)])
def test_fig_1a(name: str, median: float, above: float) -> None:
    platform = load_platform(name)
    ratios = [r for model in FIVE for r in cost_ratios(shipped_trace(model), platform)]
    assert round(weighted_median(ratios), 1) == median
    assert round(100 * share_above(ratios), 1) == above
    assert share_above(ratios) > (0.999 if name == "B" else 0.949)


@pytest.mark.parametrize(("name", "least", "most"), [("A", 7, 37), ("B", 6, 12)])
def test_fig_1b(name: str, least: int, most: int) -> None:
    platform = load_platform(name)
    shares = [100 * movable_share(shipped_trace(model), platform) for model in FIVE]
    assert (round(min(shares)), round(max(shares))) == (least, most)


# 1 B/s memory and link, no math: an operator takes 1 s plus a second per byte it touches
SLOW = Platform("slow", 4, 10**12, 100, 1, 100, 1, launch_ns=10**9)


def small() -> Trace:
    """Input; a (saved), b (not saved) from a; c (saved) from b, then changed in place."""
    ops = (
        Op("a", Phase.FORWARD, float_elements=1, reads=(0,), writes=(1,)),
        Op("b", Phase.FORWARD, float_elements=2, reads=(1,), writes=(2,)),
        Op("c", Phase.FORWARD, float_elements=3, reads=(2,), writes=(3,)),
        Op("view", Phase.FORWARD, reads=(3,), view=True),
        Op("c_", Phase.FORWARD, float_elements=4, reads=(3,), writes=(3,)),
        Op("back", Phase.BACKWARD, float_elements=5, reads=(0, 1, 3), writes=(4,)),
    )
    activation = Kind.ACTIVATION
    storages = (
        Storage(8, "float32", Kind.INPUT, -1, 0, 5),
        Storage(40, "float32", activation, 0, 0, 5),
        Storage(40, "float32", activation, 1, 0, 2),
        Storage(80, "float32", activation, 2, 0, 5),
        Storage(8, "float32", Kind.GRADIENT, 5, 0, 5),
    )
    return Trace("small", 1, ops, storages)


def test_cost_ratios_by_hand() -> None:
    # a: 40 s over a (1 + 4 s); c: 80 s over b, c, c_ (9 + 13 + 17 s), since a is resident
    assert cost_ratios(small(), SLOW) == [CostRatio(1, 40, 40 / 5), CostRatio(3, 80, 80 / 39)]


def test_movable_share_by_hand() -> None:
    # backward 21 s is the shorter; 128 bytes are saved
    assert movable_share(small(), SLOW) == pytest.approx(21 / 128)
    # forward 44 s and a launch for the view, when the backward pass is longer
    trace = small()
    longer = (
        *trace.ops[:-1],
        Op("back", Phase.BACKWARD, float_elements=50, reads=(0, 1, 3), writes=(4,)),
    )
    trace = Trace("small", 1, longer, trace.storages)
    assert movable_share(trace, SLOW) == pytest.approx(45 / 128)
    assert movable_share(trace, SLOW, view_launches=False) == pytest.approx(44 / 128)


def test_weighted_median_and_share() -> None:
    ratios = [CostRatio(0, 10, 3.0), CostRatio(1, 50, 0.5), CostRatio(2, 45, 2.0)]
    assert weighted_median(ratios) == 2.0
    assert share_above(ratios) == pytest.approx(55 / 105)
