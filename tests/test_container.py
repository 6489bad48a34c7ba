"""Files of compressed tensors: exact layout, round trips, damaged files."""

import struct
import zlib
from itertools import pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planezip import model
from planezip.model import ErrorCode, StreamError, container
from planezip.model.directory import HEAD_BYTES, least_wire_bytes, most_wire_bytes, pack_head

RAMP = np.arange(3000, dtype=np.float32)
TENSORS = {
    "ramp": RAMP,
    "größe/層.0": np.linspace(-1, 1, 5 * 7, dtype=np.float32)
    .astype(ml_dtypes.bfloat16)
    .reshape(5, 7),
    "scalar": np.array(3),
    "empty": np.zeros((0, 2**40), np.uint8),
    "": np.ones((1, 2, 3), bool),
}
STREAMS = {name: model.encode(array) for name, array in TENSORS.items()}
WHOLE = container.to_bytes(STREAMS)
BARE = container.to_bytes(STREAMS, index=False)


def resealed(data: bytes, start: int, patch: bytes) -> bytes:
    """``data`` with ``patch`` in its directory and a checksum that fits again."""
    data = data[:start] + patch + data[start + len(patch) :]
    count, directory_bytes = struct.unpack_from("<IQ", data, 12)
    end = HEAD_BYTES + directory_bytes
    return pack_head(count, data[HEAD_BYTES:end]) + data[HEAD_BYTES:]


def code_of(data: bytes) -> ErrorCode:
    with pytest.raises(StreamError) as caught:
        container.from_bytes(data)
    return caught.value.code


def test_layout_to_the_byte() -> None:
    """The worked example of docs/format.md, built by hand."""
    payload = STREAMS["scalar"].payload
    entry = struct.pack("<HBBBx", 6, 5, 0, 1) + b"scalar" + b"int64"
    entry += struct.pack("<QQI", 8, len(payload), zlib.crc32(payload))
    entry += struct.pack("<HI", len(payload) - 2, zlib.crc32(payload))
    head = struct.pack("<8sHHIQ", b"\x89PZ\r\n\x1a\n\0", 1, 0, 1, len(entry))
    want = head + struct.pack("<I4x", zlib.crc32(head + entry)) + entry + payload
    assert container.to_bytes({"scalar": STREAMS["scalar"]}) == want
    doc = (Path(__file__).parents[1] / "docs" / "format.md").read_text()
    for k in range(0, len(want), 16):
        assert want[k : k + 16].hex(" ") in doc


@pytest.mark.parametrize("data", [WHOLE, BARE])
def test_round_trip(data: bytes) -> None:
    back = container.from_bytes(data)
    assert list(back.items()) == list(STREAMS.items())
    for name, array in TENSORS.items():
        got = model.decode(back[name])
        assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "t.pz"
    container.write(path, STREAMS)
    assert path.read_bytes() == WHOLE
    assert container.read(path) == STREAMS
    broken = model.Stream("uint8", (4096,), b"\xff")
    with pytest.raises(StreamError):
        container.write(path, {"x": broken})
    assert [p.name for p in tmp_path.iterdir()] == ["t.pz"]
    assert path.read_bytes() == WHOLE


def test_pieces_give_the_same_file(tmp_path: Path) -> None:
    stream = STREAMS["ramp"]
    cuts = stream.chunk_index()
    payload = [stream.payload[a:b] for a, b in pairwise(cuts)]
    container.write_pieces(
        tmp_path / "t.pz", {"ramp": container.Pieces("float32", (3000,), iter(payload))}
    )
    with container.File(tmp_path / "t.pz") as file:
        assert file.stream("ramp") == stream
        for chunks in (1, 2, 3, 99):
            pieces = list(file.pieces("ramp", chunks))
            assert b"".join(pieces) == stream.payload
            assert len(pieces) == -(-len(payload) // chunks)


def test_chunk_alone() -> None:
    with container.File(WHOLE) as file:
        assert b"".join(file.chunk("ramp", k) for k in range(3)) == RAMP.tobytes()
        with pytest.raises(IndexError, match="from 0 to 2"):
            file.chunk("ramp", 3)
        with pytest.raises(KeyError):
            file.chunk("no", 0)
        start = file.entries["ramp"].offset + int(STREAMS["ramp"].chunk_index()[1])
    with container.File(BARE) as file, pytest.raises(ValueError, match="no chunk index"):
        file.chunk("ramp", 0)
    damaged = bytearray(WHOLE)
    damaged[start + 9] ^= 4
    with container.File(bytes(damaged)) as file:
        assert file.chunk("ramp", 0) == RAMP.tobytes()[:4096]
        with pytest.raises(StreamError, match="CHECKSUM in chunk 1"):
            file.chunk("ramp", 1)
        with pytest.raises(StreamError, match="CHECKSUM"):
            list(file.pieces("ramp"))


def test_pieces_of_broken_streams() -> None:
    """Files whose checksums fit streams whose chunk headers are wrong."""
    stream = STREAMS["ramp"]
    for k, size, code in ((1, 4097, "CHUNK_SIZE"), (1, 4000, "STREAM_END"), (2, 9, "EXTRA")):
        data = container.to_bytes({"ramp": stream}, index=False)
        start = len(data) - stream.wire_bytes + int(stream.chunk_index()[k])
        data = data[:start] + struct.pack("<H", size) + data[start + 2 :]
        payload = data[len(data) - stream.wire_bytes :]
        crc_at = HEAD_BYTES + 6 + 4 + 7 + 8 + 16
        data = resealed(data, crc_at, struct.pack("<I", zlib.crc32(payload)))
        for chunks in (1, 2, 99):
            with container.File(data) as file, pytest.raises(StreamError, match=code) as caught:
                list(file.pieces("ramp", chunks))
            assert caught.value.chunk == k


def test_chunk_alone_names_the_chunk_of_the_whole() -> None:
    """A file whose checksums fit a stream that is broken in chunk 1."""
    stream = STREAMS["ramp"]
    at = int(stream.chunk_index()[1]) + 2
    payload = bytearray(stream.payload)
    payload[at] |= 7  # reserved tag
    data = container.to_bytes({"x": model.Stream("float32", (3000,), bytes(payload))})
    with container.File(data) as file, pytest.raises(StreamError, match="TAG in chunk 1, block 0"):
        file.chunk("x", 1)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a .pz file"),
        (b"\x89PN", "not a .pz file"),
        (b"PK\3\4" + bytes(60), "not a .pz file"),
        (WHOLE[:8], "ends within its header"),
        (WHOLE[:31], "ends within its header"),
        (WHOLE[:8] + b"\2" + WHOLE[9:], "version 2 .* update planezip"),
        (WHOLE[:10] + b"\1" + WHOLE[11:], "reserved bits of the header"),
        (WHOLE[:31] + b"\1" + WHOLE[32:], "reserved bits of the header"),
        (WHOLE[:16] + b"\xff" * 8 + WHOLE[24:], "shorter than its directory"),
        (WHOLE[:-1], "its directory accounts for"),
        (WHOLE + b"\0", "its directory accounts for"),
        (container.to_bytes({})[:-1], "ends within its header"),
    ],
)
def test_damaged_header(data: bytes, words: str) -> None:
    with pytest.raises(StreamError, match=words) as caught:
        container.from_bytes(data)
    assert caught.value.code == ErrorCode.FILE_HEADER


AT = HEAD_BYTES  # the entry of "ramp": fields 6, name 4, dtype 7, shape 8, raw 8, wire 8, CRC 4


@pytest.mark.parametrize(
    ("offset", "patch", "words"),
    [
        (0, b"\xff\xff", "ends within an entry"),
        (4, b"\3", "reserved bits of an entry"),
        (5, b"\1", "reserved bits of an entry"),
        (6, b"\xff", "the name is not UTF-8"),
        (10, b"g", "unknown dtype 'gloat32'"),
        (10, b"\xff", "the dtype is not UTF-8"),
        (17, struct.pack("<Q", 1 << 60), "do not fit|below 2\\^63"),
        (17, struct.pack("<Q", 1 << 62), "below 2\\^63"),
        (25, struct.pack("<Q", 12004), "do not fit the shape"),
        (17, struct.pack("<QQ", 1 << 58, 1 << 60), "cannot come from"),
        (33, struct.pack("<Q", 10), "cannot come from"),
        (33, struct.pack("<Q", 12039), "cannot come from"),
        (33, struct.pack("<Q", 800), "chunk index does not fit"),
        (45, b"\1", "chunk index does not fit"),
    ],
)
def test_sealed_lies(offset: int, patch: bytes, words: str) -> None:
    """Directories that contradict themselves under a checksum that fits."""
    with pytest.raises(StreamError, match=words) as caught:
        container.from_bytes(resealed(WHOLE, AT + offset, patch))
    assert caught.value.code == ErrorCode.FILE_HEADER


def test_names_twice_and_too_many_entries() -> None:
    two = container.to_bytes({"a": STREAMS["scalar"], "b": STREAMS["scalar"]})
    at = two.index(b"bint64")
    assert code_of(resealed(two, at, b"a")) == ErrorCode.FILE_HEADER
    directory = two[HEAD_BYTES : HEAD_BYTES + struct.unpack_from("<Q", two, 16)[0]]
    for count in (1, 3, 2**32 - 1):
        assert code_of(pack_head(count, directory) + two[HEAD_BYTES:]) == ErrorCode.FILE_HEADER


def test_every_flipped_bit_and_every_cut_is_found() -> None:
    for data in (WHOLE, BARE):
        for bit in range(8 * len(data)):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            assert code_of(bytes(damaged)) in (ErrorCode.FILE_HEADER, ErrorCode.CHECKSUM)
        for length in range(len(data)):
            assert code_of(data[:length]) == ErrorCode.FILE_HEADER


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_fuzz_sealed_directories(data: st.DataObject) -> None:
    """Whatever stands under fitting checksums: tensors that decode, or StreamError."""
    size = struct.unpack_from("<Q", WHOLE, 16)[0]
    start = data.draw(st.integers(HEAD_BYTES, HEAD_BYTES + size - 1))
    patch = data.draw(st.binary(min_size=1, max_size=HEAD_BYTES + size - start))
    try:
        for stream in container.from_bytes(resealed(WHOLE, start, patch)).values():
            model.decode(stream)
    except StreamError:
        pass


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_fuzz_bytes(data: bytes, magic: bool) -> None:
    code_of(WHOLE[:10] + data if magic else data)


def test_limits_of_wire_bytes_are_reached() -> None:
    for blocks in (1, 2, 31, 32, 33, 64):
        zeros = model.encode(np.zeros(blocks * 64, np.float16))
        assert least_wire_bytes(128 * blocks) == zeros.wire_bytes
        noise = np.random.default_rng(0).integers(0, 256, 128 * blocks, np.uint8)
        assert most_wire_bytes(128 * blocks) == model.encode(noise).wire_bytes
        assert least_wire_bytes(128 * blocks - 127) == zeros.wire_bytes


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("x" * 65536, (0,), "65535 bytes"),
        ("x", (0,) * 33, "32 dimensions"),
        ("x", (0, 2**62, 2), "2\\^63"),
        ("\udc80", (0,), "surrogates"),
    ],
)
def test_what_cannot_be_written(name: str, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        container.to_bytes({name: model.Stream("uint8", shape, b"")})
