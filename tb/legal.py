"""Streams that a reader must accept though the encoder never writes them, and broken ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from planezip.model.format import (
    DEFAULT,
    HEADER_BYTES,
    TAG_BITS,
    Parameters,
    PlaneCode,
    Tag,
    log2_ceil,
)
from planezip.model.reference import bits_of, number_of

__all__ = ["STYLES", "Form", "LegalBlock", "broken", "chunk_of", "forms", "legal_block"]
__all__ += ["legal_chunk", "slowest_forms"]

STYLES = ("any", "longest", "most codes", "no payload", "shortest", "slowest")
_POSITIONED = (PlaneCode.PAIR, PlaneCode.ONE)


@dataclass
class LegalBlock:
    """Control and payload bits of a block, first bit first."""

    control: list[int]
    payload: list[int] = field(default_factory=list)

    @property
    def bits(self) -> int:
        return len(self.control) + len(self.payload)


@dataclass(frozen=True)
class Form:
    """A block of one code only: what a parser must do for it, and what it brings."""

    tag: Tag
    width: int  # of a plane
    code: PlaneCode
    codes: int
    payload_bits: int
    control_bits: int


@cache
def forms(w: int, p: Parameters = DEFAULT) -> tuple[Form, ...]:
    """All blocks of one code, runs of two planes among them."""
    n = p.symbols(w)
    result: list[Form] = []
    for tag in sorted(t for t in p.encodings if p.planes(t, w)):
        planes = p.planes(tag, w)
        head = TAG_BITS + {Tag.DBX: w, Tag.ZBX: n}.get(tag, 0)
        for width in {Tag.DBX: (n - 1,), Tag.BX: (n,)}.get(tag, range(n + 1)):
            for code in PlaneCode:
                if width < {PlaneCode.PAIR: 2, PlaneCode.ONE: 1}.get(code, 0):
                    continue
                run = code == PlaneCode.ZERO_RUN
                codes = planes // 2 if run else planes
                bits = code.prefix[1] + (p.run_bits(tag, w) if run else 0)
                each = width if code == PlaneCode.VERBATIM else 0
                each = log2_ceil(width) if code in _POSITIONED else each
                result.append(Form(tag, width, code, codes, codes * each, head + codes * bits))
    return tuple(result)


@cache
def slowest_forms(w: int, p: Parameters = DEFAULT) -> tuple[Form, ...]:
    """The forms with the most codes, of these with the least payload, of these the longest."""

    def cost(form: Form) -> tuple[int, int, int]:
        return form.codes, -form.payload_bits, form.control_bits

    every = forms(w, p)
    most = max(map(cost, every), default=None)
    return tuple(form for form in every if cost(form) == most)


def legal_block(
    rng: random.Random, w: int, p: Parameters = DEFAULT, style: str = "any"
) -> LegalBlock:
    """A block of any codes in range.

    ``style``: "longest" (every plane verbatim), "most codes" (no runs), "no payload" (as many code
    bits as possible without), "shortest", "slowest" (:func:`slowest_forms`), "any".
    """
    n = p.symbols(w)
    if style == "slowest" and (forms := slowest_forms(w, p)):
        form = rng.choice(forms)
        ones = rng.sample(range(n), form.width) if form.tag == Tag.ZBX else []
        control = bits_of(form.tag, TAG_BITS)
        control += bits_of(sum(1 << k for k in ones), n) if form.tag == Tag.ZBX else []
        control += bits_of(rng.getrandbits(w), w) if form.tag == Tag.DBX else []
        kinds = [f.code for f in forms if (f.tag, f.width) == (form.tag, form.width)]
        for _ in range(form.codes):
            control += bits_of(*rng.choice(kinds).prefix)
        return LegalBlock(control, [0] * form.payload_bits)
    tags = sorted(p.encodings)
    planes = [tag for tag in tags if p.planes(tag, w)]
    tag = rng.choice(planes if planes and style != "any" else tags)
    if style == "longest" and Tag.DBX in planes:
        tag = Tag.DBX
    control, payload = bits_of(tag, TAG_BITS), []
    sparse = rng.getrandbits(n) & rng.getrandbits(n)
    mask = rng.choice((0, (1 << n) - 1, rng.getrandbits(n), sparse))
    if tag in (Tag.ZVC, Tag.ZBX):
        control += bits_of(mask, n)
    if tag == Tag.DBX:
        control += bits_of(rng.getrandbits(w), w)
    if tag in (Tag.RAW, Tag.ZVC):
        count = n if tag == Tag.RAW else mask.bit_count()
        return LegalBlock(control, bits_of(rng.getrandbits(max(1, count * w)), count * w))
    width = {Tag.DBX: n - 1, Tag.BX: n}.get(tag, mask.bit_count())
    left, run_bits = p.planes(tag, w), p.run_bits(tag, w)
    weights = [rng.random() for _ in PlaneCode]
    while left:
        codes = [c for c in PlaneCode if c != PlaneCode.ZERO_RUN or left > 1]
        if width < 2:
            codes.remove(PlaneCode.PAIR)
        if width < 1:
            codes.remove(PlaneCode.ONE)
        code = rng.choices(codes, [weights[c] + 1e-6 for c in codes])[0]
        if style == "longest":
            code = PlaneCode.VERBATIM
        elif style == "most codes":
            code = rng.choice([c for c in codes if c >= PlaneCode.ONES])
        elif style == "no payload":
            code = rng.choice((PlaneCode.ONES, PlaneCode.PRE_ZERO))
        elif style == "shortest":
            code = PlaneCode.ZERO_RUN if left > 1 else PlaneCode.VERBATIM
        control += bits_of(*code.prefix)
        covers = 1
        if code == PlaneCode.ZERO_RUN:
            covers = left if style == "shortest" else rng.randint(2, rng.randint(2, left))
            control += bits_of(left - covers, run_bits)
        elif code in _POSITIONED:
            most = width - (2 if code == PlaneCode.PAIR else 1)
            payload += bits_of(rng.choice((0, most, rng.randint(0, most))), log2_ceil(width))
        elif code == PlaneCode.VERBATIM:
            payload += bits_of(rng.getrandbits(max(1, width)), width)
        left -= covers
    return LegalBlock(control, payload)


def chunk_of(blocks: Sequence[LegalBlock], more: int = 0, padding: int = 0) -> bytes:
    """Header and body; ``more`` bytes too many between the two streams, ``padding``: bits there."""
    front: list[int] = []
    back: list[int] = []
    for k, block in enumerate(blocks):
        if k % 2 == 0:
            front += [*block.control, *block.payload]
        else:
            back += [*block.control, *reversed(block.payload)]
    size = (len(front) + len(back) + 7) // 8 + more
    between = bits_of(padding, 8 * size - len(front) - len(back))
    body = number_of([*front, *between, *reversed(back)])
    return size.to_bytes(HEADER_BYTES, "little") + body.to_bytes(size, "little")


def legal_chunk(
    rng: random.Random, blocks: int, w: int, p: Parameters = DEFAULT, style: str = "any"
) -> bytes:
    """A coded chunk of ``blocks`` blocks; where they'd be too long some are short ones."""
    made: list[LegalBlock] = []
    left = blocks * p.block_bits - 8
    for k in range(blocks):
        block = legal_block(rng, w, p, style)
        if block.bits > left - 32 * (blocks - 1 - k):
            block = LegalBlock([])
        made.append(block)
        if block.control:
            left -= block.bits
    for k, block in enumerate(made):
        if not block.control:
            made[k] = legal_block(rng, w, p, "shortest")
            while made[k].bits > 32:
                made[k] = legal_block(rng, w, p, "shortest")
    return chunk_of(made)


def broken(rng: random.Random, stream: bytes) -> bytes:
    """``stream`` with one to three bits flipped, or cut off, or longer."""
    kind = rng.randrange(8)
    if kind == 0:
        return stream[: rng.randrange(len(stream))]
    if kind == 1:
        return stream + rng.randbytes(rng.choice((1, 2, 64, rng.randint(1, 200))))
    made = bytearray(stream)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(8 * min(len(made), rng.choice((4, 64, len(made)))))
        made[at // 8] ^= 1 << at % 8
    return bytes(made)
