"""The codec's API: every dtype, kind of array and way to decode."""

from __future__ import annotations

import copy
import subprocess
import sys

import ml_dtypes
import numba
import numpy as np
import pytest

import planezip.model as pz
from planezip.model import cache, decoder, dtypes, generate, reference
from planezip.model.arrays import PIECE_BYTES

RNG = np.random.default_rng(7)


def bits(array):
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).tobytes()


@pytest.mark.parametrize("name", dtypes.DTYPES)
def test_every_dtype_comes_back_bit_for_bit(name):
    dtype = dtypes.dtype_of(name)
    array = np.frombuffer(RNG.bytes(dtype.itemsize * 3 * 701), dtype).reshape(3, 701)
    stream = pz.encode(array)
    assert stream.payload == reference.encode_tensor(array.tobytes(), stream.w)
    back = pz.decode(stream)
    assert (back.dtype, back.shape, bits(back)) == (dtype, array.shape, bits(array))
    assert back.flags.writeable
    assert pz.ratio(array) == stream.ratio == pz.sizes(array).ratio


@pytest.mark.parametrize(
    "array",
    [
        np.float32(3.5),
        np.array(7),
        np.zeros((0, 3), np.int16),
        np.arange(5000).reshape(50, 100)[::3, ::-2],
        np.asfortranarray(RNG.normal(size=(40, 30))),
        np.broadcast_to(np.float32(1.5), (9, 9)),
        np.array([np.nan, -0.0, np.inf, 5e-324]),
        np.frombuffer(RNG.bytes(1001), np.uint8)[1:].view(np.float16),
    ],
    ids=["scalar", "0-d", "empty", "strided", "fortran", "broadcast", "special", "unaligned"],
)
def test_every_kind_of_array(array):
    stream = pz.encode(array)
    back = pz.decode(stream)
    assert (back.dtype, back.shape, bits(back)) == (array.dtype, array.shape, bits(array))
    assert stream.raw_bytes == array.nbytes
    assert pz.ratio(array) == stream.ratio


def test_big_endian_becomes_little_endian():
    array = np.arange(100, dtype=">i4")
    back = pz.decode(pz.encode(array))
    assert back.dtype == np.dtype("<i4")
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    "thing",
    [np.array([None]), np.array(["a"]), np.array([(1,)], "i4,"), np.zeros(2, "M8[s]"), [1, 2], 3],
    ids=["object", "string", "structured", "datetime", "list", "int"],
)
def test_other_objects_are_a_type_error(thing):
    for function in (pz.encode, pz.sizes, pz.ratio):
        with pytest.raises(TypeError, match="must be"):
            function(thing)


class WithDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    array = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal(pz.decode(pz.encode(WithDlpack(array))), array)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    values = torch.linspace(-3, 3, 3000).reshape(30, 100)
    for tensor, name in [
        (values.bfloat16().requires_grad_(), "bfloat16"),
        (values.t(), "float32"),
        (values > 0, "bool"),
        (torch.tensor(3), "int64"),
        (torch.zeros(0, 4), "float32"),
        (torch.complex(values, values).conj(), "complex64"),
        (values.to(torch.float8_e4m3fn), "float8_e4m3fn"),
    ]:
        stream = pz.encode(tensor)
        assert (stream.dtype, stream.shape) == (name, tuple(tensor.shape))
        whole = tensor.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8)
        assert bits(pz.decode(stream)) == whole.numpy().tobytes()
    with pytest.raises(TypeError, match="dense"):
        pz.encode(torch.eye(3).to_sparse())


def test_torch_is_not_imported():
    code = "import sys, planezip.model; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("w", [16, 32])
@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 4095, 4096, 4097, PIECE_BYTES + 130])
def test_bytes_of_every_length(w, size):
    data = generate.mixed(-(-size // 128), w, 1).tobytes()[: size - 1] + b"\1" * min(size, 1)
    for kind in (bytes, bytearray, memoryview):
        wire = pz.encode_bytes(kind(data), w)
        assert pz.decode_bytes(kind(wire), size, w) == data
    if size < PIECE_BYTES:
        assert wire == reference.encode_tensor(data, w)


@pytest.mark.parametrize("w", [16, 32])
def test_threads_give_the_same(w):
    data = np.tile(generate.mixed(5000, w, 2).reshape(-1), 9)[: 5 * PIECE_BYTES + 77].tobytes()
    wire = pz.encode_bytes(data, w)
    for threads in (2, 5):
        assert pz.encode_bytes(data, w, threads=threads) == wire
        assert pz.decode_bytes(wire, len(data), w, threads=threads) == data
    broken = bytearray(wire)
    broken[len(wire) // 2 :: 1000] = bytes(len(broken[len(wire) // 2 :: 1000]))
    one, two = (pz.decode_blocks(broken, len(data), w, threads) for threads in (1, 2))
    assert one[0].tobytes() == two[0].tobytes()
    assert str(one[1]) == str(two[1]) != "None"


def test_chunks_alone():
    array = generate.mixed(1000, 16, 3).reshape(-1)[:-50].view(ml_dtypes.bfloat16)
    stream, raw = pz.encode(array), bits(array)
    index = stream.chunk_index()
    assert (len(index), index[-1]) == (stream.chunk_count + 1, len(stream.payload))
    for chunk in range(stream.chunk_count):
        part = raw[4096 * chunk : 4096 * (chunk + 1)]
        assert pz.decode_chunk(stream, chunk) == part
        assert pz.decode_chunk(stream, chunk, int(index[chunk])) == part
    with pytest.raises(IndexError, match="chunk must be"):
        pz.decode_chunk(stream, stream.chunk_count)


def test_chunk_errors_name_the_chunk():
    stream = pz.encode(generate.blocks("normal", 100, 32, 1))
    at = int(stream.chunk_index()[2])
    broken = bytearray(stream.payload)
    broken[at + 2] |= 7  # reserved tag
    with pytest.raises(pz.StreamError) as error:
        pz.decode_chunk(pz.Stream(stream.dtype, stream.shape, bytes(broken)), 2)
    assert (error.value.code, error.value.chunk, error.value.block) == (pz.ErrorCode.TAG, 2, 0)


def test_streams_compare_hash_and_travel():
    stream = pz.encode(np.arange(2000))
    other = pz.Stream(stream.dtype, stream.shape, bytes(stream.payload))
    assert stream == other == copy.deepcopy(stream)
    assert hash(stream) == hash(other)
    assert isinstance(copy.deepcopy(stream).payload, bytes)
    assert stream.payload.readonly


def test_arguments():
    with pytest.raises(ValueError, match="w must be"):
        pz.encode_bytes(b"", 8)
    with pytest.raises(ValueError, match="w must be"):
        pz.sizes(np.zeros(3), w=64)
    with pytest.raises(ValueError, match="w must be"):
        pz.decode_bytes(b"", 0, 0)
    with pytest.raises(ValueError, match="raw_bytes must be"):
        pz.decode_bytes(b"", -1, 16)
    with pytest.raises(ValueError, match="threads must be"):
        pz.encode(np.zeros(3), threads=0)
    with pytest.raises(ValueError, match="dtype must be"):
        pz.Stream("float31", (1,), b"")
    with pytest.raises(ValueError, match="shape must"):
        pz.Stream("float32", (-1,), b"")
    with pytest.raises(TypeError, match="payload must be"):
        pz.Stream("float32", (1,), bytearray())


def test_compiles_without_a_folder_for_the_cache(monkeypatch):
    njit = numba.njit

    def nowhere(*function, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*function, **options)

    monkeypatch.setattr(numba, "njit", nowhere)
    assert cache.cached(lambda x: x + 1)(2) == 3


def test_compiled_code_is_renewed_with_the_files_behind_it(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("a = 1")
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    before = cache.source_key("one")
    assert before == cache.source_key("one") >= 0
    (tmp_path / "one.py").write_text("a = 2")
    assert cache.source_key("one") != before


@pytest.mark.parametrize("every", [1, 2, 3])
def test_walk_tells_every_nth_header(every):
    sizes = [40, 100, 4096, 41, 50, 77, 60]
    chunks = [size.to_bytes(2, "little") + bytes(size) for size in sizes]
    headers = [sum(map(len, chunks[:k])) for k in range(len(chunks))]
    data = np.frombuffer(b"".join(chunks), np.uint8)
    offsets = np.full(8, -1, np.int64)
    assert decoder.walk_chunks(data, 32 * 7, 16, offsets, every) == (7, 0, data.size)
    told = headers[::every]
    assert offsets.tolist() == [*told, *[-1] * (8 - len(told))]
