"""Payload path: slots read, placed, packed and joined with control, against its model."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import cocotb

from planezip.hdl.align import aligner_slot
from planezip.hdl.extra_plane import extra_ring
from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import packed, places
from planezip.hdl.payload_path import PayloadPath
from planezip.hdl.placement import symbol_unit
from planezip.hdl.position import position_of
from planezip.hdl.summary import PlaneClass
from planezip.hdl.transform import transformed
from planezip.hdl.transpose import slots
from planezip.model.format import Parameters, Tag, log2_ceil
from planezip.model.reference import number_of, split_symbols, transform
from tb.bench import Bench
from tb.blocks import random_block
from tb.layouts import unpack
from tb.marks import sizes
from tb.pass_two import classes
from tb.poke import GEOMETRIES, Poke
from tb.run import run_bench

_POSITIONS = (PlaneClass.PAIR, PlaneClass.ONE)


@dataclass
class Block:
    """What the path is given of a block, and the slots that it must give."""

    info: dict[str, Any]
    control_end: int
    string: int
    kinds: list[tuple[int, int]]  # verbatim and position flags of each slot
    tops: list[int]  # of each beat
    data: list[int]  # what Transpose has in each slot
    expected: list[dict[str, int]]


def low_flags(g: Geometry, start: int, ring: int) -> int:
    """Model of hdl/align.py's."""
    size = 1 << (ring.bit_length() - 1) // 2
    flags = (1 << size) - (1 << start % size)
    return flags ^ ((1 << size) - 1) * (g.wire_ring == 2 * ring and start // ring & 1)


def kinds_of(kinds: list[PlaneClass], span: int) -> tuple[int, int]:
    """Flags of the units of a slot's planes."""
    verbatim = sum(
        ((1 << span) - 1) << k * span for k, c in enumerate(kinds) if c == PlaneClass.VERBATIM
    )
    return verbatim, sum(1 << k * span for k, c in enumerate(kinds) if c in _POSITIONS)


def random_path_block(rng: random.Random, g: Geometry, first: bool, last: bool) -> Block:
    """A block of any tag, coded or not, at any place of the stream."""
    p, count = g.parameters, g.beats_per_block
    width = rng.randrange(len(p.symbol_bits))
    w = p.symbol_bits[width]
    symbols = split_symbols(random_block(rng, w, p), w)
    tag = rng.choice(sorted(p.encodings))
    n, unit = p.symbols(w), g.unit_bits
    in_planes = tag not in (Tag.RAW, Tag.ZVC)
    pointer = 1 << g.pointer_bits
    values, top_bits = transformed(tag, symbols, w)
    data = slots(values, w, p, count, in_planes)
    kinds = [PlaneClass(c) for c in classes(tag, symbols, w)]
    extra_class = kinds.pop(0) if tag == Tag.DBX else rng.choice(list(PlaneClass))
    nonzero = sum(s != 0 for s in symbols)
    plane_bits = transform(tag, symbols, w)[2] if in_planes else n
    left = (nonzero if tag == Tag.ZVC else n) * w
    odd, begin = rng.randrange(2), rng.randrange(pointer)
    control_end = rng.randrange(pointer)
    string = rng.getrandbits(g.control_ring)
    has_extra = tag == Tag.DBX
    verbatim_extra = has_extra and extra_class == PlaneClass.VERBATIM
    position_extra = has_extra and extra_class in _POSITIONS
    field = log2_ceil(plane_bits)
    extra_start = begin if odd else control_end
    ring_of_extra = extra_ring(
        number_of(top_bits), verbatim_extra, position_extra, extra_start, g.control_ring
    )
    place = extra_start + (plane_bits if verbatim_extra else field if position_extra else 0)
    end = 0
    blocks_end = rng.randrange(pointer)
    all_kinds, expected = [], []
    per_slot, span = g.planes(w), n // unit
    for k in range(count):
        here = kinds[k * per_slot : (k + 1) * per_slot]
        all_kinds.append(kinds_of(here, span) if in_planes else ((1 << g.units) - 1, 0))
        units = [data[k] >> unit * u & (1 << unit) - 1 for u in range(g.units)]
        lengths = [unit] * g.units
        moved = min(max(left - k * g.beat_bits, 0), g.beat_bits)
        if in_planes:
            lengths = []
            for index, kind in enumerate(here):
                plane = data[k] >> index * n & (1 << n) - 1
                parts = [0] * span
                shares = [0] * span
                if kind == PlaneClass.VERBATIM:
                    parts = units[index * span : (index + 1) * span]
                    shares = [min(max(plane_bits - j * unit, 0), unit) for j in range(span)]
                elif kind in _POSITIONS:
                    parts[0], shares[0] = position_of(plane), field
                units[index * span : (index + 1) * span] = parts
                lengths += shares
            moved = sum(lengths)
        end = (place + moved) % pointer
        ring = packed(units, places(place, lengths, g.beat_bits)[:-1], unit, g.beat_bits)
        is_last = k == count - 1
        start = begin if k == 0 else place
        control_start = begin if k == 0 else end
        has_string = k == 0 if not odd else is_last
        expected.append(
            {
                "payload": ring,
                "payload_start": place % pointer,
                "payload_low": low_flags(g, place % pointer, g.beat_bits),
                "control": (string if has_string else 0) | (ring_of_extra if k == 0 else 0),
                "control_start": control_start,
                "control_low": low_flags(g, control_start, g.control_ring),
                "opened": (start - 1) % pointer >> g.pointer_bits - 1,
                "end": ((blocks_end if is_last else end) - 1) % pointer,
                "first": int(first and k == 0),
                "last": int(last and is_last),
            }
        )
        place = end
    info = {
        "width": width,
        "planes": int(in_planes),
        "extra": int(has_extra),
        "extra_class": extra_class,
        "plane_bits": plane_bits,
        "left": left // symbol_unit(g),
        "odd": odd,
        "begin": begin,
        "end": blocks_end,
        "first": int(first),
        "last": int(last),
    }
    tops = [0, *top_bits]
    beat = n // count
    beats = [number_of(tops[k * beat : (k + 1) * beat]) for k in range(count)]
    return Block(info, control_end, string, all_kinds, beats, data, expected)


@cocotb.test()
async def blocks(dut: Any) -> None:
    """Blocks back to back or with bubbles, while the aligner holds the path up now and then."""
    bench = Bench(dut)
    rng, g = bench.rng, Geometry(bench.arguments["parameters"], bench.arguments["beats"])
    poke = Poke(dut, PayloadPath(g.parameters, g.beats_per_block))
    count = g.beats_per_block
    await poke.reset()
    inputs: dict[int, dict[str, Any]] = {}  # by cycle with `enable`
    reads: dict[int, tuple[Block, int]] = {}
    given: dict[int, dict[str, int]] = {}
    begins = count
    for number in range(bench.arguments["blocks"]):
        block = random_path_block(rng, g, rng.random() < 0.3, rng.random() < 0.3)
        inputs.setdefault(begins, {}).update(begin=1, info=block.info)
        inputs.setdefault(begins + 1, {}).update(control_end=block.control_end)
        for k in range(count):
            verbatim, positions = block.kinds[k]
            beat = begins + 1 - count + k  # in which the slot's beat is taken
            inputs.setdefault(beat, {}).update(
                kinds=1, kinds_slot=k, verbatim=verbatim, positions=positions
            )
            inputs.setdefault(beat + 2, {}).update(
                tops_valid=1, tops_slot=k, tops_width=block.info["width"], tops=block.tops[k]
            )
            reads[begins + 3 + k] = block, k
            given[begins + 5 + k] = block.expected[k] | {"number": number}
            inputs.setdefault(begins + 5 + k, {}).update(string=block.string)
        begins += count + rng.choice((0, 0, 0, 1, 5))
    strobes = ("begin", "kinds", "tops_valid")
    cycle = 0
    while cycle < begins + 8:
        dut.slots__ready.value = ready = int(rng.random() < 0.8)
        now = inputs.get(cycle, {})
        poke.set(**dict.fromkeys(strobes, 0), **{k: v for k, v in now.items() if k not in strobes})
        await poke.settle()
        wanted = given.get(cycle)
        assert int(dut.slots__valid.value) == (wanted is not None), cycle
        if wanted is not None:
            number = wanted.pop("number")
            got = unpack(aligner_slot(g), int(dut.slots__payload.value))
            assert got == wanted, (bench.seed, number, cycle)
            wanted["number"] = number
        enable = poke.get("enable")
        assert enable == int(ready or wanted is None)
        if cycle in reads:
            block, k = reads[cycle]
            assert poke.get("read_slot") == k
            assert poke.get("read_width") == block.info["width"]
            assert poke.get("read_planes") == block.info["planes"]
            poke.set(data=block.data[k])
        if enable:
            poke.set(**{name: 1 for name in strobes if name in now})
        await poke.tick()
        cycle += enable


@sizes(GEOMETRIES)
def test_payload_path(parameters: Parameters, beats: int) -> None:
    arguments = {"parameters": parameters, "beats": beats, "blocks": 150}
    run_bench(PayloadPath(parameters, beats), __name__, arguments=arguments)
