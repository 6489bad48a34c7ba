"""Timing diagrams of docs/hardware.md: ports of the engine in a simulation, cycle by cycle.

``python -m tb.timing [FOLDER]`` runs a few tensors over the whole path (Verilator) and writes
timing-start.svg and timing-tensors.svg to docs/.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planezip.hdl.engine_types import Activity
from tb.activations import samples
from tb.harness.path import build_path, run_path
from tb.harness.tensors import Tensor
from tb.places import ROOT

__all__ = ["Trace", "draw", "main", "parse", "pieces"]

LANES = 2
# Columns of trace.txt (tb/harness/path.v), and how the ports are called.
PORTS = (
    "compress descriptor",
    "compress raw",
    "compress wire",
    "compress completion",
    "decompress descriptor",
    "decompress wire",
    "decompress raw",
    "decompress completion",
)
_ACTIVITIES = {"compress raw": 0, "decompress raw": 1}
_COLOURS = {"moves": "#2563a8", "waits": "#e8a33d", "idle": "#e6e6e6"}
_LEFT, _ROW, _BAR = 190, 26, 16


@dataclass(frozen=True)
class Trace:
    """What each port does in each cycle ("moves": valid and ready; "waits": valid only;
    "idle"), and the activities of the two raw ports."""

    ports: dict[str, list[str]]
    activities: tuple[list[Activity], list[Activity]]


def parse(text: str) -> Trace:
    """A trace from trace.txt; reset, with unknown values, is left out."""
    lines = [line.split() for line in text.splitlines()]
    lines = [line for line in lines if not set("".join(line)) - set("0123456789")]
    state = {"00": "idle", "01": "idle", "10": "waits", "11": "moves"}
    return Trace(
        {name: [state[line[k]] for line in lines] for k, name in enumerate(PORTS)},
        (
            [Activity(int(line[-2])) for line in lines],
            [Activity(int(line[-1])) for line in lines],
        ),
    )


def pieces(states: Sequence[str]) -> list[tuple[str, int, int]]:
    """Runs of equal states: ``(state, first cycle, cycles)``."""
    found: list[tuple[str, int, int]] = []
    for cycle, state in enumerate(states):
        if found and found[-1][0] == state:
            found[-1] = (state, found[-1][1], found[-1][2] + 1)
        else:
            found.append((state, cycle, 1))
    return found


def draw(trace: Trace, title: str, cycle_width: int) -> str:
    """SVG of a trace."""
    count = len(trace.activities[0])
    width, height = _LEFT + count * cycle_width + 20, (len(PORTS) + 3) * _ROW + 10
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="18" font-weight="bold">{title}</text>',
    ]
    top = _ROW + 8
    for row, name in enumerate(PORTS):
        y = top + row * _ROW
        out.append(f'<text x="8" y="{y + 12}">{name}</text>')
        for state, first, length in pieces(trace.ports[name]):
            x = _LEFT + first * cycle_width
            why = ""
            if name in _ACTIVITIES and state != "moves":
                kinds = trace.activities[_ACTIVITIES[name]][first : first + length]
                counts = [f"{kinds.count(kind)} {kind.name}" for kind in Activity if kind in kinds]
                why = f" ({', '.join(counts)})"
            out.append(
                f'<rect x="{x}" y="{y}" width="{length * cycle_width}" height="{_BAR}"'
                f' fill="{_COLOURS[state]}"><title>{name}: {state}, cycles {first} to'
                f" {first + length - 1}{why}</title></rect>"
            )
    axis = top + len(PORTS) * _ROW
    step = 50 if count > 200 else 10
    for cycle in range(0, count, step):
        x = _LEFT + cycle * cycle_width
        out.append(
            f'<line x1="{x}" y1="{top}" x2="{x}" y2="{axis}" stroke="#999" stroke-width="0.5"/>'
        )
        out.append(f'<text x="{x}" y="{axis + 12}" font-size="10">{cycle}</text>')
    for k, (state, what) in enumerate(
        (("moves", "beat moves"), ("waits", "valid, not ready"), ("idle", "not valid"))
    ):
        x = _LEFT + 150 * k
        out.append(
            f'<rect x="{x}" y="{axis + 20}" width="12" height="12" fill="{_COLOURS[state]}"/>'
        )
        out.append(f'<text x="{x + 18}" y="{axis + 31}">{what}</text>')
    return "\n".join([*out, "</svg>", ""])


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate and draw."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    folder = Path(arguments[0]) if arguments else ROOT / "docs"
    real = next(samples(16))
    long = Tensor(real.dtype, real.data[: 4 * 4096])
    short = [Tensor("float32", real.data[at : at + 300]) for at in range(0, 3000, 300)]
    pictures = {
        "timing-start": (
            [long, *short[:1]],
            "16 KB of real bfloat16 activations, 300 bytes",
            600,
            2,
        ),
        "timing-tensors": ([*short, Tensor("int8", b""), *short], "Tensors of 300 bytes", 140, 6),
    }
    built = build_path(LANES)
    for name, (tensors, title, cycles, width) in pictures.items():
        result = run_path(LANES, built, "verilator", tensors, name, trace_cycles=cycles)
        if result.problems:
            raise RuntimeError("\n".join(result.problems))
        trace = parse((built[0] / "runs" / name / "trace.txt").read_text())
        full = f"{title}, {LANES} lanes each way; cycles"
        (folder / f"{name}.svg").write_text(draw(trace, full, width))
        print(folder / f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
