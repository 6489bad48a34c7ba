"""Intake: wire beats into the ring, headers out of them, an entry per chunk.

The decompressor keeps wire beats as they come, headers included, in a ring of rows. A
chunk's entry leaves when the whole body has been written, or when it is clear that it
will never come.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import DecoderGeometry, chunk_entry
from planezip.hdl.delta import width_shape
from planezip.hdl.types import ElementType, Mode, beat, descriptor
from planezip.model.errors import ErrorCode
from planezip.model.format import DEFAULT, HEADER_BYTES, Parameters

__all__ = ["Intake", "entries"]


class _State(enum.Enum, shape=3):
    IDLE = 0  # no tensor
    HEADER = 1  # the next header comes
    BODY = 2  # the rest of a body comes
    LOST = 3  # the tensor's chunks from here on have no known place
    DRAIN = 4  # beats up to the last one are dropped


def entries(
    stream_bytes: bytes, raw_bytes: int, mode: Mode, p: Parameters = DEFAULT
) -> list[tuple[bytes | None, ErrorCode | int, bool]]:
    """Software model: ``(body, error, extra)`` of each chunk; no body where there is an error."""
    chunk, block = p.chunk_bits // 8, p.block_bits // 8
    found: list[tuple[bytes | None, ErrorCode | int, bool]] = []
    at, error = 0, 0
    for first in range(0, raw_bytes, chunk):
        padded = min(chunk, -(-(raw_bytes - first) // block) * block)
        size = min(chunk, raw_bytes - first)
        if not error and mode != Mode.BYPASS:
            header = stream_bytes[at : at + HEADER_BYTES]
            at += HEADER_BYTES
            size = int.from_bytes(header, "little")
            if len(header) < HEADER_BYTES:
                error = ErrorCode.STREAM_END
            elif size > padded:
                error = ErrorCode.CHUNK_SIZE
        if not error and at + size > len(stream_bytes):
            error = ErrorCode.STREAM_END
        if error:
            found.append((None, error, False))
        else:
            extra = first + chunk >= raw_bytes and at + size < len(stream_bytes)
            found.append((stream_bytes[at : at + size], 0, extra))
        at += size
    return found


class Intake(wiring.Component):
    """One cycle per wire beat, one more per header and per body that ends inside a beat; the
    next descriptor is taken with the last beat of a tensor. A raw tensor of one block
    (three beats) takes four cycles, an empty one takes one.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    descriptor : In(stream of :func:`planezip.hdl.types.descriptor`)
    wire : In(stream of :func:`planezip.hdl.types.beat`)
    chunks : Out(stream of :func:`planezip.hdl.decoder_types.chunk_entry`)
        May come in the cycle in which the last row of the body is written.
    write : Out(1), row : Out
        Write ``wire.payload.data`` to this row of the ring (perhaps several times).
    oldest : In
        Rows from this one on are still needed; one row always stays free. Follows ``release`` of
        an entry two cycles after it was taken, or later.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = DecoderGeometry(parameters, beats_per_block)
        super().__init__(
            {
                "descriptor": In(stream.Signature(descriptor())),
                "wire": In(stream.Signature(beat(g.wire // 8))),
                "chunks": Out(stream.Signature(chunk_entry(parameters, beats_per_block))),
                "write": Out(1),
                "row": Out(g.row_bits),
                "oldest": In(g.row_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        p = g.parameters
        block, chunk, size = p.block_bits // 8, p.chunk_bits // 8, g.wire // 8
        new, wire, entry = self.descriptor.payload, self.wire.payload, self.chunks.payload

        state = Signal(_State)
        row, row_after = Signal(g.row_bits), Signal(g.row_bits, init=1)  # and the one behind it
        before = Signal(8, reset_less=True)  # last byte of the beat before
        # Offsets count from the start of the current beat.
        high = Signal(range(chunk + 2 * size), reset_less=True)  # of the header's upper byte
        end = Signal(range(chunk + 2 * size), reset_less=True)  # of the body's end
        start = Signal(g.byte_bits, reset_less=True)
        body = Signal(range(chunk + 1), reset_less=True)
        # Left of the tensor: chunks behind this one, number of its last chunk's last block.
        behind = Signal(len(new.raw_bytes) - (chunk.bit_length() - 1), reset_less=True)
        final = Signal(range(p.blocks_per_chunk), reset_less=True)
        tail = Signal(range(block), reset_less=True)
        width = Signal(width_shape(p), reset_less=True)
        bypass, discard = Signal(reset_less=True), Signal(reset_less=True)
        error = Signal(4, reset_less=True)
        drained = Signal()

        last = Signal()  # this chunk is the tensor's last one
        last_block = Signal(range(p.blocks_per_chunk))  # of this chunk
        here = Signal(range(p.blocks_per_chunk + 1))  # blocks of this chunk
        room, whole = Signal(), Signal()
        advance, push, take = Signal(), Signal(), Signal()
        m.d.comb += [
            last.eq(behind == 0),
            last_block.eq(Mux(last, final, p.blocks_per_chunk - 1)),
            here.eq(last_block + 1),
            room.eq(row_after != self.oldest),
            whole.eq(end <= wire.bytes),
            self.row.eq(row),
            self.write.eq(self.wire.valid & room & (state != _State.DRAIN)),
            self.wire.ready.eq(advance),
            entry.start.eq(start),
            entry.end.eq(Cat(Const(0, size.bit_length() - 1), row) + end),
            entry.release.eq(entry.end[-g.row_bits :]),
            entry.body_bytes.eq(body),
            entry.last_block.eq(last_block),
            entry.width.eq(width),
            entry.raw.eq(bypass | (body == Cat(Const(0, block.bit_length() - 1), here))),
            entry.bypass.eq(bypass),
            entry.discard.eq(discard),
            entry.last.eq(last),
            entry.tail.eq(tail),
            entry.extra.eq(last & ((end < wire.bytes) | ~wire.last)),
            self.chunks.valid.eq(push),
        ]

        word = Cat(before, wire.data)
        header = Signal(8 * HEADER_BYTES)
        m.d.comb += header.eq(word.bit_select(Cat(Const(0, 3), high[: size.bit_length() - 1]), 16))

        with m.Switch(state):
            with m.Case(_State.IDLE):
                m.d.comb += take.eq(1)
            with m.Case(_State.HEADER), m.If(self.wire.valid & room):
                with m.If(high < wire.bytes):
                    padded = Cat(Const(0, block.bit_length() - 1), here)
                    m.d.sync += [
                        body.eq(header),
                        start.eq(Cat(Const(0, size.bit_length() - 1), row) + high + 1),
                        end.eq(high + 1 + header),
                        state.eq(_State.BODY),
                    ]
                    with m.If(header > padded):
                        m.d.sync += [
                            state.eq(_State.LOST),
                            error.eq(ErrorCode.CHUNK_SIZE),
                            drained.eq(0),
                            # This row may hold the end of a body.
                            row.eq(row_after),
                            row_after.eq(row_after + 1),
                        ]
                with m.Else():
                    m.d.comb += advance.eq(1)
                    with m.If(wire.last):
                        m.d.sync += [
                            state.eq(_State.LOST),
                            error.eq(ErrorCode.STREAM_END),
                            drained.eq(1),
                        ]
            with m.Case(_State.BODY), m.If(self.wire.valid & room):
                with m.If(whole):
                    m.d.comb += push.eq(1)
                    with m.If(self.chunks.ready):
                        m.d.sync += [
                            behind.eq(behind - 1),
                            high.eq(end + 1),
                            state.eq(_State.HEADER),
                        ]
                        with m.If(last):
                            m.d.comb += [advance.eq(1), take.eq(wire.last)]
                            m.d.sync += state.eq(_State.DRAIN)
                        with m.Elif(bypass):
                            after = Signal(range(chunk + 1))
                            partial = Cat(tail, final + (tail == 0))
                            m.d.comb += after.eq(Mux(behind == 1, partial, chunk))
                            m.d.sync += [
                                state.eq(_State.BODY),
                                start.eq(entry.end),
                                body.eq(after),
                                end.eq(end + after),
                            ]
                with m.Else():
                    m.d.comb += advance.eq(1)
                    with m.If(wire.last):
                        m.d.sync += [
                            state.eq(_State.LOST),
                            error.eq(ErrorCode.STREAM_END),
                            drained.eq(1),
                        ]
            with m.Case(_State.LOST):
                m.d.comb += [
                    push.eq(1),
                    entry.error.eq(error),
                    entry.extra.eq(0),
                    entry.body_bytes.eq(0),
                    entry.raw.eq(0),
                    entry.release.eq(row),
                ]
                with m.If(self.chunks.ready):
                    m.d.sync += behind.eq(behind - 1)
                    with m.If(last):
                        m.d.comb += take.eq(drained)
                        m.d.sync += state.eq(_State.DRAIN)
            with m.Case(_State.DRAIN):
                m.d.comb += [advance.eq(1), take.eq(self.wire.valid & wire.last)]

        with m.If(advance & self.wire.valid):
            m.d.sync += before.eq(wire.data[-8:])
            with m.If(state != _State.DRAIN):
                m.d.sync += [row.eq(row_after), row_after.eq(row_after + 1)]
            with m.If((state == _State.HEADER) | (state == _State.BODY)):
                m.d.sync += [high.eq(high - size), end.eq(end - size)]

        m.d.comb += self.descriptor.ready.eq(take)
        with m.If(take):
            m.d.sync += state.eq(_State.IDLE)
            raw_bytes, bits = new.raw_bytes, block.bit_length() - 1
            count = ((raw_bytes >> bits) - (raw_bytes[:bits] == 0))[: len(raw_bytes) - bits]
            is_bypass = new.mode == Mode.BYPASS
            narrow = (new.dtype == ElementType.BFLOAT16) | (new.dtype == ElementType.FLOAT16)
            first = Signal(range(chunk + 1))
            m.d.comb += first.eq(Mux(raw_bytes <= chunk, raw_bytes, chunk))
            next_row = Signal(unsigned(g.row_bits))
            m.d.comb += next_row.eq(Mux(advance & (state != _State.DRAIN), row_after, row))
            with m.If(self.descriptor.valid & (raw_bytes != 0)):
                m.d.sync += [
                    state.eq(Mux(is_bypass, _State.BODY, _State.HEADER)),
                    high.eq(1),
                    body.eq(first),
                    end.eq(first),
                    start.eq(Cat(Const(0, size.bit_length() - 1), next_row)),
                    Cat(final, behind).eq(count),
                    tail.eq(raw_bytes[:bits]),
                    width.eq(Mux(narrow, 0, len(p.symbol_bits) - 1)),
                    bypass.eq(is_bypass),
                    discard.eq(new.mode == Mode.MEASURE),
                ]
        return m
