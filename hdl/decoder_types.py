"""What travels between the parts of the decompressor lane, and its sizes."""

from __future__ import annotations

from amaranth.hdl import unsigned
from amaranth.lib import data

from planezip.hdl.delta import width_shape
from planezip.hdl.summary import PlaneClass
from planezip.model.format import TAG_BITS, Parameters, log2_ceil

__all__ = [
    "BLOCKS_IN_FLIGHT",
    "DecoderGeometry",
    "block_end",
    "chunk_entry",
    "decode_report",
    "decoded_beat",
    "parsed_block",
]

BLOCKS_IN_FLIGHT = 16  # in the pipeline and the output buffer
_ERROR_BITS = 4


class DecoderGeometry:
    """Sizes of the decompressor, in bits where not said otherwise.

    A block is 1024 bits, as in the paper; its chunks may have fewer blocks, and one of
    the two symbol widths may be missing.

    Raises
    ------
    TypeError, ValueError
        If ``parameters`` is of the wrong kind or describes another block.
    """

    def __init__(self, parameters: Parameters) -> None:
        if not isinstance(parameters, Parameters):
            raise TypeError(f"parameters must be a Parameters object, not {parameters!r}")
        if parameters.block_bits != 1024 or not set(parameters.symbol_bits) <= {16, 32}:
            raise ValueError(
                "parameters must have blocks of 1024 bits and symbols of 16 or 32 bits,"
                f" not {parameters!r}"
            )
        self.parameters = parameters
        self.beats = 4  # raw beats, slots of planes and cycles of a block
        self.beat = parameters.block_bits // self.beats
        self.wire = 2 * self.beat
        self.bank = self.wire // 4
        self.rows = max(32, 2 * parameters.chunk_bits // self.wire)
        self.row_bits = log2_ceil(self.rows)
        self.byte_bits = self.row_bits + log2_ceil(self.wire // 8)
        self.position_bits = self.byte_bits + 3
        self.word_bits = self.row_bits + 2
        self.symbols = parameters.symbols_per_block  # of a block, at the narrowest width
        self.widest = parameters.symbol_bits[-1]


def chunk_entry(parameters: Parameters) -> data.StructLayout:
    """A chunk whose body lies in the ring, or will never come.

    ``start`` and ``end`` of the body are byte addresses in the ring; ``release`` is the row
    from which on the ring is still needed after the chunk; ``error`` is CHUNK_SIZE or
    STREAM_END (then there is no body) or 0; ``extra``: bytes follow the tensor's last chunk.
    """
    g = DecoderGeometry(parameters)
    return data.StructLayout(
        {
            "start": unsigned(g.byte_bits),
            "end": unsigned(g.byte_bits),
            "release": unsigned(g.row_bits),
            "body_bytes": range(parameters.chunk_bits // 8 + 1),
            "last_block": range(parameters.blocks_per_chunk),
            "width": width_shape(parameters),
            "raw": 1,
            "bypass": 1,
            "discard": 1,
            "last": 1,
            "tail": range(parameters.block_bits // 8),
            "error": unsigned(_ERROR_BITS),
            "extra": 1,
        }
    )


def parsed_block(parameters: Parameters) -> data.StructLayout:
    """A block whose control string is read: kind, codes, and where its payload starts.

    ``order``: the payload is symbols (RAW, ZVC, raw chunks: every mask bit set but for
    ZVC); else planes, top plane first in ``classes``, DBX's plane w in ``top``. ``n``:
    plane width; ``field``: bits of a position. ``pad``: bits left behind the last block
    of a coded chunk, to be looked at if ``pad_above`` or ``pad_below`` the payload.
    """
    g = DecoderGeometry(parameters)
    return data.StructLayout(
        {
            "valid": 1,
            "width": width_shape(parameters),
            "order": 1,
            "dbx": 1,
            "zbx": 1,
            "mask": unsigned(g.symbols),
            "base": unsigned(g.widest),
            "top": PlaneClass,
            "classes": data.ArrayLayout(PlaneClass, g.widest),
            "n": range(g.symbols + 1),
            "field": range(log2_ceil(g.symbols) + 1),
            "start": unsigned(g.position_bits),
            "pad": range(8),
            "pad_above": 1,
            "pad_below": 1,
        }
    )


def block_end(parameters: Parameters) -> data.StructLayout:
    """What the output must know of a block: its faults so far, its place, its chunk."""
    entry = chunk_entry(parameters)
    return data.StructLayout(
        {
            "error": unsigned(_ERROR_BITS),
            "trailing": 1,
            "extra": 1,
            "last_of_chunk": 1,
            "last_of_tensor": 1,
            "tail": entry["tail"].shape,
            "index": range(parameters.blocks_per_chunk),
            "tag": unsigned(TAG_BITS),
            "raw": 1,
            "bypass": 1,
            "discard": 1,
            "body_bytes": entry["body_bytes"].shape,
        }
    )


def decoded_beat(parameters: Parameters) -> data.StructLayout:
    """Raw beat: ``data``, ``bytes``, ``last`` as in :func:`planezip.hdl.types.beat`, and ``bad``:
    not data (then zero) but a placeholder, so that the count of bytes holds."""
    size = DecoderGeometry(parameters).beat // 8
    return data.StructLayout(
        {"data": unsigned(8 * size), "bytes": range(size + 1), "last": 1, "bad": 1}
    )


def decode_report(parameters: Parameters) -> data.StructLayout:
    """Report of one chunk.

    ``body_bytes`` as the header says (0 if there is no valid header); ``blocks`` delivered,
    per encoding; ``raw``; ``last`` of the tensor; ``error``: the first fault, a value of
    :class:`planezip.model.errors.ErrorCode`, or 0; ``block``: where it is.
    """
    block = range(parameters.blocks_per_chunk)
    return data.StructLayout(
        {
            "body_bytes": range(parameters.chunk_bits // 8 + 1),
            "blocks": data.ArrayLayout(unsigned(parameters.blocks_per_chunk.bit_length()), 5),
            "raw": 1,
            "last": 1,
            "error": unsigned(_ERROR_BITS),
            "block": block,
        }
    )
