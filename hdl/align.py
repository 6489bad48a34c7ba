"""Output aligner of pass 2: strings at their place in rings become wire beats."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import grouped, inner_flags
from planezip.hdl.types import beat
from planezip.hdl.wires import any_of, wire
from planezip.model.format import DEFAULT, Parameters

__all__ = ["Aligner", "Narrow", "aligner_slot", "low_flags"]


def aligner_slot(geometry: Geometry) -> data.StructLayout:
    """What a slot adds to a tensor: the bits up to ``end`` of its stream.

    ``payload`` and ``control`` are rings, zero outside their strings, which begin at
    ``payload_start`` and ``control_start``; positions that neither covers are zero.
    ``payload_low`` and ``control_low`` are :func:`low_flags` of the starts.
    Positions count modulo two wire rings. ``opened``: the wire beat (its number modulo 2) in
    which the last bit before the slot lies; 1 before the first slot. ``end`` is the last
    bit of the slot; that of a slot without bits is the last one before. ``first`` and
    ``last`` slot of the tensor; the first one has a bit or more.
    """
    anywhere = Const(0, geometry.pointer_bits)
    low = {name: len(low_flags(geometry, anywhere, name)) for name in ("payload", "control")}
    return data.StructLayout(
        {
            "payload": unsigned(geometry.beat_bits),
            "payload_start": unsigned(geometry.pointer_bits),
            "payload_low": unsigned(low["payload"]),
            "control": unsigned(geometry.control_ring),
            "control_start": unsigned(geometry.pointer_bits),
            "control_low": unsigned(low["control"]),
            "opened": 1,
            "end": unsigned(geometry.pointer_bits),
            "first": 1,
            "last": 1,
        }
    )


def low_flags(geometry: Geometry, start: Value, name: str) -> Value:
    """Part of the place of a string in its ring, for a shorter path in the aligner."""
    ring = geometry.beat_bits if name == "payload" else geometry.control_ring
    halves = geometry.wire_ring == 2 * ring
    return inner_flags(start, ring, start[ring.bit_length() - 1] if halves else Const(0))


class Aligner(wiring.Component):
    """A slot a cycle in, at most a beat a cycle out; the only register is the open beat.

    A full beat leaves with the first bit behind it, combinationally; the end of a tensor
    in the cycle after its last slot (also while the next tensor begins).

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    slots : In(stream of aligner_slot)
    beats : Out(stream of beat)
        Beats of ``wire_ring`` bits.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        super().__init__(
            {
                "slots": In(stream.Signature(aligner_slot(g))),
                "beats": Out(stream.Signature(beat(g.wire_ring // 8))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        slot, out, size = self.slots.payload, self.beats.payload, self._geometry.wire_ring
        place = size.bit_length() - 1
        open_bits = Signal(size, reset_less=True)
        ends = Signal()  # the open beat is the last one of its tensor
        end = Signal(place - 3, reset_less=True)  # its last byte
        fills = wire(m, slot.opened ^ slot.end[place], "fills")  # the next beat begins
        leaves = self.slots.valid & fills & ~slot.first
        taken = self.slots.valid & self.slots.ready
        now, later = [], []
        for ring, start, low in (
            (slot.payload, slot.payload_start, slot.payload_low),
            (slot.control, slot.control_start, slot.control_low),
        ):
            for k, (part, beat_number) in enumerate(self._windows(m, ring, start, low)):
                # A part lies in one window of the beat, so in one beat: the open one or the next.
                here = wire(m, beat_number == slot.opened, "here")
                leave = wire(m, here & ~ends, "leave").replicate(len(part))
                stay = wire(m, ~(here & fills), "stay").replicate(len(part))
                now.append((k, part & leave))
                later.append((k, part & stay))
        m.d.comb += [
            self.beats.valid.eq(ends | leaves),
            self.slots.ready.eq(self.beats.ready | ~self.beats.valid),
            out.data.eq(open_bits | self._merged(now)),
            out.bytes.eq(Mux(ends, end + 1, size // 8)),
            out.last.eq(ends),
        ]
        with m.If(self.beats.ready):
            m.d.sync += ends.eq(0)
        with m.If(taken):
            m.d.sync += [
                open_bits.eq((open_bits & (~fills).replicate(size)) | self._merged(later)),
                ends.eq(slot.last),
                end.eq(slot.end[3:place]),
            ]
        return m

    def _windows(
        self, m: Module, ring: Value, start: Value, low: Value
    ) -> list[tuple[Value, Value]]:
        """``(bits, beat number)`` of a string in each window of a beat, a window being a ring."""
        size, whole = len(ring), self._geometry.wire_ring
        inner, place = size.bit_length() - 1, whole.bit_length() - 1
        window, number = start[inner:place], start[place]
        group = start[inner // 2 : inner]
        if whole == 2 * size:
            lower = grouped(m, low, group, window)
            return [(ring & lower, number ^ window), (ring & ~lower, number)]
        above = grouped(m, low, group)
        parts: list[tuple[Value, Value]] = []
        for k in range(whole // size):
            for bits, at, beat_number in (
                (ring & above, k, number),
                (ring & ~above, k - 1, number ^ (k == 0)),
            ):
                chosen = window == at % (whole // size) if whole > size else Const(1)
                parts.append((bits & chosen.replicate(size), beat_number))
        return parts

    def _merged(self, parts: list[tuple[int, Value]]) -> Value:
        """Parts at their windows; a ring that is not half a beat has two for each window."""
        whole = self._geometry.wire_ring
        columns = []
        for k, part in parts:
            size = len(part)
            at = k if whole == 2 * size else k // 2
            columns.append(Cat(Const(0, at * size), part, Const(0, whole - (at + 1) * size)))
        return any_of(columns)


class Narrow(wiring.Component):
    """Cuts wide beats into narrow ones, one a cycle, without a register for data.

    Only small parameters need it: there the control string of a block is longer than a
    wire beat.

    Parameters
    ----------
    wide_bytes, narrow_bytes : int

    Attributes
    ----------
    wide, narrow : streams of beat
    """

    def __init__(self, wide_bytes: int, narrow_bytes: int) -> None:
        if wide_bytes % narrow_bytes:
            raise ValueError(
                f"wide_bytes must be a multiple of narrow_bytes {narrow_bytes!r},"
                f" not {wide_bytes!r}"
            )
        self._sizes = wide_bytes, narrow_bytes
        super().__init__(
            {
                "wide": In(stream.Signature(beat(wide_bytes))),
                "narrow": Out(stream.Signature(beat(narrow_bytes))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        wide, narrow = self.wide.payload, self.narrow.payload
        total, size = self._sizes
        at = Signal(range(total // size))
        left = wide.bytes - at * size
        final = left <= size
        m.d.comb += [
            self.narrow.valid.eq(self.wide.valid),
            self.wide.ready.eq(self.narrow.ready & final),
            narrow.data.eq(wide.data.word_select(at, 8 * size)),
            narrow.bytes.eq(Mux(final, left, size)),
            narrow.last.eq(wide.last & final),
        ]
        with m.If(self.narrow.valid & self.narrow.ready):
            m.d.sync += at.eq(Mux(final, 0, at + 1))
        return m
