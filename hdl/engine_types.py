"""What travels between the parts of the engine, its sizes, and what it waits for."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import unsigned
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from planezip.hdl.decoder_types import DecoderGeometry
from planezip.hdl.types import ElementType, Mode, beat, descriptor
from planezip.model.format import Parameters, Tag

__all__ = [
    "LENGTH_BITS",
    "TAG_BITS",
    "Activity",
    "EngineGeometry",
    "chunk_order",
    "completion",
    "dealing_ports",
    "engine_descriptor",
    "tensor_end",
]

LENGTH_BITS = 40  # of a tensor's length in bytes
TAG_BITS = 16  # of the caller's tag


class Activity(enum.Enum, shape=3):
    """What a side of the engine does in a cycle."""

    MOVE = 0  # a beat moves
    IDLE = 1  # no descriptor, or no chunk that was dealt
    STREAM = 2  # waits for the neighbour: the source's beat, or the sink to be ready
    LANE = 3  # waits for the lane whose turn it is
    QUEUE = 4  # waits for the queues of chunks and tensors: completions are not taken
    TURN = 5  # between tensors or chunks: empty tensor, header, bytes behind the last chunk


class EngineGeometry:
    """Sizes of an engine of ``lanes`` lanes each way.

    Attributes
    ----------
    raw, wire : int
        Bytes of a beat of a port: 32 and 64 per lane.
    lane_raw, lane_wire : int
        Bytes of a beat of a lane.
    chunk : int
        Raw bytes of a full chunk.
    raw_rows, wire_rows : int
        Beats that a chunk needs to cross while its lane works on it: all but the share of
        one lane, and four more.

    Raises
    ------
    TypeError, ValueError
        If ``parameters`` is of the wrong kind or describes another block, or ``lanes`` is
        not 1, 2 or 4.
    """

    def __init__(self, parameters: Parameters, lanes: int) -> None:
        if not isinstance(lanes, int):
            raise TypeError(f"lanes must be an integer, not {lanes!r}")
        if lanes not in (1, 2, 4):
            raise ValueError(f"lanes must be 1, 2 or 4, not {lanes!r}")
        decoder = DecoderGeometry(parameters)
        if parameters.block_bits != 1024:
            raise ValueError(f"parameters must have blocks of 1024 bits, not {parameters!r}")
        self.parameters = parameters
        self.lanes = lanes
        self.lane_raw = decoder.beat // 8
        self.lane_wire = decoder.wire // 8
        self.raw = lanes * self.lane_raw
        self.wire = lanes * self.lane_wire
        self.block = parameters.block_bits // 8
        self.chunk = parameters.chunk_bits // 8
        share = self.chunk - self.chunk // lanes
        self.raw_rows = share // self.raw + 4
        self.wire_rows = share // self.wire + 4
        self.intake_rows = 4 * lanes
        self.chunks = 16 * lanes  # in flight between dealing and merging
        self.tensors = 16 * lanes  # whose last bytes are on their way

    def __repr__(self) -> str:
        return f"EngineGeometry({self.parameters!r}, {self.lanes})"


def engine_descriptor() -> data.StructLayout:
    """Descriptor of a tensor: element type, mode, the caller's tag, length in bytes.

    ``wire_bytes`` is the length of the compressed stream (in mode BYPASS: the raw length again);
    the compressor does not look at it.
    """
    return data.StructLayout(
        {
            "raw_bytes": unsigned(LENGTH_BITS),
            "wire_bytes": unsigned(LENGTH_BITS + 1),
            "dtype": ElementType,
            "mode": Mode,
            "tag": unsigned(TAG_BITS),
        }
    )


def completion(parameters: Parameters) -> data.StructLayout:
    """What became of a tensor.

    ``wire_bytes``: bytes of the stream, headers included, written, taken, or in mode MEASURE
    that would have been written. ``blocks`` per encoding, as :class:`planezip.model.format.Tag`.
    ``cycles`` from the descriptor to the last byte. ``error``: first fault
    (:class:`planezip.model.errors.ErrorCode`) or 0, in ``chunk`` and ``block``. ``framing``: ends
    of beats were not where the lengths of the descriptor say.
    """
    per_block = (parameters.block_bits // 8).bit_length() - 1
    per_chunk = (parameters.chunk_bits // 8).bit_length() - 1
    return data.StructLayout(
        {
            "tag": unsigned(TAG_BITS),
            "error": unsigned(4),
            "framing": 1,
            "block": range(parameters.blocks_per_chunk),
            "chunk": unsigned(LENGTH_BITS - per_chunk + 1),
            "raw_bytes": unsigned(LENGTH_BITS),
            "wire_bytes": unsigned(LENGTH_BITS + 1),
            "cycles": unsigned(LENGTH_BITS),
            "blocks": data.ArrayLayout(unsigned(LENGTH_BITS - per_block + 1), len(Tag)),
        }
    )


def chunk_order(lanes: int) -> data.StructLayout:
    """A chunk that was dealt: its lane, last of its tensor; ``none``: an empty tensor; ``bare``:
    without a header."""
    return data.StructLayout({"lane": range(max(2, lanes)), "last": 1, "none": 1, "bare": 1})


def tensor_end() -> data.StructLayout:
    """A tensor that was dealt: for its completion. ``output``: bytes leave the engine;
    ``extra``: bytes were left behind the last chunk; ``start``: cycle of the descriptor."""
    return data.StructLayout(
        {
            "tag": unsigned(TAG_BITS),
            "raw_bytes": unsigned(LENGTH_BITS),
            "wire_bytes": unsigned(LENGTH_BITS + 1),
            "start": unsigned(LENGTH_BITS),
            "framing": 1,
            "extra": 1,
            "output": 1,
        }
    )


def dealing_ports(source: str, size: int, lanes: int) -> dict[str, Any]:
    """Ports of what cuts tensors and gives the pieces to lanes: ``source`` has their bytes.

    ``size`` is the number of bytes of a row, at the source and at each lane.
    """
    return {
        "descriptor": In(stream.Signature(engine_descriptor())),
        source: In(stream.Signature(beat(size))),
        "now": In(unsigned(LENGTH_BITS)),
        "descriptors": Out(stream.Signature(descriptor())).array(lanes),
        "rows": Out(stream.Signature(beat(size))).array(lanes),
        "merge": Out(stream.Signature(chunk_order(lanes))),
        "tally": Out(stream.Signature(chunk_order(lanes))),
        "ends": Out(stream.Signature(tensor_end())),
        "activity": Out(Activity),
    }
