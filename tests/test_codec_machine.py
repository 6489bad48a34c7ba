"""State machines: encode, decode and inspect in any order, on files sound, damaged and repaired."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

import planezip.model as pz
from planezip.cli import main
from planezip.model import container, dtypes, generate, reference

BLOCKS = {w: generate.mixed(600, w, 21) for w in (16, 32)}
NAMES = st.sampled_from(["a", "layer/b", "ü"])
DTYPES = st.sampled_from(["float16", "float32", "int64", "uint8", "bool"])


def tensor(name: str, first: int, size: int) -> np.ndarray:
    """A tensor of ``size`` bytes or a few less, of blocks of every kind."""
    dtype = dtypes.dtype_of(name)
    count = -(-size // 128)
    data = BLOCKS[dtypes.symbol_bits(name)][first : first + count].reshape(-1)
    if name == "bool":
        data = data & 1
    return data[: size - size % dtype.itemsize].view(dtype)


TENSORS = st.builds(tensor, DTYPES, st.integers(0, 500), st.integers(0, 40 * 128))


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


class CodecMachine(RuleBasedStateMachine):
    """Streams in memory: made, decoded whole and in parts, broken and mended."""

    streams = Bundle("streams")
    broken = Bundle("broken")

    @rule(target=streams, array=TENSORS, threads=st.integers(1, 3))
    def encode(self, array, threads):
        return array, pz.encode(array, threads)

    @rule(target=streams, item=consumes(streams), rows=st.integers(1, 4))
    def reshape(self, item, rows):
        """The wire does not depend on the shape."""
        flat = item[0].reshape(-1)
        array = flat[: flat.size - flat.size % rows].reshape(rows, -1)
        stream = pz.encode(array)
        assert bytes(stream.payload) == pz.encode_bytes(array.tobytes(), stream.w)
        return array, stream

    @rule(item=streams, threads=st.integers(1, 3))
    def decode(self, item, threads):
        array, stream = item
        assert same(pz.decode(stream, threads), array)

    @rule(item=streams, k=st.integers(0))
    def decode_chunk(self, item, k):
        array, stream = item
        if stream.chunk_count:
            k %= stream.chunk_count
            assert pz.decode_chunk(stream, k) == array.tobytes()[4096 * k : 4096 * (k + 1)]

    @rule(item=streams)
    def inspect(self, item):
        array, stream = item
        assert stream.wire_bytes == pz.sizes(array).wire_bytes
        assert (stream.raw_bytes, stream.shape) == (array.nbytes, array.shape)
        assert len(stream.chunk_index()) == stream.chunk_count + 1

    @rule(target=broken, item=streams, place=st.integers(0), cut=st.booleans())
    def damage(self, item, place, cut):
        stream = item[1]
        if not stream.payload:
            return multiple()
        payload = bytearray(stream.payload)
        place %= 8 * len(payload)
        if cut:
            del payload[place // 8 :]
        else:
            payload[place // 8] ^= 1 << place % 8
        return item, pz.Stream(stream.dtype, stream.shape, bytes(payload))

    @rule(item=broken, threads=st.integers(1, 2))
    def decode_broken(self, item, threads):
        """As the reference does: the same fault, or the same other tensor."""
        payload, raw_bytes, w = item[1].payload, item[1].raw_bytes, item[1].w
        data, error = pz.decode_blocks(payload, raw_bytes, w, threads)
        if error is None:
            assert data.tobytes() == reference.decode_tensor(payload, raw_bytes, w)
        else:
            with pytest.raises(pz.StreamError, match=f"^{error}$"):
                reference.decode_tensor(payload, raw_bytes, w)

    @rule(target=streams, item=consumes(broken))
    def mend(self, item):
        return item[0]


class FileMachine(RuleBasedStateMachine):
    """The command on one archive; ``held`` is what the archive must have in it."""

    @initialize()
    def start(self):
        self.folder = Path(tempfile.mkdtemp())
        self.tensors: dict[str, np.ndarray] = {}
        self.held: dict[str, np.ndarray] | None = None
        self.sound = b""
        self.indexed = self.damaged = False

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def file(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def archive(self) -> Path:
        return self.folder / "x.pz"

    def run(self, *argv: str) -> str:
        """Output of a call that works."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(argv) == 0
        return out.getvalue()

    def fail(self, *argv: str) -> None:
        """A call that fails with one line."""
        err = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(err):
            assert main(argv) == 2
        assert out.getvalue() == ""
        assert err.getvalue().startswith("planezip: ")
        assert err.getvalue().count("\n") == 1

    @rule(name=NAMES, array=TENSORS)
    def put(self, name, array):
        self.tensors[name] = array

    @precondition(lambda self: self.tensors)
    @rule(k=st.integers(0))
    def drop(self, k):
        del self.tensors[sorted(self.tensors)[k % len(self.tensors)]]

    @precondition(lambda self: self.tensors)
    @rule(index=st.booleans(), threads=st.sampled_from("12"))
    def encode(self, index, threads):
        np.savez(self.file("x.npz"), **self.tensors)
        options = [] if index else ["--no-index"]
        options += ["--threads", threads, "--quiet", "--force", "-o", str(self.archive)]
        self.run("encode", self.file("x.npz"), *options)
        self.held, self.indexed, self.damaged = dict(self.tensors), index, False
        self.sound = self.archive.read_bytes()

    @precondition(lambda self: self.held)
    @rule()
    def encode_without_force(self):
        before = self.archive.read_bytes()
        np.savez(self.file("x.npz"), **self.held)
        self.fail("encode", self.file("x.npz"), "--quiet", "-o", str(self.archive))
        assert self.archive.read_bytes() == before

    @precondition(lambda self: self.held)
    @rule(k=st.integers(0), all_of_it=st.booleans())
    def decode(self, k, all_of_it):
        back = self.file("back.npz")
        Path(back).unlink(missing_ok=True)
        names = sorted(self.held) if all_of_it else [sorted(self.held)[k % len(self.held)]]
        chosen = [] if all_of_it else ["--tensor", names[0]]
        argv = ["decode", str(self.archive), "-o", back, "--quiet", *chosen]
        if self.damaged and all_of_it:
            self.fail(*argv)
            assert not Path(back).exists()
        elif not self.damaged:
            self.run(*argv)
            with np.load(back) as arrays:
                assert sorted(arrays) == names
                assert all(same(arrays[name], self.held[name]) for name in names)

    @precondition(lambda self: self.held)
    @rule(verify=st.booleans())
    def inspect(self, verify):
        argv = ["inspect", str(self.archive), "--json", *["--verify"] * verify]
        if self.damaged and verify:
            self.fail(*argv)
        elif not self.damaged:
            rows = {row["name"]: row for row in json.loads(self.run(*argv))["tensors"]}
            assert rows.keys() == self.held.keys()
            for name, array in self.held.items():
                row = rows[name]
                assert (row["dtype"], row["shape"]) == (array.dtype.name, list(array.shape))
                assert (row["raw_bytes"], row["wire_bytes"]) == (
                    array.nbytes,
                    pz.sizes(array).wire_bytes,
                )

    @precondition(lambda self: self.held and self.indexed and not self.damaged)
    @rule(k=st.integers(0), chunk=st.integers(0))
    def read_chunk(self, k, chunk):
        name = sorted(self.held)[k % len(self.held)]
        data = self.held[name].tobytes()
        with container.File(str(self.archive)) as file:
            if data:
                chunk %= -(-len(data) // 4096)
                assert file.chunk(name, chunk) == data[4096 * chunk : 4096 * (chunk + 1)]

    @precondition(lambda self: self.held and not self.damaged)
    @rule(place=st.integers(0), kind=st.sampled_from(["flip", "cut", "more"]))
    def damage(self, place, kind):
        broken = bytearray(self.sound)
        place %= 8 * len(broken)
        if kind == "flip":
            broken[place // 8] ^= 1 << place % 8
        elif kind == "cut":
            del broken[place // 8 :]
        else:
            broken += bytes(1 + place % 9)
        self.archive.write_bytes(broken)
        self.damaged = True

    @precondition(lambda self: self.held and self.damaged)
    @rule()
    def repair(self):
        self.archive.write_bytes(self.sound)
        self.damaged = False

    @invariant()
    def nothing_is_left_behind(self):
        if hasattr(self, "folder"):
            left = {f.name for f in self.folder.iterdir()}
            assert left <= {"x.npz", "x.pz", "back.npz"}


TestCodecMachine = CodecMachine.TestCase
TestCodecMachine.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestFileMachine = FileMachine.TestCase
TestFileMachine.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
