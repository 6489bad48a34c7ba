"""Encodings in comparisons: the built-in ones, one's own, and wrong ones."""

import runpy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from planezip import model
from planezip.model import Tag, generate, reference, registry
from planezip.model.registry import Blocks, Size, compare, encodings, register

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "my_encoding.py"
NAMES = ["BDI", "ZVC", "BPC", "DBX", "BX", "ZBX", "PlaneZip", "PlaneZip-32"]


@pytest.fixture(autouse=True)
def scope() -> Iterator[None]:
    with registry.scope():
        yield


def named(name: str) -> registry.Encoding:
    return encodings([name])[0]


@pytest.mark.parametrize("w", [16, 32])
def test_single_encodings_are_those_of_the_format_without_tag(w: int) -> None:
    blocks = generate.mixed(300, w, 3)
    for tag in (Tag.ZVC, Tag.DBX, Tag.BX, Tag.ZBX):
        want = [
            reference.encode_block(tag, reference.split_symbols(block.tobytes(), w), w).bits - 3
            for block in blocks
        ]
        assert named(tag.name).bits(blocks, w).tolist() == want
    best = [
        reference.select(reference.split_symbols(block.tobytes(), w), w).bits for block in blocks
    ]
    assert (named("PlaneZip").bits(blocks, w) + 3).tolist() == best
    assert np.array_equal(named("PlaneZip-32").bits(blocks, w), named("PlaneZip").bits(blocks, 32))


@pytest.mark.parametrize("count", [1, 63, 64, 65, 2047, 2048, 2049, 6500])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32, np.uint8])
def test_planezip_is_what_the_encoder_writes(count: int, dtype: Any) -> None:
    rng = np.random.default_rng(count)
    array = (rng.standard_normal(count) * (rng.random(count) > 0.4) * 3).astype(dtype)
    noise = rng.integers(0, 256, array.nbytes, np.uint8).view(dtype)
    for data in (array, noise):
        stream = model.encode(data)
        assert compare(data)["PlaneZip"] == Size(data.nbytes, stream.wire_bytes)


class Half:
    """Sizes by hand: block k has 100 k bits."""

    name = "half"
    tag_bits = 2

    def bits(self, blocks: Blocks, w: int) -> np.ndarray:
        return 100 * np.arange(len(blocks))


def test_wire_bytes_by_hand() -> None:
    zeros = np.zeros((40, 128), np.uint8)
    # tags, raw at 1024: blocks 0..10 coded, 11..31 raw; then a chunk of 8 blocks, all of it
    # raw, since 3200 bits and more would be larger than 1024 and the tags come on top
    first = sum(100 * k for k in range(11)) + 21 * 1024 + 32 * 2
    assert registry.wire_bytes(Half(), zeros, 16) == 2 + -(-first // 8) + 2 + 8 * 128
    assert registry.wire_bytes(Half(), zeros[:1], 16) == 2 + 1
    assert registry.wire_bytes(Half(), zeros[:0], 16) == 0


def test_sizes_add_up_and_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    array = generate.mixed(1000, 16, 4).reshape(-1)[:-30].view(np.float16)
    whole = compare(array)
    assert list(whole) == NAMES
    monkeypatch.setattr(registry, "PIECE_BLOCKS", 64)
    assert compare(array) == whole
    assert compare(array, [named("BX")]) == {"BX": whole["BX"]}
    assert Size(100, 50) + Size(20, 10) == Size(120, 60)
    assert (Size(120, 60).ratio, Size(0, 0).ratio) == (2.0, 1.0)
    assert set(compare(np.zeros(0)).values()) == {Size(0, 0)}


@pytest.mark.parametrize("w", [16, 32])
def test_tag_counts(w: int) -> None:
    blocks = generate.mixed(400, w, 6)
    winners = [reference.select(reference.split_symbols(b.tobytes(), w), w).tag for b in blocks]
    assert registry.tag_counts(blocks, w).tolist() == [winners.count(tag) for tag in Tag]
    assert registry.tag_counts(blocks[:0], w).tolist() == [0] * 5


def test_example_outside_the_package() -> None:
    runpy.run_path(str(EXAMPLE))
    assert [e.name for e in encodings()] == [*NAMES, "shared-bytes"]
    code = EXAMPLE.read_text().splitlines()
    assert sum(bool(line.strip()) and not line.startswith(('"""', "#")) for line in code) <= 20
    # bytes 3 and 2 of all symbols are the same, 1 and 0 are not: 4 + 8 + 8 + 2 * 8 * 32
    values = 0x3F800000 + np.arange(32, dtype=np.uint32) * 257
    size = compare(values)["shared-bytes"]
    assert size == Size(128, 2 + -(-(1 + 4 + 8 + 8 + 512) // 8))


class Coded:
    """Bytes at the front that are zero are left out: 7 bits of length, then the rest."""

    name = "coded"
    tag_bits = 1

    def bits(self, blocks: Blocks, w: int) -> np.ndarray:
        return np.array([len(self.encode(b.tobytes(), w)) for b in blocks], np.int64)

    def encode(self, block: bytes, w: int) -> Sequence[int]:
        rest = block.lstrip(b"\0") or b"\0"
        return reference.bits_of(128 - len(rest), 7) + reference.bits_of(
            int.from_bytes(rest, "little"), 8 * len(rest)
        )

    def decode(self, bits: Sequence[int], w: int) -> bytes:
        return reference.number_of(bits[7:]).to_bytes(len(bits) // 8, "little").rjust(128, b"\0")


def test_check() -> None:
    blocks = np.zeros((5, 128), np.uint8)
    blocks[1, 3:] = 1
    blocks[2] = 1  # larger than raw: not asked for
    assert isinstance(Coded(), registry.BlockCodec)
    registry.check(Coded(), blocks, 16)
    registry.check(Half(), blocks, 16)

    class Short(Coded):
        def bits(self, blocks: Blocks, w: int) -> np.ndarray:
            return super().bits(blocks, w) - (np.arange(len(blocks)) == 3)

    class Lossy(Coded):
        def decode(self, bits: Sequence[int], w: int) -> bytes:
            return bytes(128)

    with pytest.raises(AssertionError, match="block 3: 14 bits announced, 15 written"):
        registry.check(Short(), blocks, 16)
    with pytest.raises(AssertionError, match="block 1 does not come back"):
        registry.check(Lossy(), blocks, 16)


def test_registration() -> None:
    with registry.scope():
        register(Half())
        assert encodings()[-1].name == "half"
        with pytest.raises(ValueError, match="must be a new one"):
            register(Half())
    assert [e.name for e in encodings()] == NAMES
    assert [e.name for e in encodings(["BX", "BDI"])] == ["BX", "BDI"]
    with pytest.raises(ValueError, match="must be one of BDI, ZVC"):
        encodings(["nix"])
    for wrong in (Half, 3, "BX", object()):
        with pytest.raises(TypeError, match="object with name, tag_bits, bits"):
            register(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (lambda n: np.zeros(n + 1, int), "must return 4 integers"),
        (lambda n: np.zeros((n, 1), int), "must return 4 integers"),
        (lambda n: np.zeros(n), "not float64"),
        (lambda n: np.arange(n) - 1, "must not be negative"),
    ],
)
def test_wrong_sizes(bits: Any, words: str) -> None:
    class Wrong(Half):
        def bits(self, blocks: Blocks, w: int) -> np.ndarray:
            return bits(len(blocks))

    with pytest.raises(ValueError, match=words):
        compare(np.zeros(512, np.uint8), [Wrong()])
