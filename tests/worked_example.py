"""The worked example of docs/format.md: `python -m tests.worked_example` prints it."""

from __future__ import annotations

import numpy as np

from planezip.model import reference
from planezip.model.format import DEFAULT, PlaneCode, Tag

W = 32


def text(bits: list[int] | tuple[int, ...]) -> str:
    """Bits in the order of the string, in groups of eight."""
    digits = "".join(map(str, bits))
    return " ".join(digits[k : k + 8] for k in range(0, len(digits), 8))


def example() -> tuple[list[float], list[float]]:
    """Two blocks of float32: around 1.0, and sparse."""
    near_one = [1.0] * 32
    near_one[5] = near_one[6] = 1.0 + 2.0**-7
    near_one[20] = -1.0
    sparse = [0.0] * 32
    sparse[3], sparse[17] = 1.5, 0.1
    return near_one, sparse


def symbols_of(values: list[float]) -> list[int]:
    """Float32 bit patterns."""
    return np.array(values, np.float32).view(np.uint32).tolist()


def plane_rows(symbols: list[int]) -> list[str]:
    """Table of the planes of BX, runs of zero planes as one row."""
    planes, pre, width = reference.transform(Tag.BX, symbols, W)
    rows, k = [], 0
    while k < len(planes):
        code, run = reference.plane_code(planes[k], pre[k], width), 1
        while code == PlaneCode.ZERO and planes[k + run : k + run + 1] == [0]:
            run += 1
        top = W - 1 - k
        if run > 1:
            bits = reference.bits_of(*PlaneCode.ZERO_RUN.prefix)
            bits += reference.bits_of(top - run + 1, DEFAULT.run_bits(Tag.BX, W))
            rows.append(f"| {top} to {top - run + 1} | 0 | ZERO_RUN | `{text(bits)}` | |")
        else:
            low = (planes[k] & -planes[k]).bit_length() - 1
            payload = ""
            if code in (PlaneCode.PAIR, PlaneCode.ONE):
                payload = f"{low}: `{text(reference.bits_of(low, 5))}`"
            if code == PlaneCode.VERBATIM:
                payload = f"`{text(reference.bits_of(planes[k], width))}`"
            bits = reference.bits_of(*code.prefix)
            rows.append(f"| {top} | {planes[k]:08x} | {code.name} | `{text(bits)}` | {payload} |")
        k += run
    return rows


def lines() -> list[str]:
    """The example as lines of Markdown."""
    near_one, sparse = map(symbols_of, example())
    out = [
        "A block of 32 float32 numbers: 1.0 (`3f800000`), but symbols 5 and 6 are 1.0078125",
        "(`3f810000`) and symbol 20 is -1.0 (`bf800000`). Bits in each encoding, tag included:",
        "",
    ]
    sizes = {tag.name: reference.encode_block(tag, near_one, W).bits for tag in Tag}
    out += [", ".join(f"{name} {bits}" for name, bits in sizes.items()) + ". BX wins; its planes:"]
    out += ["", "| plane | ones at (hex) | code | bits, first one left | payload |"]
    out += ["|---|---|---|---|---|", *plane_rows(near_one), ""]
    first = reference.select(near_one, W)
    second = reference.select(sparse, W)
    out += [
        f"control ({len(first.control)} bits): `{text(first.control)}`<br>",
        f"payload ({len(first.payload)} bits): `{text(first.payload)}`",
        "",
        "The second block of the chunk has 1.5 as symbol 3 and 0.1 as symbol 17, else zeros; its",
        f"winner is {second.tag.name}:",
        "",
        f"control ({len(second.control)} bits): `{text(second.control)}`<br>",
        f"payload ({len(second.payload)} bits): `{text(second.payload)}`",
        "",
    ]
    data = np.array(near_one + sparse, "<u4").tobytes()
    wire = reference.encode_chunk(data, W)
    size = len(wire) - 2
    used = first.bits + second.bits
    out += [
        f"Together {used} bits: the body has {size} bytes, {8 * size - used} bits of them padding.",
        "Block 0 lies at bits 0 upwards. Block 1 is odd: its control lies at bits",
        f"{8 * size - 1} downwards, its payload at bits {8 * size - second.bits} to "
        f"{8 * size - len(second.control) - 1} upwards. The chunk, header first:",
        "",
        *(f"    {wire[k : k + 16].hex(' ')}" for k in range(0, len(wire), 16)),
    ]
    return out


if __name__ == "__main__":
    print("\n".join(lines()))
