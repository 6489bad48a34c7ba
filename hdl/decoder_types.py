"""What travels between the parts of the decompressor lane, and its sizes."""

from __future__ import annotations

from math import isqrt

from amaranth.hdl import Cat, Module, Value, unsigned
from amaranth.lib import data

from planezip.hdl.delta import width_shape
from planezip.hdl.parser_shape import ParserShape
from planezip.hdl.summary import PlaneClass
from planezip.hdl.wires import any_of, wire
from planezip.model.format import TAG_BITS, Parameters, log2_ceil

__all__ = [
    "BLOCKS_IN_FLIGHT",
    "CHUNKS_IN_FLIGHT",
    "GUARD_BITS",
    "DecoderGeometry",
    "block_end",
    "chunk_entry",
    "decode_report",
    "decoded_beat",
    "parsed_block",
    "slot_geometry",
]

BLOCKS_IN_FLIGHT = 10  # in the pipeline and the output buffer: 9 are enough for the rate
CHUNKS_IN_FLIGHT = 8  # in the pipeline and among the reports: enough for the rate
GUARD_BITS = 8  # read before the payload: the padding of a chunk may end there
_ERROR_BITS = 4


class DecoderGeometry:
    """Sizes of the decompressor, in bits where not said otherwise.

    A block is a square of S x S bits: S symbols of S bits, or 2 S of S / 2 bits (from S = 16
    on). It takes four cycles, a **slot** of S / 4 planes (or a quarter of the symbols) each; a
    slot consists of **pieces** of S bits.

    The ring is kept in banks of a quarter wire beat, as many as a window of it needs: a control
    string, or the payload of a slot.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or describes another block.
    """

    slots = 4

    def __init__(self, parameters: Parameters, beats_per_block: int = 4) -> None:
        if not isinstance(parameters, Parameters):
            raise TypeError(f"parameters must be a Parameters object, not {parameters!r}")
        bits = parameters.block_bits
        self.piece = side = isqrt(bits)
        widths = {side, side // 2} if side >= 16 else {side}
        if side * side != bits or side < 4 or not set(parameters.symbol_bits) <= widths:
            raise ValueError(
                "parameters must have blocks of S x S bits and symbols of S bits, or S / 2 from"
                f" S = 16 on, not {parameters!r}"
            )
        if beats_per_block not in (2, 4):
            raise ValueError(f"beats_per_block must be 2 or 4, not {beats_per_block!r}")
        if bits % (8 * beats_per_block):
            raise ValueError(f"a beat must be whole bytes, not {bits / beats_per_block!r} bits")
        self.parameters = parameters
        self.slot = bits // self.slots
        self.pieces = self.slot // side  # of a slot
        self.beats = beats_per_block  # of a block, on the raw side
        self.beat = bits // beats_per_block
        self.wire = 2 * self.beat
        self.bank = self.wire // 4
        self.symbols = parameters.symbols_per_block  # of a block, at the narrowest width
        self.widest = parameters.symbol_bits[-1]
        codes = ParserShape.of(parameters, self.slots)
        self.control = max(self.symbols, self.widest) + codes.window + codes.unit
        self.payload = GUARD_BITS + self.symbols - 1 + self.slot + 14
        window = max(self.control, self.payload) + self.bank - 1
        self.banks = max(4, 1 << (-(-window // self.bank) - 1).bit_length())
        self.line = self.banks * self.bank  # what is read at once
        self.rows = max(32, 2 * parameters.chunk_bits // self.wire)  # wire beats of the ring
        self.row_bits = log2_ceil(self.rows)
        self.byte_bits = self.row_bits + log2_ceil(self.wire // 8)
        self.position_bits = self.byte_bits + 3
        self.word_bits = self.row_bits + 2
        self.bank_select = log2_ceil(self.banks)

    def __repr__(self) -> str:
        return f"DecoderGeometry({self.parameters!r}, {self.beats!r})"

    def turned(self, m: Module, data: Value, first: Value) -> Value:
        """What lies in the ring from word ``first`` on, from the banks as they are."""
        banks = [data[k : k + self.bank] for k in range(0, self.line, self.bank)]
        select = first[: self.bank_select]
        chosen: list[Value] = [wire(m, select == b, "chosen") for b in range(self.banks)]
        turned = [
            any_of(
                [
                    banks[(k + b) % self.banks] & on.replicate(self.bank)
                    for b, on in enumerate(chosen)
                ]
            )
            for k in range(self.banks)
        ]
        return wire(m, Cat(turned), "turned")


def slot_geometry(parameters: Parameters) -> DecoderGeometry:
    """For parts that only know slots: their sizes do not depend on the beats of a block."""
    return DecoderGeometry(parameters, 2)


def chunk_entry(parameters: Parameters, beats_per_block: int = 4) -> data.StructLayout:
    """A chunk whose body lies in the ring, or will never come.

    ``start`` and ``end`` of the body are byte addresses in the ring; ``release`` is the row
    from which on the ring is still needed after the chunk; ``error`` is CHUNK_SIZE or
    STREAM_END (then there is no body) or 0; ``extra``: bytes follow the tensor's last chunk.
    """
    g = DecoderGeometry(parameters, beats_per_block)
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


def parsed_block(parameters: Parameters, beats_per_block: int = 4) -> data.StructLayout:
    """A block whose control string is read: kind, codes, and where its payload starts.

    ``order``: the payload is symbols (RAW, ZVC, raw chunks: every mask bit set but for
    ZVC); else planes, top plane first in ``classes``, DBX's plane w in ``top``. ``base``: of
    DBX, in its lowest w bits (nobody reads those above). ``n``: plane width; ``field``: bits
    of a position. ``pad``: bits left behind the last block of a coded chunk, to be looked at
    if ``pad_above`` or ``pad_below`` the payload.
    """
    g = DecoderGeometry(parameters, beats_per_block)
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
    return data.StructLayout(
        {
            "error": unsigned(_ERROR_BITS),
            "trailing": 1,
            "extra": 1,
            "last_of_chunk": 1,
            "last_of_tensor": 1,
            "tail": range(parameters.block_bits // 8),
            "index": range(parameters.blocks_per_chunk),
            "tag": unsigned(TAG_BITS),
            "raw": 1,
            "bypass": 1,
            "discard": 1,
            "body_bytes": range(parameters.chunk_bits // 8 + 1),
        }
    )


def decoded_beat(parameters: Parameters, beats_per_block: int = 4) -> data.StructLayout:
    """Raw beat: ``data``, ``bytes``, ``last`` as in :func:`planezip.hdl.types.beat`, and ``bad``:
    not data (then zero) but a placeholder, so that the count of bytes holds."""
    size = DecoderGeometry(parameters, beats_per_block).beat // 8
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
