"""Payloads of the streams between components, lanes and the engine."""

from __future__ import annotations

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data, enum

from planezip.model.format import Parameters, Tag

__all__ = ["ElementType", "Mode", "beat", "chunk_report", "descriptor"]


class Mode(enum.Enum, shape=2):
    """What the lane does with a tensor."""

    STREAM = 0  # compress or decompress
    BYPASS = 1  # move the raw bytes, without headers
    MEASURE = 2  # report sizes, discard the output


class ElementType(enum.Enum, shape=4):
    """Element type of a tensor; the first two have 16-bit symbols, all others 32-bit ones."""

    BFLOAT16 = 0
    FLOAT16 = 1
    FLOAT32 = 2
    FLOAT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    UINT8 = 8
    UINT16 = 9
    UINT32 = 10
    UINT64 = 11
    BOOL = 12
    OTHER = 15


def beat(byte_count: int) -> data.StructLayout:
    """Beat of ``byte_count`` bytes: ``data``, ``bytes`` (valid ones), ``last`` (of the tensor)."""
    return data.StructLayout(
        {"data": unsigned(8 * byte_count), "bytes": range(byte_count + 1), "last": 1}
    )


def descriptor(length_bits: int = 40, tag_bits: int = 8) -> data.StructLayout:
    """Copy descriptor: element type, tensor length in bytes, mode, and the caller's tag."""
    return data.StructLayout(
        {
            "dtype": ElementType,
            "raw_bytes": unsigned(length_bits),
            "mode": Mode,
            "tag": unsigned(tag_bits),
        }
    )


def chunk_report(parameters: Parameters) -> data.StructLayout:
    """Report of one chunk: body bytes, blocks per encoding, stored raw, last of the tensor."""
    return data.StructLayout(
        {
            "body_bytes": range(parameters.chunk_bits // 8 + 1),
            "blocks": data.ArrayLayout(
                Shape.cast(range(parameters.blocks_per_chunk + 1)), len(Tag)
            ),
            "raw": 1,
            "last": 1,
        }
    )
