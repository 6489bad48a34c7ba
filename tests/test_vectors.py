"""The golden vectors: what is in them, and that three decoders and two encoders agree with them."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import planezip.model as pz
from planezip.model import ErrorCode, StreamError, reference
from planezip.model.format import CHUNK_BYTES, DEFAULT, FORMAT_VERSION, PlaneCode, Tag
from planezip.model.measure import measure, wire_bytes
from tests import golden, vectors_decoder

INDEX = json.loads((golden.FOLDER / "index.json").read_text())
VECTORS = INDEX["vectors"]
PLANED = (Tag.DBX, Tag.BX, Tag.ZBX)


def contents(vector):
    folder = golden.FOLDER
    name = vector["name"]
    return (folder / f"{name}.stream").read_bytes(), (folder / f"{name}.raw").read_bytes()


def fault_of(vector):
    error = vector["error"]
    return error and (error["code"], error["chunk"], error["block"])


def by_name(vector):
    return vector["name"]


SOUND = [vector for vector in VECTORS if not vector["error"]]
every_vector = pytest.mark.parametrize("vector", VECTORS, ids=by_name)
every_sound_vector = pytest.mark.parametrize("vector", SOUND, ids=by_name)


@every_vector
def test_decoder_of_the_page(vector):
    stream, raw = contents(vector)
    found = vectors_decoder.decode(stream, vector["raw_bytes"], vector["symbol_bits"])
    assert found == (raw, fault_of(vector))


@every_vector
def test_decoder(vector):
    stream, raw = contents(vector)
    for threads in (1, 2):
        data, error = pz.decode_blocks(stream, vector["raw_bytes"], vector["symbol_bits"], threads)
        assert data.tobytes() == raw
        assert (error and (error.code, error.chunk, error.block)) == fault_of(vector)


@every_vector
def test_reference_decoder(vector):
    stream, raw = contents(vector)
    w, raw_bytes, fault = vector["symbol_bits"], vector["raw_bytes"], fault_of(vector)
    if fault is None:
        assert reference.decode_tensor(stream, raw_bytes, w) == raw
    else:
        with pytest.raises(StreamError) as caught:
            reference.decode_tensor(stream, raw_bytes, w)
        assert (caught.value.code, caught.value.chunk, caught.value.block) == fault
        assert caught.value.code.name == vector["error"]["name"]


@every_sound_vector
def test_encoder(vector):
    stream, raw = contents(vector)
    assert len(raw) == vector["raw_bytes"]
    assert (pz.encode_bytes(raw, vector["symbol_bits"]) == stream) == vector["canonical"]


@every_sound_vector
def test_reference_encoder(vector):
    stream, raw = contents(vector)
    w = vector["symbol_bits"]
    assert (reference.encode_tensor(raw, w) == stream) == vector["canonical"]
    blocks = (raw[k : k + 128].ljust(128, b"\0") for k in range(0, len(raw), 128))
    symbols = [reference.split_symbols(block, w) for block in blocks]
    sizes = [[reference.encode_block(tag, s, w).bits for tag in Tag] for s in symbols]
    assert sizes == vector["sizes"]


@every_sound_vector
def test_size_model(vector):
    stream, raw = contents(vector)
    data, w = np.frombuffer(raw, np.uint8), vector["symbol_bits"]
    sizes = measure(data, w)
    assert sizes.bits.tolist() == vector["sizes"]
    assert sizes.tag.tolist() == [row.index(min(row)) for row in vector["sizes"]]
    if vector["canonical"]:
        assert sizes.wire_bytes == wire_bytes(data, w) == len(stream)


def test_the_decoder_for_the_page_has_nothing_of_ours():
    source = Path(vectors_decoder.__file__).read_text()
    imports = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["from __future__ import annotations"]


def test_files_are_those_of_the_command():
    made = dict(golden.files())
    there = {f.name: f.read_bytes() for f in golden.FOLDER.iterdir() if f.name != "README.md"}
    assert made.keys() == there.keys()
    assert [name for name in made if made[name] != there[name]] == []
    assert sum(map(len, there.values())) < 1_000_000
    assert (INDEX["version"], INDEX["format_version"]) == (1, FORMAT_VERSION)


def chunks_of(vector, stream):
    at, blocks = 0, -(-vector["raw_bytes"] // 128)
    while blocks:
        m = min(blocks, 32)
        size = int.from_bytes(stream[at : at + 2], "little")
        yield m, stream[at + 2 : at + 2 + size]
        at += 2 + size
        blocks -= m


def code_counts(monkeypatch):
    """How often each (w, tag) and each (w, tag, code, planes covered) is in the sound vectors."""
    seen: Counter = Counter()
    read = reference._read_codes

    def counted(block, tag, w, p):
        codes, bad = read(block, tag, w, p)
        seen[w, tag] += 1
        seen.update((w, tag, *code) for code in codes)
        return codes, bad

    monkeypatch.setattr(reference, "_read_codes", counted)
    for vector in VECTORS:
        if not vector["error"]:
            reference.decode_tensor(contents(vector)[0], vector["raw_bytes"], vector["symbol_bits"])
    return seen


def test_every_tag_code_and_run_is_there(monkeypatch):
    seen = code_counts(monkeypatch)
    for w in DEFAULT.symbol_bits:
        assert min(seen[w, tag] for tag in Tag) >= 2
        for tag in PLANED:
            for code in PlaneCode:
                lengths = range(2, DEFAULT.planes(tag, w) + 1) if code == 0 else (1,)
                assert [k for k in lengths if not seen[w, tag, code, k]] == [], (w, tag, code)


@pytest.mark.parametrize("w", DEFAULT.symbol_bits)
def test_every_error_raw_chunks_and_padding_are_there(w):
    mine = [v for v in VECTORS if v["symbol_bits"] == w]
    codes = {v["error"]["code"] for v in mine if v["error"]}
    assert codes == {code for code in ErrorCode if code < ErrorCode.FILE_HEADER}
    sound = [v for v in mine if not v["error"]]
    chunks = [c for v in sound for c in chunks_of(v, contents(v)[0])]
    raw = {m for m, body in chunks if len(body) == 128 * m}
    assert 32 in raw
    assert max(len(body) for m, body in chunks if m == 32 and len(body) < CHUNK_BYTES) == 4095
    assert min(raw) < 32
    single = [v for v in sound if v["raw_bytes"] == 128 and v["canonical"]]
    assert {-min(v["sizes"][0]) % 8 for v in single} == set(range(8))
    assert max(v["raw_bytes"] for v in sound) > CHUNK_BYTES
    assert {v["canonical"] for v in sound} == {True, False}
