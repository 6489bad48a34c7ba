"""``make synth SWEEP=1``: what each encoding and symbol width costs and brings.

Every variant of both lanes is mapped for area and timed as in ``make synth``, simulated against the
golden codec, and its ratio measured on real activations. One, two and four lanes are
replicas. Writes build/synth/sweep.csv and, with matplotlib, two plots.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from planezip.model.format import Parameters
from planezip.synth.flow import Constraint, rtlil_text
from planezip.synth.library import Library
from planezip.synth.measure import Row, measure
from planezip.synth.modules import LANES, MODULES
from planezip.synth.nodes import Node
from planezip.synth.variants import VARIANTS, activations, ratios, simulate

__all__ = ["Point", "plot", "points", "sweep", "table", "write_csv"]

REPLICAS = (1, 2, 4)


@dataclass(frozen=True)
class Point:
    """A variant in a library with ``lanes`` lanes of each direction; areas in um2."""

    variant: str
    encodings: str
    symbol_bits: str
    library: str
    corner: str
    constraint_ps: float
    lanes: int
    compressor_um2: float
    decompressor_um2: float
    total_um2: float
    sram_um2: float
    area_saved_percent: float
    path_ps: float
    gb_per_s: float
    ratio_bfloat16: float
    ratio_float32: float
    ratio_lost_percent: float
    simulated: str


def sweep(
    libraries: Sequence[tuple[Library, Node, Constraint]], folder: Path, jobs: int
) -> list[Point]:
    """All points; progress goes to the error stream.

    Raises
    ------
    tb.run.BenchFailure
        If a variant does not do what the golden codec does.
    """
    source, data = activations()
    print(f"ratios on {source}", file=sys.stderr)
    ratio = {name: ratios(data, parameters) for name, parameters in VARIANTS.items()}
    simulated = {}
    for name, parameters in VARIANTS.items():
        for lane in LANES:
            simulate(lane, parameters)
        simulated[name] = "mixed_tensors, both lanes"
        print(f"simulated {name}", file=sys.stderr, flush=True)
    found: list[Point] = []
    for library, node, constraint in libraries:

        def one(
            job: tuple[str, str],
            library: Library = library,
            node: Node = node,
            constraint: Constraint = constraint,
        ) -> Row:
            variant, lane = job
            text = rtlil_text(MODULES[lane](VARIANTS[variant]), lane)
            place = folder / "sweep" / variant
            row, cached = measure(lane, text, library, node, constraint, place, mappings=("area",))
            how = "kept" if cached else "done"
            at = f"{how} {variant} {lane} in {library.name}: {row.area_um2:,.0f} um2"
            print(at, file=sys.stderr, flush=True)
            return row

        todo = [(variant, lane) for variant in VARIANTS for lane in LANES]
        with ThreadPoolExecutor(jobs) as pool:
            rows = dict(zip(todo, pool.map(one, todo), strict=True))
        found += points(rows, ratio, simulated)
    return found


def points(
    rows: dict[tuple[str, str], Row],
    ratio: dict[str, dict[str, float]],
    simulated: dict[str, str],
) -> list[Point]:
    """Points of one library from the rows by variant and lane; ``all`` is what is compared to."""
    found = []
    whole = sum(rows["all", lane].area_um2 for lane in LANES)
    for variant in dict.fromkeys(variant for variant, _ in rows):
        parameters = VARIANTS[variant]
        lanes = [rows[variant, lane] for lane in LANES]
        area = sum(row.area_um2 for row in lanes)
        lost = [ratio[variant][dtype] / ratio["all"][dtype] for dtype in ratio["all"]]
        kept = 1.0
        for part in lost:
            kept *= part ** (1 / len(lost))
        for count in REPLICAS:
            found.append(
                Point(
                    variant=variant,
                    encodings=_names(parameters),
                    symbol_bits=" ".join(map(str, parameters.symbol_bits)),
                    library=lanes[0].library,
                    corner=lanes[0].corner,
                    constraint_ps=lanes[0].constraint_ps,
                    lanes=count,
                    compressor_um2=round(count * lanes[0].area_um2, 1),
                    decompressor_um2=round(count * lanes[1].area_um2, 1),
                    total_um2=round(count * area, 1),
                    sram_um2=round(count * sum(row.sram_um2 for row in lanes), 1),
                    area_saved_percent=round(100 * (1 - area / whole), 2),
                    path_ps=max(row.path_ps for row in lanes),
                    gb_per_s=round(count * 32 * min(row.clock_ghz for row in lanes), 2),
                    ratio_bfloat16=round(ratio[variant]["bfloat16"], 4),
                    ratio_float32=round(ratio[variant]["float32"], 4),
                    ratio_lost_percent=round(100 * (1 - kept), 2),
                    simulated=simulated[variant],
                )
            )
    return found


def _names(parameters: Parameters) -> str:
    return " ".join(tag.name for tag in sorted(parameters.encodings))


def write_csv(found: Sequence[Point], path: Path) -> None:
    """One line per point, with the names of the fields above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Point)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(point) for point in found)


def table(found: Sequence[Point]) -> str:
    """Markdown table of the single lanes."""
    lines = [
        "| variant | library | compressor um2 | decompressor um2 | area saved | path ps |"
        " BF16 ratio | FP32 ratio | ratio lost |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for point in found:
        if point.lanes == 1:
            lines.append(
                f"| {point.variant} | {point.library} | {point.compressor_um2:,.0f} |"
                f" {point.decompressor_um2:,.0f} | {point.area_saved_percent:.1f}% |"
                f" {point.path_ps:.0f} | {point.ratio_bfloat16:.3f} | {point.ratio_float32:.3f} |"
                f" {point.ratio_lost_percent:.1f}% |"
            )
    return "\n".join(lines)


def plot(found: Sequence[Point], folder: Path) -> list[Path]:
    """SVG of area by throughput and of ratio lost by area saved; none without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("no plots: pip install matplotlib", file=sys.stderr)
        return []
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    libraries = list(dict.fromkeys(point.library for point in found))
    paths = [folder / "sweep_area.svg", folder / "sweep_ratio.svg"]
    with matplotlib.rc_context({"svg.hashsalt": "planezip"}):
        for kind, path in enumerate(paths):
            figure, axes = plt.subplots(
                1, len(libraries), figsize=(5 * len(libraries), 4), squeeze=False
            )
            for axis, library in zip(axes[0], libraries, strict=True):
                here = [point for point in found if point.library == library]
                if kind == 0:
                    for variant in VARIANTS:
                        line = [point for point in here if point.variant == variant]
                        axis.plot(
                            [point.gb_per_s for point in line],
                            [point.total_um2 / 1e6 for point in line],
                            marker="o",
                            markersize=3,
                            label=variant,
                        )
                    axis.set_xlabel("GB/s per direction (1, 2, 4 lanes, replicated)")
                    axis.set_ylabel("mm2 of logic, both directions")
                    axis.legend(fontsize=7)
                else:
                    for point in (point for point in here if point.lanes == 1):
                        at = (point.area_saved_percent, point.ratio_lost_percent)
                        axis.plot(*at, "o", color="tab:blue")
                        axis.annotate(
                            point.variant, at, (4, 4), textcoords="offset points", fontsize=7
                        )
                    axis.set_xlabel("area saved, %")
                    axis.set_ylabel("ratio lost, %")
                axis.set_title(f"{library}, {here[0].constraint_ps:g} ps", fontsize=9)
            figure.tight_layout()
            figure.savefig(path, metadata={"Date": None})
            plt.close(figure)
    return paths
