"""Tables of the evaluation as Markdown, ours beside the paper's."""

from __future__ import annotations

from typing import Any

from planezip.sim.claims import index, row_key
from planezip.sim.policies import ABLATIONS, POLICIES

__all__ = ["markdown"]

Row = dict[str, Any]


def markdown(found: dict[str, list[Row]]) -> str:
    """All tables, from the rows that :mod:`planezip.sim.eval` writes."""
    parts = _deviations(found["deviations"])
    for ratios in ("paper", "captured"):
        for budget in (50, 30):
            title = f"Mean overhead at {budget}%, ratios: {ratios} (build/eval/fig4.json)"
            parts += _table(title, _means(found["fig4"], ratios, budget), list(POLICIES))
        title = f"Ablation at 30%, ratios: {ratios} (build/eval/fig5.json)"
        parts += _table(title, _means(found["fig5"], ratios, 30), list(ABLATIONS))
    parts += _models(found["fig4"])
    parts += _rates(found["fig6"])
    parts += _claims(found["claims"])
    parts += _sensitivity(found["sensitivity"], [found[f] for f in ("fig4", "fig5", "fig6")])
    parts += _discussion(found["discussion"])
    parts += _optimum(found["optimum"])
    return "\n".join(parts) + "\n"


def _means(rows: list[Row], ratios: str, budget: int) -> dict[tuple[str, str], Row]:
    return {
        (r["platform"], r["policy"]): r
        for r in rows
        if (r["model"], r["ratios"], r["budget_percent"]) == ("mean", ratios, budget)
    }


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _pair(row: Row | None) -> list[str]:
    """Ours, the paper's and the difference."""
    if row is None:
        return ["-", "-", "-"]
    ours, paper = row["overhead_percent"], row["paper_percent"]
    both = ours is not None and paper is not None
    return [_number(ours), _number(paper), f"{ours - paper:+.1f}" if both else "-"]


def _table(title: str, rows: dict[tuple[str, str], Row], policies: list[str]) -> list[str]:
    if not rows:
        return []
    lines = [f"### {title}", "", "| policy | A | paper | diff | B | paper | diff |"]
    lines.append("|---|---|---|---|---|---|---|")
    for policy in policies:
        cells = _pair(rows.get(("A", policy))) + _pair(rows.get(("B", policy)))
        if set(cells) != {"-"}:
            lines.append(f"| {policy} | {' | '.join(cells)} |")
    return [*lines, ""]


def _models(rows: list[Row]) -> list[str]:
    """Overhead of each model at 50% and 30%."""
    lines = [
        "### Overhead per model, ratios: paper, and captured where all states exist "
        "(build/eval/fig4.json)",
        "",
        "| model | platform | budget | ratios | " + " | ".join(POLICIES) + " | printed |",
        "|---|---|---|---|" + "---|" * (len(POLICIES) + 1),
    ]
    groups: dict[tuple[str, str, int, str], dict[str, Row]] = {}
    for r in rows:
        if r["budget_percent"] in (30, 50) and r["model"] != "mean":
            key = (r["model"], r["platform"], r["budget_percent"], r["ratios"])
            groups.setdefault(key, {})[r["policy"]] = r
    for (model, platform, budget, ratios), found in sorted(groups.items()):
        cells = [_number(found[p]["overhead_percent"]) if p in found else "-" for p in POLICIES]
        printed = [
            f"{p} {_number(r['paper_percent'])}" for p, r in found.items() if r["paper_percent"]
        ]
        lines.append(
            f"| {model} | {platform} | {budget}% | {ratios} | {' | '.join(cells)} "
            f"| {', '.join(printed)} |"
        )
    return [*lines, ""]


def _rates(rows: list[Row]) -> list[str]:
    lines = [
        "### Sensitivity on platform B at 50%: link (6a) and engine (6b) (build/eval/fig6.json)",
        "",
        "| figure | link GB/s | engine GB/s | policy | ours | paper | diff |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        if r["model"] == "mean":
            lines.append(
                f"| {r['figure']} | {r['link_gb_per_s']:.0f} | {r['engine_gb_per_s']:.0f} "
                f"| {r['policy']} | {' | '.join(_pair(r))} |"
            )
    return [*lines, ""]


def _claims(rows: list[Row]) -> list[str]:
    lines = [
        "### Derived figures of Sections V-C to V-E (build/eval/claims.json)",
        "",
        "| figure | ratios | platform | ours | paper |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['claim']} | {r['ratios']} | {r['platform']} | {r['ours']:.1f} | {r['paper']} |"
        for r in rows
    ]
    return [*lines, ""]


def _sensitivity(rows: list[Row], figures: list[list[Row]]) -> list[str]:
    """Each reading taken the other way, beside the chosen one and the paper."""
    lines = [
        "### Open choices taken the other way: mean overhead (build/eval/sensitivity.json)",
        "",
        "| reading | platform | budget | policy | ours with it | as chosen | paper |",
        "|---|---|---|---|---|---|---|",
    ]
    chosen = index(r for rows in figures for r in rows if r["ratios"] == "paper")
    for r in rows:
        if r["model"] == "mean":
            key = row_key(r)
            policy = r["policy"] if key[5] == 64 else f"{r['policy']}, engine {key[5]} GB/s"
            values = (
                r["overhead_percent"],
                chosen[key]["overhead_percent"],
                r["paper_percent"],
            )
            lines.append(
                f"| {r['reading']} | {r['platform']} | {r['budget_percent']}% | {policy} "
                f"| {' | '.join(map(_number, values))} |"
            )
    return [*lines, ""]


def _discussion(rows: list[Row]) -> list[str]:
    lines = [
        "### Further figures of Sections V-C and V-F (build/eval/discussion.json)",
        "",
        "| figure | ours | paper |",
        "|---|---|---|",
    ]
    lines += [f"| {r['figure']} | {r['ours']:.2f} | {_number(r['paper'], 2)} |" for r in rows]
    return [*lines, ""]


def _deviations(rows: list[Row]) -> list[str]:
    lines = [
        "### Printed numbers missed by more than 1.5 points or 15% (build/eval/deviations.json)",
        "",
        "| figure | platform | ratios | ours | paper | nearest with | then |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['figure']} | {r['platform']} | {r['ratios']} | {r['ours']:.1f} | {r['paper']:.1f} "
        f"| {r['reading'] or '-'} | {_number(r['with_reading'])} |"
        for r in rows
    ]
    return [*lines, ""]


def _optimum(rows: list[Row]) -> list[str]:
    """Gap of the planner to the exact optimum on small networks."""
    lines = [
        "### Small random networks: planner over exact optimum (build/eval/optimum.json)",
        "",
        "| plans | networks and budgets | optimum reached | mean gap % | largest gap % | missed |",
        "|---|---|---|---|---|---|",
    ]
    solvable = [r for r in rows if r["optimum_ns"] is not None]
    for name in ("portfolio", "keeping"):
        both = [(r[f"{name}_ns"], r["optimum_ns"]) for r in solvable if r[f"{name}_ns"] is not None]
        gaps = [100 * (ours / best - 1) for ours, best in both]
        lines.append(
            f"| {name} | {len(solvable)} | {sum(g <= 0 for g in gaps)} "
            f"| {sum(gaps) / len(gaps):.1f} | {max(gaps):.1f} | {len(solvable) - len(both)} |"
        )
    return [*lines, ""]
