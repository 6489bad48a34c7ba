"""What pass 1 hands to pass 2: chunk records and block summaries.

Interface between pass 1 (the chunk buffer, ``hdl/chunk_buffer.py``) and pass 2
(``hdl/serializer.py``, component ``Serializer(parameters, beats_per_block=4)``). The
serializer has these ports, the chunk buffer the same ones flipped:

| port | signature | one item per |
|---|---|---|
| ``chunks`` | ``In(stream.Signature(chunk_record(parameters)))`` | chunk |
| ``summaries`` | ``In(stream.Signature(block_summary(parameters)))`` | block |
| ``beats`` | ``In(stream.Signature(unsigned(beat_bits)))`` | beat, ``beats_per_block`` a block |
| ``wire`` | ``Out(stream.Signature(beat(beat_bits // 4)))`` | beat of twice the raw one |

``beat_bits = block_bits // beats_per_block`` (256); it is a multiple of 8 and of the
widest symbol.

Order: blocks of a coded body come in stream order (0, 2, 4, ..., then the odd ones
downwards), blocks of a raw or bypassed one in natural order 0 ... m-1; beats within a
block always ascend. A raw or bypassed block has a summary too (to be taken and ignored).

Timing: the summary of a block becomes valid before the first beat of the block, by one
cycle if nothing stands still; a chunk record in the same cycle as the first summary of the
chunk. Record and summary are held until each is accepted on its own. The chunk buffer reads
the beats of a block one after the other as they are taken, and the next summary (and record)
when the one before is taken: a serializer that takes both not later than the cycle before it
takes the last beat of their block sees a beat in every cycle, without a bubble between
blocks, chunks or tensors.

Wire bytes of a chunk:

* coded (``raw = bypass = 0``): 16-bit header ``body_bytes``, the even blocks upwards,
  ``padding`` zero bits, the odd blocks (highest first, each payload then bit-reversed
  control);
* raw (``raw = 1, bypass = 0``): 16-bit header ``body_bytes = 128 m``, then the beats;
* bypassed (``bypass = 1, raw = 1``): no header, the first ``body_bytes`` bytes of the
  beats (not a multiple of 128 at the end of a tensor; the bytes above are zero).

``last`` marks the last chunk of a tensor: its last byte ends a wire beat with ``last``
set; all wire beats before are full, and the next tensor starts on a new beat. A tensor
without bytes never reaches pass 2, nor does one in mode MEASURE.
"""

from __future__ import annotations

from amaranth.hdl import unsigned
from amaranth.lib import data, enum

from planezip.model.format import TAG_BITS, Parameters, PlaneCode

__all__ = ["PlaneClass", "block_summary", "chunk_record", "plane_class"]


class PlaneClass(enum.Enum, shape=3):
    """Class of a plane; runs of ZERO are formed by pass 2 (docs/format.md, Plane codes).

    Bit 2 says "code of five bits"; bits 0 and 1 are then bits 3 and 4 of that code.
    A position follows in the payload if bits 0 and 2 are set.
    """

    VERBATIM = 0b000
    ZERO = 0b001
    ONES = 0b100
    PAIR = 0b101
    PRE_ZERO = 0b110
    ONE = 0b111


def plane_class(code: PlaneCode) -> PlaneClass:
    """Class of a plane code; a zero run consists of planes of class ZERO."""
    name = code.name if code != PlaneCode.ZERO_RUN else "ZERO"
    return next(member for member in PlaneClass if member.name == name)


def block_summary(parameters: Parameters) -> data.StructLayout:
    """Summary of a block: winner, its length, non-zero symbols, class of each plane of the winner.

    ``planes[k]`` is the class of plane w-1-k (the top one first) and ``extra`` that of
    plane w, which only DBX has and which comes before ``planes[0]``. Fields that the
    winner has no use for hold any value: ``planes[k]`` for k >= w, ``extra`` without DBX,
    all classes with RAW and ZVC. ``nonzero`` is valid for every winner, ``bits`` (length in
    the stream, tag included: pass 2 places a block before it has its payload) in coded bodies.
    """
    return data.StructLayout(
        {
            "tag": unsigned(TAG_BITS),
            "bits": range(parameters.block_bits + TAG_BITS + 1),
            "nonzero": range(parameters.symbols_per_block + 1),
            "extra": PlaneClass,
            "planes": data.ArrayLayout(PlaneClass, parameters.symbol_bits[-1]),
        }
    )


def chunk_record(parameters: Parameters) -> data.StructLayout:
    """Record of a chunk.

    ``blocks`` (m), ``body_bytes`` (0 to 128 m), ``padding`` (zero bits between the even
    and the odd blocks, 0 to 7), ``width`` (index into ``parameters.symbol_bits``), ``raw``
    (blocks as they are), ``bypass`` (no header), ``last`` (chunk of its tensor).
    """
    return data.StructLayout(
        {
            "blocks": range(parameters.blocks_per_chunk + 1),
            "body_bytes": range(parameters.chunk_bits // 8 + 1),
            "padding": unsigned(3),
            "width": range(max(2, len(parameters.symbol_bits))),
            "raw": 1,
            "bypass": 1,
            "last": 1,
        }
    )
