"""Aligner and Narrow: strings at their places become the bytes of tensors, under pauses."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest

from planezip.hdl.align import Aligner, Narrow, aligner_slot
from planezip.hdl.geometry import Geometry
from planezip.hdl.types import beat
from planezip.model.format import Parameters
from tb.bench import Bench
from tb.marks import sampled, sizes
from tb.pass_two import wire_beats
from tb.pauses import PATTERNS
from tb.poke import GEOMETRIES
from tb.run import run_bench


def _ring(value: int, start: int, size: int) -> int:
    """``value`` from place ``start`` of a ring."""
    whole = value << start % size
    return whole & (1 << size) - 1 | whole >> size


def _low(g: Geometry, start: int, ring: int) -> int:
    """The bits from the lower half of ``start`` upwards; the others where the rings are halves."""
    size = 1 << (ring.bit_length() - 1) // 2
    flags = (1 << size) - (1 << start % size)
    return flags ^ ((1 << size) - 1) * (g.wire_ring == 2 * ring and start // ring & 1)


@cocotb.test()
async def slots(dut: Any) -> None:
    bench = Bench(dut)
    rng, p = bench.rng, bench.arguments["parameters"]
    g = Geometry(p, bench.arguments["beats"])
    pause = bench.arguments["pause"]
    source = bench.source("slots", aligner_slot(g), pause)
    output = bench.sink("beats", beat(g.wire_ring // 8), pause)
    await bench.reset()
    place, pointer = g.wire_ring, 1 << g.pointer_bits
    slots_sent = 0
    for _ in range(bench.arguments["tensors"]):
        count = rng.choice((1, 2, rng.randrange(1, 40)))
        at, whole = 0, 0
        for k in range(count):
            payload = rng.choice((0, g.beat_bits, rng.randrange(g.beat_bits + 1)))
            control = rng.choice((0, 0, g.control_bits, rng.randrange(1, g.control_bits + 1)))
            control_first = rng.randrange(2)
            gap = rng.choice((0, 0, rng.randrange(8)))
            if k == 0:
                control_first, control = 1, max(control, 1)
            if k == count - 1:
                gap = -(at + payload + control) % 8
            gap = min(gap, g.wire_ring - payload - control) if k < count - 1 else gap
            bits = {
                "payload": rng.getrandbits(payload or 1),
                "control": rng.getrandbits(control or 1),
            }
            if not payload:
                bits["payload"] = 0
            if not control:
                bits["control"] = 0
            starts = {
                "payload": at + (control if control_first else 0),
                "control": at + (0 if control_first else payload),
            }
            for name, value in bits.items():
                whole |= value << starts[name]
            end = at + payload + control + gap
            source.send(
                {
                    "payload": _ring(bits["payload"], starts["payload"], g.beat_bits),
                    "payload_start": starts["payload"] % pointer,
                    "payload_low": _low(g, starts["payload"], g.beat_bits),
                    "control": _ring(bits["control"], starts["control"], g.control_ring),
                    "control_start": starts["control"] % pointer,
                    "control_low": _low(g, starts["control"], g.control_ring),
                    "opened": (at - 1) % pointer // place,
                    "end": (end - 1) % pointer,
                    "first": k == 0,
                    "last": k == count - 1,
                }
            )
            at = end
        slots_sent += count
        output.extend(wire_beats(whole.to_bytes(at // 8, "little"), g.wire_ring // 8))
    await bench.finish()
    if pause == "never":  # a slot a cycle, also from tensor to tensor if the first slot fits
        first, last = source.times[0], source.times[-1]
        assert last - first + 1 <= slots_sent + bench.arguments["tensors"]


@cocotb.test()
async def cuts(dut: Any) -> None:
    bench = Bench(dut)
    rng, pause = bench.rng, bench.arguments["pause"]
    wide, narrow = bench.arguments["sizes"]
    source = bench.source("wide", beat(wide), pause)
    output = bench.sink("narrow", beat(narrow), pause)
    await bench.reset()
    for _ in range(60):
        data = rng.randbytes(rng.randrange(1, 6 * wide))
        source.extend(wire_beats(data, wide))
        output.extend(wire_beats(data, narrow))
    await bench.finish()
    if pause == "never":
        times = bench.monitor_of(output).times
        assert times == list(range(times[0], times[0] + len(times)))


@pytest.mark.parametrize("pause", sampled(PATTERNS, "random"))
@sizes(GEOMETRIES)
def test_aligner(parameters: Parameters, beats: int, pause: str) -> None:
    arguments = {"parameters": parameters, "beats": beats, "tensors": 60, "pause": pause}
    run_bench(Aligner(parameters, beats), __name__, arguments=arguments, testcase="slots")


@pytest.mark.parametrize("pause", sampled(PATTERNS, "random"))
@pytest.mark.parametrize("sizes", [(8, 2), (16, 4)])
def test_narrow(sizes: tuple[int, int], pause: str) -> None:
    run_bench(Narrow(*sizes), __name__, arguments={"sizes": sizes, "pause": pause}, testcase="cuts")


def test_narrow_checks_sizes() -> None:
    with pytest.raises(ValueError, match="wide_bytes must be a multiple of narrow_bytes 3, not 8"):
        Narrow(8, 3)
