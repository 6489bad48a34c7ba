"""Overheads that the paper prints in Sections V-C to V-E, to stand beside ours."""

from __future__ import annotations

__all__ = ["CLAIMS", "overhead_percent"]

_MEAN_FIG4: dict[tuple[str, int], dict[str, float]] = {
    ("A", 50): {
        "RECOMP": 14.1,
        "SWAP": 180.0,
        "DTE": 13.3,
        "BW": 6.7,
        "BW+ZVC": 4.1,
        "PlaneZip": 3.5,
    },
    ("B", 50): {
        "RECOMP": 19.6,
        "SWAP": 410.0,
        "DTE": 19.6,
        "BW": 13.0,
        "BW+ZVC": 10.5,
        "PlaneZip": 9.0,
    },
    ("A", 30): {"DTE": 24.4, "BW": 17.4, "BW+ZVC": 14.7, "PlaneZip": 12.2},
    ("B", 30): {"DTE": 41.7, "BW": 33.2, "BW+ZVC": 30.1, "PlaneZip": 23.7},
}
_MODEL_FIG4: dict[tuple[str, str, int], dict[str, float]] = {
    ("densenet121", "B", 50): {"BW": 27.0, "PlaneZip": 17.0},
    ("gpt2", "B", 30): {"BW": 46.0, "PlaneZip": 28.0},
    ("vit_b16", "A", 50): {"BW": 1.0},
}
_FIG5: dict[str, dict[str, float]] = {
    "A": {
        "DTE": 24.4,
        "DTE+compression": 21.3,
        "BW": 17.4,
        "unaware": 17.1,
        "BW+ZVC": 14.7,
        "PlaneZip-32": 12.2,
        "op-type": 12.7,
        "PlaneZip": 12.2,
        "oracle": 12.2,
    },
    "B": {
        "DTE": 41.7,
        "DTE+compression": 30.6,
        "BW": 33.2,
        "unaware": 33.0,
        "BW+ZVC": 30.1,
        "PlaneZip-32": 24.2,
        "op-type": 24.8,
        "PlaneZip": 23.7,
        "oracle": 23.7,
    },
}
_FIG6: dict[tuple[str, int], dict[str, float]] = {
    ("fig6a", 12): {"BW": 16.1, "PlaneZip": 12.0},
    ("fig6a", 24): {"BW": 13.0, "PlaneZip": 7.3},
    ("fig6b", 24): {"BW": 13.0, "PlaneZip": 13.0},
    ("fig6b", 64): {"BW": 13.0, "PlaneZip": 9.0},
    ("fig6b", 96): {"BW": 13.0, "PlaneZip": 7.3},
}

CLAIMS: dict[str, dict[str, float]] = {
    "cut of BW's overhead at 50% (%)": {"A": 47, "B": 31},
    "cut of DTE's overhead at 50% (%)": {"A": 73, "B": 54},
    "BW's cut of DTE's overhead at 50% (%)": {"A": 50, "B": 33},
    "budget for 5% overhead, PlaneZip (%)": {"A": 43, "B": 59},
    "budget for 5% overhead, BW (%)": {"A": 54, "B": 67},
    "budget for 5% overhead, DTE (%)": {"A": 64, "B": 75},
    "gain of DenseNet-121 at 50% (points)": {"B": 11},
    "gain of EffNet-B0 at 50% (points)": {"B": 1.5},
    "BW above PlaneZip at 30% (points)": {"A": 5.2, "B": 9.5},
    "BW above the codec on its plan at 30% (points)": {"A": 0.3, "B": 0.2},
    "DTE + compression above PlaneZip at 30% (points)": {"A": 9.1, "B": 6.9},
    "GPT-2's part of DTE's gain (%; paper: more than)": {"A": 50, "B": 50},
    "gain kept with ZVC at 30% (%)": {"A": 52, "B": 33},
    "32-bit symbols above PlaneZip at 30% (points)": {"B": 0.5},
    "operator types above PlaneZip at 30% (points)": {"A": 0.5, "B": 1.1},
    "bytes swapped over BW's at 30% (x)": {"A": 1.5, "B": 2.1},
    "less recomputation than BW at 30% (%)": {"A": 30, "B": 31},
    "largest stall of PlaneZip at 30% (%; paper: at most)": {"A": 1.1, "B": 1.1},
    "gain at a link of 24 GB/s (points)": {"B": 5.7},
    "gain at a link of 48 GB/s (points)": {"B": 6.4},
    "larger overhead at 192 GB/s (%; paper: at most)": {"B": 0.4},
}
"""Derived figures of Sections V-C to V-E, by platform; "halves" is 50, "a third" 33."""


def overhead_percent(
    figure: str, model: str, platform: str, budget_percent: int, policy: str, rate: int = 0
) -> float | None:
    """The printed overhead, or None where the text has none.

    Parameters
    ----------
    model : str
        A workload, or ``mean`` over the five.
    rate : int
        GB/s of the link (Fig. 6a) or the engine (Fig. 6b).
    """
    if figure == "fig4":
        printed = _MODEL_FIG4.get((model, platform, budget_percent), {})
        if model == "mean":
            printed = _MEAN_FIG4.get((platform, budget_percent), {})
        return printed.get(policy)
    if model != "mean":
        return None
    if figure == "fig5":
        return _FIG5[platform].get(policy)
    return _FIG6.get((figure, rate), {}).get(policy)
