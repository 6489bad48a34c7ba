"""Framer: raw bytes of a tensor become whole blocks, marked with what pass 1 must know."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.delta import beat_bits, symbol_beat, width_shape
from planezip.hdl.types import ElementType, Mode, descriptor
from planezip.model.format import DEFAULT, Parameters

__all__ = ["Framer", "block_meta", "framed", "framed_beat", "width_of"]


def block_meta(parameters: Parameters = DEFAULT) -> data.StructLayout:
    """What goes with a block through the sizer: ``width`` (index), ``mode``, last of its chunk
    and of its tensor, and ``tail``, valid bytes of a tensor's last block (0: all)."""
    return data.StructLayout(
        {
            "width": width_shape(parameters),
            "mode": Mode,
            "last_of_chunk": 1,
            "last_of_tensor": 1,
            "tail": range(parameters.block_bits // 8),
        }
    )


def framed_beat(parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> data.StructLayout:
    """Beat of a block, zero behind the tensor's end, and ``meta``, valid with the last one."""
    return data.StructLayout(
        {"beat": symbol_beat(parameters, beats_per_block), "meta": block_meta(parameters)}
    )


def width_of(dtype: ElementType, parameters: Parameters = DEFAULT) -> int:
    """Index into ``parameters.symbol_bits``: the first for bfloat16 and float16, else the last."""
    narrow = dtype in (ElementType.BFLOAT16, ElementType.FLOAT16)
    return 0 if narrow else len(parameters.symbol_bits) - 1


def framed(
    raw: bytes,
    dtype: ElementType,
    mode: Mode,
    parameters: Parameters = DEFAULT,
    beats_per_block: int = 4,
) -> list[dict[str, Any]]:
    """Software model: the beats of a tensor, as fields of :func:`framed_beat`."""
    block = parameters.block_bits // 8
    size = block // beats_per_block
    padded = raw + bytes(-len(raw) % block)
    beats = []
    width = width_of(dtype, parameters)
    for at in range(0, len(padded), size):
        end = at + size
        last_of_tensor = end == len(padded)
        beats.append(
            {
                "beat": {
                    "data": int.from_bytes(padded[at:end], "little"),
                    "width": width,
                    "first": int(at % block == 0),
                    "last": int(end % block == 0),
                },
                "meta": {
                    "width": width,
                    "mode": mode.value,
                    "last_of_chunk": int(
                        end % (block * parameters.blocks_per_chunk) == 0 or last_of_tensor
                    ),
                    "last_of_tensor": int(last_of_tensor),
                    "tail": len(raw) % block,
                },
            }
        )
    return beats


class Framer(wiring.Component):
    """Cuts tensors into blocks and pads the last one with zeros.

    Combinational from ``raw`` to ``beats``; a beat a cycle, a padding beat too. The next
    descriptor is taken with the last beat of a tensor, one without bytes in one cycle.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    descriptor : In(stream of :func:`planezip.hdl.types.descriptor`)
    raw : In(stream of a beat's bits)
        Bytes behind the end of a tensor are ignored.
    beats : Out(stream of :func:`framed_beat`)
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._parameters = parameters
        self._beats_per_block = beats_per_block
        super().__init__(
            {
                "descriptor": In(stream.Signature(descriptor())),
                "raw": In(stream.Signature(unsigned(beat_bits(parameters, beats_per_block)))),
                "beats": Out(stream.Signature(framed_beat(parameters, beats_per_block))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        p, count = self._parameters, self._beats_per_block
        block, size = p.block_bits // 8, p.block_bits // 8 // count
        new = self.descriptor.payload
        out, meta = self.beats.payload.beat, self.beats.payload.meta
        active = Signal()
        shift = size.bit_length() - 1
        left = Signal(
            len(new.raw_bytes) - shift, reset_less=True
        )  # full raw beats; `tail` tells of a partial one
        none, one = (
            Signal(reset_less=True),
            Signal(reset_less=True),
        )  # raw beats left, the partial one too
        tail = Signal(range(block), reset_less=True)
        width = Signal(width_shape(p), reset_less=True)
        mode = Signal(Mode, reset_less=True)
        position = Signal(range(count))
        index = Signal(range(p.blocks_per_chunk))

        partial = tail[:shift]
        cut = one & (partial != 0)
        mask = Cat((~none & (~cut | (partial > k))).replicate(8) for k in range(size))
        last = position == count - 1
        ends = last & (none | one)
        m.d.comb += [
            self.beats.valid.eq(active & (none | self.raw.valid)),
            self.raw.ready.eq(active & ~none & self.beats.ready),
            out.data.eq(self.raw.payload & mask),
            out.width.eq(width),
            out.first.eq(position == 0),
            out.last.eq(last),
            meta.width.eq(width),
            meta.mode.eq(mode),
            meta.last_of_chunk.eq(last & (ends | (index == p.blocks_per_chunk - 1))),
            meta.last_of_tensor.eq(ends),
            meta.tail.eq(tail),
        ]
        moves = Signal()
        m.d.comb += moves.eq(self.beats.valid & self.beats.ready)
        with m.If(moves):
            m.d.sync += position.eq(position + 1)
            with m.If(~none):
                m.d.sync += [left.eq(left - 1), none.eq(one)]
                m.d.sync += one.eq(left == Mux(partial == 0, 2, 1))
            with m.If(last):
                m.d.sync += index.eq(Mux(ends, 0, index + 1))
        # The next tensor.
        m.d.comb += self.descriptor.ready.eq(~active | (moves & ends))
        with m.If(self.descriptor.ready):
            bytes_ = new.raw_bytes
            narrow = (new.dtype == ElementType.BFLOAT16) | (new.dtype == ElementType.FLOAT16)
            m.d.sync += active.eq(self.descriptor.valid & (bytes_ != 0))
            with m.If(self.descriptor.valid):
                m.d.sync += [
                    left.eq(bytes_ >> shift),
                    none.eq(0),
                    one.eq(bytes_ <= size),
                    tail.eq(bytes_[: block.bit_length() - 1]),
                    width.eq(Mux(narrow, 0, len(p.symbol_bits) - 1)),
                    mode.eq(new.mode),
                ]
        return m
