"""ZVC, BDI and BPC: examples by hand, and a plain version that writes and reads real bits."""

import itertools
import json
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from planezip.model import baselines, generate, reference
from planezip.model.format import PlaneCode
from planezip.model.registry import encodings
from tb.shared import absent, shared

KINDS = ("random", "normal", "relu", "mask", "indices", "constant")


def bits_of(name: str, blocks: np.ndarray, w: int = 32) -> list[int]:
    return encodings([name])[0].bits(blocks, w).tolist()


def one(values: object, dtype: str) -> np.ndarray:
    block = np.zeros(128 // np.dtype(dtype).itemsize, dtype)
    block[:] = values
    return block.view(np.uint8).reshape(1, 128)


def sample(w: int) -> np.ndarray:
    """Blocks of every property, and near each limit of BDI's forms."""
    rng = np.random.default_rng(w)
    parts = [generate.mixed(1500, w, 5)]
    for base, delta in ((8, 1), (8, 2), (8, 4), (4, 1), (4, 2), (2, 1)):
        n, span = 128 // base, 1 << (8 * delta - 1)
        for count in (0, 1, n // 2, n - 1, n):
            near_zero = rng.integers(-span - 1, span + 1, (12, n))
            values = rng.integers(-span, span, (12, n)).astype(np.uint64)
            values += rng.integers(0, 1 << 63, (12, 1), np.uint64) * np.uint64(2)
            values = np.where(np.arange(n) < count, near_zero.astype(np.uint64), values)
            parts.append(values.astype(f"<u{base}").view(np.uint8))
    return np.concatenate(parts)


# --- ZVC ------------------------------------------------------------------------------


@pytest.mark.parametrize("w", [16, 32])
def test_zvc(w: int) -> None:
    assert baselines.zvc_bits(one(0, "u2"), w).tolist() == [1024 // w]
    assert baselines.zvc_bits(one(1, "u1"), w).tolist() == [1024 // w + 1024]
    assert baselines.zvc_bits(one([-0.0] + [0.0] * 31, "f4"), w).tolist() == [1024 // w + w]
    blocks = sample(w)
    want = []
    for block in blocks:
        symbols = reference.split_symbols(block.tobytes(), w)
        want.append(len(symbols) + w * sum(s != 0 for s in symbols))
    assert baselines.zvc_bits(blocks, w).tolist() == want


FAR = 0x0123456789ABCDEF

# --- BDI ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "form", "bits"),
    [
        (one(0, "u8"), "zeros", 12),
        (one(0x1234567890ABCDEF, "u8"), "repeated", 68),
        # Fig. 3 of the paper (h264ref): narrow values, one base
        (one(np.arange(32) % 12, "u4"), "base4-d1", 4 + 32 + 32 * 9),
        # Fig. 4 (perlbench): pointers that lie near each other
        (one(0xC04039C0 + 8 * np.arange(32), "u4"), "base4-d2", 4 + 32 + 32 * 17),
        (one(0xC04039C0 + 2 * np.arange(32), "u4"), "base4-d1", 4 + 32 + 32 * 9),
        # Fig. 5 (mcf): pointers among small values need the second base
        (one(np.where(np.arange(32) % 3, 5, 0x09A40178), "u4"), "base4-d1", 4 + 32 + 32 * 9),
        (one(2**40 + np.arange(16), "u8"), "base8-d1", 4 + 64 + 16 * 9),
        (one(2**40 + 200 * np.arange(16), "u8"), "base8-d2", 4 + 64 + 16 * 17),
        (one(2**40 + 2**28 * (np.arange(16) % 7), "u8"), "base8-d4", 4 + 64 + 16 * 33),
        (one(0x4000 + np.arange(64) * 7 % 100, "u2"), "base2-d1", 4 + 16 + 64 * 9),
        (one(np.arange(32) * 0x9E3779B1 % 2**32, "u4"), "raw", 1028),
        # limits: 127 fits a byte, 128 does not; differences wrap around
        (one([FAR] + [FAR + 127] * 15, "u8"), "base8-d1", 212),
        (one([FAR] + [FAR + 128] * 15, "u8"), "base8-d2", 340),
        (one([FAR] + [FAR - 128] * 15, "u8"), "base8-d1", 212),
        (one([FAR] + [FAR - 129] * 15, "u8"), "base8-d2", 340),
        (one([2**64 - 200] + [56] * 15, "u8"), "base8-d1", 212),
        (one([2**63 - 1] + [2**63] * 15, "u8"), "base8-d1", 212),
    ],
)
def test_bdi_by_hand(block: np.ndarray, form: str, bits: int) -> None:
    forms = (*baselines.BDI_FORMS, "raw")
    assert forms[baselines.bdi_form(block)[0]] == form
    assert baselines.bdi_bits(block).tolist() == [bits]


def bdi_write(block: bytes) -> list[int]:
    """Smallest form of a block in bits: form, mask, bases, differences."""
    best = reference.bits_of(8, 4) + reference.bits_of(int.from_bytes(block, "little"), 1024)
    words = reference.split_symbols(block, 64)
    if len(set(words)) == 1:
        kind, count = (1, 64) if words[0] else (0, 8)
        return reference.bits_of(kind, 4) + reference.bits_of(words[0], count)
    for form, (base, delta) in enumerate(((8, 1), (8, 2), (8, 4), (4, 1), (4, 2), (2, 1)), 2):
        values = reference.split_symbols(block, 8 * base)
        limit, modulus = 1 << (8 * delta - 1), 1 << (8 * base)

        def difference(value: int, start: int, limit: int = limit, modulus: int = modulus) -> int:
            return (value - start + limit) % modulus - limit

        far = [v for v in values if not -limit <= difference(v, 0) < limit]
        start = far[0] if far else 0
        if not all(-limit <= difference(v, start) < limit for v in far):
            continue
        mask = [int(v in far) for v in values]
        bits = reference.bits_of(form, 4) + mask + reference.bits_of(start, 8 * base)
        for value, other in zip(values, mask, strict=True):
            bits += reference.bits_of(difference(value, start * other), 8 * delta)
        best = min(best, bits, key=len)
    return best


def bdi_read(bits: list[int]) -> bytes:
    form, rest = reference.number_of(bits[:4]), bits[4:]
    if form < 2 or form == 8:
        return reference.number_of(rest).to_bytes(len(rest) // 8, "little") * (1024 // len(rest))
    base, delta = ((8, 1), (8, 2), (8, 4), (4, 1), (4, 2), (2, 1))[form - 2]
    n = 128 // base
    start = reference.number_of(rest[n : n + 8 * base])
    out = b""
    for k in range(n):
        at = n + 8 * base + 8 * delta * k
        value = reference.number_of(rest[at : at + 8 * delta])
        value -= (value >> (8 * delta - 1)) << (8 * delta)
        out += ((value + start * rest[k]) % (1 << 8 * base)).to_bytes(base, "little")
    return out


@pytest.mark.parametrize("w", [16, 32])
def test_bdi_against_written_bits(w: int) -> None:
    blocks = sample(w)
    sizes = baselines.bdi_bits(blocks).tolist()
    for block, size in zip(blocks, sizes, strict=True):
        written = bdi_write(block.tobytes())
        assert len(written) == size
        assert bdi_read(written) == block.tobytes()
    assert set(baselines.bdi_form(blocks).tolist()) == set(range(9))


# --- BPC ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "bits"),
    [
        *((0, 3), (7, 7), (-8, 7), (8, 11), (-9, 11), (127, 11), (-128, 11), (128, 19)),
        *((-129, 19), (32767, 19), (-32768, 19), (32768, 33), (-32769, 33), (-(2**31), 33)),
    ],
)
def test_bpc_base_word(word: int, bits: int) -> None:
    words = np.array([word], np.int32).view(np.uint32)
    assert baselines.bpc_base_bits(words).tolist() == [bits]
    # equal words: no difference, so the base word and one run of 33 zero planes (7 bits)
    assert bits_of("BPC", one(np.int32(word), "i4")) == [bits + 7]


@pytest.mark.parametrize(
    ("words", "bits"),
    [
        # differences of 1: planes 32..1 zero (run, 7), plane 0 all ones (5)
        (np.arange(32), 3 + 7 + 5),
        # one difference of 1: plane 0 has a single one (10)
        ([0] * 16 + [1] * 16, 3 + 7 + 10),
        # two such differences side by side (10)
        ([0] * 15 + [1] + [2] * 16, 3 + 7 + 10),
        # differences of 1 and 3 by turns: plane 1 is 0101..., plane 0 XORed is 1010... (32 each)
        (np.cumsum([0, *([1, 3] * 16)][:32]), 3 + 7 + 32 + 32),
        # all differences -1: all 33 planes of ones; plane 32 is all ones (5), the XOR leaves zeros
        (np.arange(32, 0, -1), 11 + 5 + 7),
        # a difference of 2 in one place: planes 1 and 0 XORed both have it, but bit 0 is zero
        # before the XOR: single one (10), then "zero before the XOR" (5)
        ([0] * 16 + [2] * 16, 3 + 7 + 10 + 5),
    ],
)
def test_bpc_by_hand(words: object, bits: int) -> None:
    assert bits_of("BPC", one(words, "i4")) == [bits]


BPC_CODES = {  # code table of the paper: symbol, code, bits of the field behind it
    PlaneCode.ZERO_RUN: ("01", 5),
    PlaneCode.ZERO: ("001", 0),
    PlaneCode.ONES: ("00000", 0),
    PlaneCode.PRE_ZERO: ("00001", 0),
    PlaneCode.PAIR: ("00010", 5),
    PlaneCode.ONE: ("00011", 5),
    PlaneCode.VERBATIM: ("1", 31),
}


def bpc_write(block: bytes) -> str:
    words = reference.split_symbols(block, 32)
    base = words[0] - (words[0] >> 31 << 32)
    for code, bits in (("001", 4), ("010", 8), ("011", 16), ("1", 32)):
        if -(1 << bits - 1) <= base < 1 << bits - 1:
            out = code + format(base & ((1 << bits) - 1), f"0{bits}b")
            break
    if base == 0:
        out = "000"
    deltas = [b - a for a, b in itertools.pairwise(words)]
    planes = [sum((d >> p & 1) << i for i, d in enumerate(deltas)) for p in range(32, -1, -1)]
    dbx = [planes[0], *(a ^ b for a, b in itertools.pairwise(planes))]
    return out + "".join(bpc_planes(planes, dbx))


def bpc_planes(planes: list[int], dbx: list[int]) -> Iterator[str]:
    k = 0
    while k < 33:
        zeros = next((j for j in range(k, 33) if dbx[j]), 33) - k
        field = None
        if zeros:
            kind = PlaneCode.ZERO if zeros == 1 else PlaneCode.ZERO_RUN
            field = zeros - 2
        elif dbx[k] == 2**31 - 1:
            kind = PlaneCode.ONES
        elif planes[k] == 0:
            kind = PlaneCode.PRE_ZERO
        elif dbx[k].bit_count() == 1 or (dbx[k].bit_count() == 2 and dbx[k] & dbx[k] >> 1):
            kind = (PlaneCode.ONE, PlaneCode.PAIR)[dbx[k].bit_count() - 1]
            field = (dbx[k] & -dbx[k]).bit_length() - 1
        else:
            kind, field = PlaneCode.VERBATIM, dbx[k]
        code, width = BPC_CODES[kind]
        yield code + (format(field, f"0{width}b") if width and field is not None else "")
        k += max(zeros, 1)


def bpc_read(text: str) -> bytes:
    at = 0

    def take(count: int) -> int:
        nonlocal at
        at += count
        return int(text[at - count : at], 2) if count else 0

    def match(codes: Mapping[str, tuple[object, int]]) -> tuple[object, int]:
        code = next(c for c in codes if text.startswith(c, at))
        take(len(code))
        kind, width = codes[code]
        return kind, take(width)

    bases = {"000": (0, 0), "001": (4, 4), "010": (8, 8), "011": (16, 16), "1": (32, 32)}
    bits, base = match(bases)
    assert isinstance(bits, int)
    planes: list[int] = []
    above = 0
    codes = {code: (kind, width) for kind, (code, width) in BPC_CODES.items()}
    while len(planes) < 33:
        kind, field = match(codes)
        dbx = 0
        if kind is PlaneCode.ONES:
            dbx = 2**31 - 1
        elif kind is PlaneCode.PRE_ZERO:
            dbx = above
        elif kind is PlaneCode.VERBATIM:
            dbx = field
        elif kind in (PlaneCode.ONE, PlaneCode.PAIR):
            dbx = (3 if kind is PlaneCode.PAIR else 1) << field
        for _ in range(field + 2 if kind is PlaneCode.ZERO_RUN else 1):
            above ^= dbx
            planes.append(above)
    assert at == len(text)
    value = base - (1 << bits) if bits and base >> bits - 1 else base
    out = [value]
    for i in range(31):
        out.append(out[-1] + sum((planes[32 - p] >> i & 1) << p for p in range(33)))
    return b"".join((v % 2**32).to_bytes(4, "little") for v in out)


@pytest.mark.parametrize("w", [16, 32])
def test_bpc_against_written_bits(w: int) -> None:
    blocks = sample(w)
    for block, size in zip(blocks, bits_of("BPC", blocks, w), strict=True):
        written = bpc_write(block.tobytes())
        assert len(written) == size
        assert bpc_read(written) == block.tobytes()


# --- all ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        (np.zeros((3, 128), np.int8), TypeError),
        (b"x" * 128, TypeError),
        (np.zeros((3, 64), np.uint8), ValueError),
        (np.zeros(128, np.uint8), ValueError),
    ],
)
def test_wrong_blocks(blocks: np.ndarray, error: type[Exception]) -> None:
    for function in (baselines.bdi_bits, lambda b: baselines.zvc_bits(b, 16)):
        with pytest.raises(error, match="blocks must"):
            function(blocks)


def test_no_blocks_and_strided_blocks() -> None:
    none = np.zeros((0, 128), np.uint8)
    blocks = sample(16)
    for encoding in encodings():
        assert encoding.bits(none, 16).shape == (0,)
        every_other = encoding.bits(blocks[::2], 16)
        assert np.array_equal(every_other, encoding.bits(blocks, 16)[::2])


@pytest.mark.skipif(bool(absent("activations")), reason=absent("activations"))
def test_ratios_of_the_sampled_cnn() -> None:
    """EfficientNet-lite0, all saved tensors: design/format-notes.md, on samples of each."""
    folder = shared("activations")
    import ml_dtypes

    from planezip.model.registry import Size, compare

    totals: dict[str, Size] = {}
    for entry in json.loads((folder / "index.json").read_text()):
        if not entry["file"].startswith("efflite0"):
            continue
        array = np.load(folder / entry["file"])
        if array.dtype == np.float32:
            array = array.astype(ml_dtypes.bfloat16)
        for name, size in compare(array).items():
            totals[name] = totals.get(name, Size(0, 0)) + size
    noted = {"ZVC": 1.19, "BPC": 1.47, "BX": 1.53, "ZBX": 1.61, "BDI": 1.10, "PlaneZip": 1.74}
    for name, ratio in noted.items():
        assert totals[name].ratio == pytest.approx(ratio, rel=0.05), name
