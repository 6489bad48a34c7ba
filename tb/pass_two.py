"""What pass 2 is given, and what it must write: chunk records, summaries, beats, wire beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from planezip.hdl.summary import PlaneClass, plane_class
from planezip.model.format import HEADER_BYTES, Parameters, Tag
from planezip.model.reference import (
    EncodedBlock,
    encode_block,
    number_of,
    plane_code,
    select,
    split_symbols,
    transform,
)

__all__ = ["Tensor", "forced", "smallest", "stream_order", "summary", "tensor", "wire_beats"]

Choose = Callable[[list[int], int], EncodedBlock]


@dataclass
class Tensor:
    """Streams into pass 2 for one tensor, and its bytes on the wire."""

    records: list[dict[str, Any]] = field(default_factory=list)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    beats: list[int] = field(default_factory=list)
    wire: bytes = b""


def smallest(parameters: Parameters) -> Choose:
    """The writer's choice."""
    return lambda symbols, w: select(symbols, w, parameters)


def stream_order(count: int) -> list[int]:
    """Blocks of a coded body in the order in which they are written."""
    return [*range(0, count, 2), *reversed(range(1, count, 2))]


def classes(tag: Tag, symbols: Sequence[int], w: int) -> list[int]:
    """Class of each plane, top one first."""
    if tag in (Tag.RAW, Tag.ZVC):
        return []
    planes, pre, width = transform(tag, symbols, w)
    return [plane_class(plane_code(a, b, width)).value for a, b in zip(planes, pre, strict=True)]


def summary(encoded: EncodedBlock, symbols: Sequence[int], w: int, noise: int) -> dict[str, Any]:
    """Summary of a block; fields that mean nothing get ``noise``."""
    values = [PlaneClass(c) for c in classes(encoded.tag, symbols, w)]
    any_class = list(PlaneClass)[noise % len(PlaneClass)]
    extra = values.pop(0) if encoded.tag == Tag.DBX else any_class
    return {
        "tag": encoded.tag,
        "bits": encoded.bits,
        "nonzero": sum(s != 0 for s in symbols),
        "extra": extra,
        "planes": values,
    }


def _body(blocks: Sequence[EncodedBlock]) -> tuple[bytes, int]:
    """Coded body and its padding bits."""
    total = sum(b.bits for b in blocks)
    front = [bit for b in blocks[::2] for bit in (*b.control, *b.payload)]
    back = [bit for b in blocks[1::2] for bit in (*b.control, *reversed(b.payload))]
    padding = -total % 8
    bits = [*front, *[0] * padding, *reversed(back)]
    return number_of(bits).to_bytes(len(bits) // 8, "little"), padding


def tensor(
    data: bytes,
    w: int,
    parameters: Parameters,
    beats_per_block: int,
    choose: Choose,
    *,
    bypass: bool = False,
    raw: Callable[[int, int], bool] = lambda coded, whole: coded >= whole,
    noise: int = 0,
) -> Tensor:
    """Streams for a tensor of ``data``; ``raw(coded bytes, raw bytes)`` decides per chunk."""
    result = Tensor()
    size = parameters.block_bits // 8
    padded = data + bytes(-len(data) % size)
    for at in range(0, len(padded), size * parameters.blocks_per_chunk):
        chunk = padded[at : at + size * parameters.blocks_per_chunk]
        blocks = [chunk[k : k + size] for k in range(0, len(chunk), size)]
        symbols = [split_symbols(block, w) for block in blocks]
        encoded = [choose(s, w) for s in symbols]
        body, padding = _body(encoded)
        is_raw = bypass or raw(len(body), len(chunk))
        record = {
            "blocks": len(blocks),
            "body_bytes": len(body),
            "padding": padding,
            "width": parameters.symbol_bits.index(w),
            "raw": is_raw,
            "bypass": bypass,
            "last": at + len(chunk) >= len(padded),
        }
        if is_raw:
            body = data[at : at + len(chunk)] if bypass else chunk
            record |= {"body_bytes": len(body), "padding": noise % 8}
        if not bypass:
            result.wire += len(body).to_bytes(HEADER_BYTES, "little")
        result.wire += body
        result.records.append(record)
        for k in range(len(blocks)) if is_raw else stream_order(len(blocks)):
            result.summaries.append(summary(encoded[k], symbols[k], w, noise + k))
            number = int.from_bytes(blocks[k], "little")
            bits = parameters.block_bits // beats_per_block
            result.beats += [
                number >> j & ((1 << bits) - 1) for j in range(0, parameters.block_bits, bits)
            ]
    return result


def wire_beats(data: bytes, size: int) -> list[dict[str, int]]:
    """Beats of ``size`` bytes for the bytes of a tensor."""
    cuts = [data[k : k + size] for k in range(0, len(data), size)]
    return [
        {"data": int.from_bytes(cut, "little"), "bytes": len(cut), "last": k == len(cuts) - 1}
        for k, cut in enumerate(cuts)
    ]


def forced(tag: Tag, parameters: Parameters) -> Choose:
    """``tag`` wherever it is not longer than RAW can be, else the smallest encoding."""

    def choose(symbols: list[int], w: int) -> EncodedBlock:
        if tag in parameters.encodings:
            encoded = encode_block(tag, symbols, w, parameters)
            if encoded.bits < 2 << (parameters.block_bits + 3).bit_length() - 1:
                return encoded
        return select(symbols, w, parameters)

    return choose
