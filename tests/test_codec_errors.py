"""A broken stream gives the same StreamError and the same blocks as the reference."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planezip.model as pz
from planezip.model import ErrorCode, StreamError, generate, reference

BLOCKS = {w: generate.mixed(4000, w, 11) for w in (16, 32)}


def outcome(decode, stream, raw_bytes, w):
    try:
        return bytes(decode(stream, raw_bytes, w)), None
    except StreamError as error:
        return None, (error.code, error.chunk, error.block)


def assert_like_reference(stream: bytes, raw_bytes: int, w: int) -> ErrorCode | None:
    """Code of the fault that both decoders agree on."""
    expected, fault = outcome(reference.decode_tensor, stream, raw_bytes, w)
    assert outcome(pz.decode_bytes, stream, raw_bytes, w) == (expected, fault)
    data, error = pz.decode_blocks(stream, raw_bytes, w)
    if fault is None:
        assert error is None
        assert data.tobytes() == expected
        return None
    assert error is not None
    assert (error.code, error.chunk, error.block) == fault
    if error.code != ErrorCode.EXTRA:
        assert data.size == 4096 * error.chunk + 128 * error.block
    return error.code


@st.composite
def tensors(draw):
    w = draw(st.sampled_from([16, 32]))
    count = draw(st.one_of(st.integers(1, 6), st.integers(30, 36)))
    first = draw(st.integers(0, len(BLOCKS[w]) - count))
    data = BLOCKS[w][first : first + count].tobytes()
    return data[: len(data) - draw(st.integers(0, 127))], w


@settings(max_examples=150, deadline=None)
@given(tensors(), st.lists(st.integers(0), min_size=1, max_size=4))
def test_flipped_bits(tensor, places):
    data, w = tensor
    stream = bytearray(pz.encode_bytes(data, w))
    for place in places:
        place %= 8 * len(stream)
        stream[place // 8] ^= 1 << place % 8
    assert_like_reference(bytes(stream), len(data), w)


@settings(max_examples=60, deadline=None)
@given(tensors(), st.integers(0), st.binary(max_size=5))
def test_cut_and_extended(tensor, cut, more):
    data, w = tensor
    stream = pz.encode_bytes(data, w)
    code = assert_like_reference(stream[: cut % len(stream)], len(data), w)
    assert code == ErrorCode.STREAM_END
    code = assert_like_reference(stream + more, len(data), w)
    assert code == (ErrorCode.EXTRA if more else None)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([16, 32]),
    st.integers(0, 5000),
    st.binary(max_size=300),
    st.sampled_from([0, 1, 2, 3, 4]),
)
def test_random_bytes(w, raw_bytes, body, tag):
    """Random bodies behind a header that fits, led by a tag that is legal."""
    body = bytes([body[0] & 0xF8 | tag]) + body[1:] if body else b""
    assert_like_reference(body, raw_bytes, w)
    assert_like_reference(len(body).to_bytes(2, "little") + body, raw_bytes, w)


@settings(max_examples=40, deadline=None)
@given(tensors(), st.integers(0, 1 << 70))
def test_another_length(tensor, raw_bytes):
    data, w = tensor
    stream = pz.encode_bytes(data, w)
    expected = outcome(reference.decode_tensor, stream, raw_bytes, w)
    assert outcome(pz.decode_bytes, stream, raw_bytes, w) == expected


@pytest.mark.parametrize("w", [16, 32])
def test_many_flips(w):
    """Every block kind, one flip each; all codes but those of whole chunks turn up."""
    rng = np.random.default_rng(w)
    seen = set()
    for k in range(400):
        first = int(rng.integers(0, len(BLOCKS[w]) - 3))
        data = BLOCKS[w][first : first + int(rng.integers(1, 4))].tobytes()[: -int(k % 9) or None]
        stream = bytearray(pz.encode_bytes(data, w))
        for _ in range(int(rng.integers(1, 3))):
            place = int(rng.integers(8 * len(stream)))
            stream[place // 8] ^= 1 << place % 8
        seen.add(assert_like_reference(bytes(stream), len(data), w))
    assert {ErrorCode.TAG, ErrorCode.RUN, ErrorCode.OVERRUN, ErrorCode.STREAM_END} <= seen
    assert {ErrorCode.POSITION, ErrorCode.TRAILING, ErrorCode.CHUNK_SIZE} <= seen


@pytest.mark.parametrize("w", [16, 32])
def test_blocks_before_the_fault(w):
    blocks = BLOCKS[w][:100]
    stream = bytearray(pz.encode_bytes(blocks.tobytes(), w))
    index = pz.Stream("uint8", blocks.shape, bytes(stream)).chunk_index()
    for place in range(8 * int(index[1]) + 16, 8 * int(index[2]), 37):
        broken = bytearray(stream)
        broken[place // 8] ^= 1 << place % 8
        data, error = pz.decode_blocks(broken, blocks.nbytes, w)
        assert data[:4096].tobytes() == blocks.tobytes()[:4096]
        if error:
            assert error.chunk == 1
            assert data.size == 4096 + 128 * error.block
        else:
            assert data[8192:].tobytes() == blocks.tobytes()[8192:]


VECTORS = {
    ErrorCode.CHUNK_SIZE: (b"\x81\x00", 128, 0, 0),
    ErrorCode.STREAM_END: (b"\x80\x00" + bytes(127), 128, 0, 0),
    ErrorCode.TAG: (b"\x01\x00\x07", 128, 0, 0),
    ErrorCode.OVERRUN: (b"\x00\x00", 128, 0, 0),
    ErrorCode.TAIL: (b"\x80\x00" + bytes(127) + b"\1", 127, 0, 0),
    ErrorCode.EXTRA: (b"\0", 0, 0, 0),
}


@pytest.mark.parametrize("code", VECTORS)
def test_small_vectors(code):
    stream, raw_bytes, chunk, block = VECTORS[code]
    for w in (16, 32):
        assert outcome(pz.decode_bytes, stream, raw_bytes, w)[1] == (code, chunk, block)
        assert assert_like_reference(stream, raw_bytes, w) == code


def test_a_huge_length_asks_for_no_memory():
    stream = pz.encode_bytes(bytes(100_000), 16)
    tracemalloc.start()
    for payload in (stream, b"\0\0" * 1000, b"", b"\5\0hello"):
        with pytest.raises(StreamError):
            pz.decode_bytes(payload, 1 << 60, 16)
        data, error = pz.decode_blocks(payload, 1 << 200, 16)
        assert error is not None
        assert data.size <= 100_000 + 4096
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()
