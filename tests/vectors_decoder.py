"""Decoder written from tests/vectors/README.md alone: nothing of planezip is imported.

Slow and plain: it shows that the page is enough.
"""

from __future__ import annotations

Codes = list[tuple[str, int]]

ERRORS = ["CHUNK_SIZE", "STREAM_END", "TAG", "RUN", "POSITION", "OVERRUN"]
ERRORS += ["TRAILING", "PADDING", "TAIL", "EXTRA"]
NAMES = {"00000": "ONES", "00001": "PRE_ZERO", "00010": "PAIR", "00011": "ONE"}
NAMES |= {"1": "VERBATIM", "01": "ZERO_RUN", "001": "ZERO"}


class Fault(Exception):
    """First fault of a stream: its number, its block within the chunk."""

    def __init__(self, name: str, block: int = 0) -> None:
        super().__init__(name)
        self.code, self.block = ERRORS.index(name) + 1, block


def number(bits: str) -> int:
    """The number whose least significant bit is the first one."""
    return int("0" + bits[::-1], 2)


def log2_up(n: int) -> int:
    bits = 0
    while 1 << bits < n:
        bits += 1
    return bits


def read_codes(control: str, at: int, planes: int) -> tuple[Codes, int, bool]:
    """Codes with the planes each covers, the end of the control bits, and whether a run is bad."""
    codes: Codes = []
    plane = planes - 1
    while plane >= 0:
        length = next(k for k in range(1, 6) if control[at : at + k] in NAMES)
        name = NAMES[control[at : at + length]]
        at += length
        covers = 1
        if name == "ZERO_RUN":
            field = log2_up(planes - 1)
            covers = plane - number(control[at : at + field]) + 1
            at += field
            if covers < 2:
                return codes, at, True
        codes.append((name, covers))
        plane -= covers
    return codes, at, False


def values_of(codes: Codes, payload: str, n: int, block: int) -> list[int]:
    """Values of the symbols or deltas."""
    above, at, values = 0, 0, [0] * n
    for name, covers in codes:
        count = {"VERBATIM": n, "PAIR": log2_up(n), "ONE": log2_up(n)}.get(name, 0)
        piece = number(payload[at : at + count])
        at += count
        if (name == "ONE" and piece >= n) or (name == "PAIR" and piece + 1 >= n):
            raise Fault("POSITION", block)
        x = {"VERBATIM": piece, "ONES": (1 << n) - 1, "PRE_ZERO": above}.get(name, 0)
        if name in ("PAIR", "ONE"):
            x = (3 if name == "PAIR" else 1) << piece
        for _ in range(covers):
            above ^= x
            values = [2 * v + (above >> i & 1) for i, v in enumerate(values)]
    return values


def decode_block(body: str, f: int, g: int, block: int, w: int) -> tuple[list[int], int]:
    """Symbols of the block that starts at f (even) or ends at g (odd); the bits it takes."""
    n_all = 1024 // w
    if g - f < 3:
        raise Fault("OVERRUN", block)
    control = (body[:g][::-1] if block % 2 else body[f:]) + "0" * 400
    tag, at = number(control[:3]), 3
    if tag > 4:
        raise Fault("TAG", block)
    mask, base, n = [True] * n_all, 0, n_all
    if tag in (1, 4):
        mask = [bit == "1" for bit in control[3 : 3 + n_all]]
        at, n = 3 + n_all, sum(mask)
    elif tag == 2:
        base, at, n = number(control[3 : 3 + w]), 3 + w, n_all - 1
    codes, at, bad = read_codes(control, at, {2: w + 1, 3: w, 4: w}.get(tag, 0))
    if at > g - f:
        raise Fault("OVERRUN", block)
    if bad:
        raise Fault("RUN", block)
    sizes = {"VERBATIM": n, "PAIR": log2_up(n), "ONE": log2_up(n)}
    length = n * w if tag < 2 else sum(sizes.get(name, 0) for name, _ in codes)
    if at + length > g - f:
        raise Fault("OVERRUN", block)
    start = g - at - length if block % 2 else f + at
    payload = body[start : start + length]
    if tag < 2:
        values = [number(payload[k : k + w]) for k in range(0, length, w)]
    else:
        values = values_of(codes, payload, n, block)
    if tag == 2:
        symbols = [base]
        for value in values:
            symbols.append((symbols[-1] + value) % (1 << w))
    else:
        rest = iter(values)
        symbols = [next(rest) if some else 0 for some in mask]
    return symbols, at + length


def decode_body(body: bytes, m: int, w: int, out: bytearray) -> None:
    """Appends the m blocks of a coded body."""
    bits = "".join(f"{byte:08b}"[::-1] for byte in body)
    f, g = 0, len(bits)
    for block in range(m):
        symbols, length = decode_block(bits, f, g, block, w)
        f, g = (f, g - length) if block % 2 else (f + length, g)
        if block == m - 1 and g - f >= 8:
            raise Fault("TRAILING", block)
        if block == m - 1 and "1" in bits[f:g]:
            raise Fault("PADDING", block)
        out += b"".join(symbol.to_bytes(w // 8, "little") for symbol in symbols)


def decode(stream: bytes, raw_bytes: int, w: int) -> tuple[bytes, tuple[int, int, int] | None]:
    """What a decoder delivers, and the fault: code, chunk, block."""
    out = bytearray()
    blocks = (raw_bytes + 127) // 128
    chunks = (blocks + 31) // 32
    at = chunk = 0
    try:
        for chunk in range(chunks):
            m = min(32, blocks - 32 * chunk)
            if len(stream) - at < 2:
                raise Fault("STREAM_END")
            size = int.from_bytes(stream[at : at + 2], "little")
            if size > 128 * m:
                raise Fault("CHUNK_SIZE")
            body = stream[at + 2 : at + 2 + size]
            if len(body) < size:
                raise Fault("STREAM_END")
            at += 2 + size
            if size == 128 * m:
                out += body
            else:
                decode_body(body, m, w, out)
        if any(out[raw_bytes:]):
            del out[-128:]
            raise Fault("TAIL", m - 1)
        if at < len(stream):
            raise Fault("EXTRA")
    except Fault as fault:
        return bytes(out[:raw_bytes]), (fault.code, chunk, fault.block)
    return bytes(out[:raw_bytes]), None
