"""Output aligner of pass 2: strings at their place in rings become wire beats."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry
from planezip.hdl.payload import expand, thermometer
from planezip.hdl.types import beat
from planezip.model.format import DEFAULT, Parameters

__all__ = ["Aligner", "Narrow", "aligner_slot"]


def aligner_slot(geometry: Geometry) -> data.StructLayout:
    """What a slot adds to a tensor: the bits from ``before`` + 1 to ``end`` of its stream.

    ``payload`` and ``control`` are rings, zero outside their strings, which begin at
    ``payload_start`` and ``control_start`` (modulo the wire ring); positions that neither
    covers are zero. ``before`` and ``end`` count modulo two wire rings. ``first`` and
    ``last`` slot of the tensor; the first one begins at position 0 and has a bit or more.
    """
    place = geometry.pointer_bits - 1
    return data.StructLayout(
        {
            "payload": unsigned(geometry.beat_bits),
            "payload_start": unsigned(place),
            "control": unsigned(geometry.control_ring),
            "control_start": unsigned(place),
            "before": unsigned(geometry.pointer_bits),
            "end": unsigned(geometry.pointer_bits),
            "first": 1,
            "last": 1,
        }
    )


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
        arriving = Signal(size)
        m.d.comb += arriving.eq(
            expand(m, slot.payload, slot.payload_start, size)
            | expand(m, slot.control, slot.control_start, size)
        )
        # Places above `before` belong to the open beat, the others to the next one.
        above = Cat(Const(0, 1), thermometer(m, slot.before[:place], size)[:-1])
        # Without `fills` nothing arrives below: no need to look at `above` then.
        fills = slot.before[place] ^ slot.end[place]  # the next beat begins
        leaves = self.slots.valid & fills & ~slot.first
        taken = self.slots.valid & self.slots.ready
        m.d.comb += [
            self.beats.valid.eq(ends | leaves),
            self.slots.ready.eq(self.beats.ready | ~self.beats.valid),
            out.data.eq(open_bits | (arriving & (above & (~ends).replicate(size)))),
            out.bytes.eq(Mux(ends, end + 1, size // 8)),
            out.last.eq(ends),
        ]
        with m.If(self.beats.ready):
            m.d.sync += ends.eq(0)
        with m.If(taken):
            m.d.sync += [
                open_bits.eq(
                    (open_bits & (~fills).replicate(size))
                    | (arriving & ~(above & fills.replicate(size)))
                ),
                ends.eq(slot.last),
                end.eq(slot.end[3:place]),
            ]
        return m


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
