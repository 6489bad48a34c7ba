"""One line on stderr for whatever is wrong with a file."""

import io
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planezip import model
from planezip.cli import main
from planezip.model import container
from tests.cli_calls import RAMP, Capture, failure, report, saved, zipped

pytestmark = pytest.mark.usefixtures("in_tmp")


def npy(header: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    text = header.encode("latin1")
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("sprung",))


PICKLED = saved(np.array([Trap()], object))
BAD_FILES = {
    "empty.npy": (b"", "not a .npy, .npz"),
    "text.npy": (b"hello world", "not a .npy, .npz"),
    "pickle.npy": (pickle.dumps(Trap()), "not a .npy, .npz"),
    "magic.npy": (b"\x93NUMPY", "damaged or not supported"),
    "version.npy": (npy("{}", version=b"\7\0"), "damaged or not supported"),
    "header.npy": (npy("{'descr': '<f4', 'shape': (2,"), "damaged or not supported"),
    "code.npy": (npy("__import__('os').mkdir('sprung')"), "damaged or not supported"),
    "huge.npy": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2**9,)}"),
        "not supported",
    ),
    "vast.npy": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,), }"),
        "bytes announced, 0 there",
    ),
    "negative.npy": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
        "not supported",
    ),
    "objects.npy": (PICKLED, "pickled Python objects"),
    "strings.npy": (saved(np.array(["ab"])), "dtype must be one of"),
    "dates.npy": (saved(np.array(["2020-01-01"], "M8[D]")), "dtype must be one of"),
    "fields.npy": (saved(np.zeros(2, "i4,f4")), "dtype must be one of"),
    "long.npy": (saved(np.zeros(2, np.longdouble)), "dtype must be one of"),
    "short.npy": (saved(RAMP)[:-1], "12000 bytes announced, 11999 there"),
    "tail.npy": (saved(RAMP) + b"x", "12000 bytes announced, 12001 there"),
    "cut.npz": (zipped("a.npy", saved(RAMP))[:-30], "damaged or not supported"),
    "magic.npz": (b"PK\3\4", "damaged or not supported"),
    "text.npz": (zipped("readme.txt", b"hi"), "is not an array"),
    "torch.npz": (zipped("data.pkl", pickle.dumps(Trap())), "is not an array"),
    "objects.npz": (zipped("a.npy", PICKLED), "pickled Python objects"),
    "vast.npz": (
        zipped(
            "a.npy",
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,), }"),
        ),
        "bytes announced, 0 there",
    ),
    "magic.pz": (b"\x89PZ\r\n\x1a\n\0", "ends within its header"),
    "empty.safetensors": (b"", "damaged or not a safetensors file"),
    "vast.safetensors": (b"\xff" * 8 + b"{}", "damaged or not a safetensors file"),
    "json.safetensors": (b"\2" + bytes(7) + b"{]", "damaged or not a safetensors file"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(capsys: Capture, name: str) -> None:
    data, words = BAD_FILES[name]
    Path(name).write_bytes(data)
    for command in ("ratio", "encode", "inspect"):
        assert words in failure(capsys, command, name)
    assert [p.name for p in Path().iterdir()] == [name]  # nothing written, no trap sprung


def test_missing_file_and_folder(capsys: Capture) -> None:
    for command in ("ratio", "encode", "decode", "inspect"):
        assert failure(capsys, command, "no.npy") == "no.npy: No such file or directory"
        assert failure(capsys, command, ".") == ".: Is a directory"
        assert "null byte" in failure(capsys, command, "a\0b")


def test_no_tensors(capsys: Capture) -> None:
    np.savez("a.npz")
    assert report(capsys, "ratio", "ratio", "a.npz")["total"]["raw_bytes"] == 0
    assert report(capsys, "ratio", "encode", "a.npz")["tensors"] == []
    assert report(capsys, "inspect", "inspect", "a.pz", "--verify")["tensors"] == []
    for argv in (["ratio", "a.npz"], ["inspect", "a.pz"]):
        assert main(argv) == 0
        assert capsys.readouterr().out == "no tensors\n"
    assert main(["decode", "a.pz"]) == 0


def test_names_that_steer_terminals(capsys: Capture) -> None:
    Path("a.npz").write_bytes(zipped("\x1b[2J\n\u202e.npy", saved(RAMP)))
    assert main(["ratio", "a.npz"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("\\x1b[2J\\n\\u202e  float32")
    assert "no\\x1b" in failure(capsys, "ratio", "no\x1b")
    code = "import sys; from planezip.cli import main; sys.exit(main(['inspect', 'größe.npy']))"
    np.save("größe.npy", RAMP)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfe" in done.stdout


def test_names_that_appear_twice(capsys: Capture) -> None:
    data = zipped("a.npy", saved(RAMP), "b.npy", saved(RAMP))
    Path("a.npz").write_bytes(data.replace(b"b.npy", b"a.npy"))
    assert "appears twice" in failure(capsys, "encode", "a.npz")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_fuzz_files(capsys: Capture, data: st.DataObject) -> None:
    """Damaged files of every kind: a result or one line, never a traceback."""
    kind = data.draw(st.sampled_from(sorted(WHOLE_FILES)))
    content = bytearray(WHOLE_FILES[kind])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    Path(f"f.{kind}").write_bytes(content)
    Path("f.out.pz").unlink(missing_ok=True)
    for argv in (
        ["ratio", f"f.{kind}"],
        ["encode", f"f.{kind}", "-o", "f.out.pz"],
        ["inspect", f"f.{kind}", "--verify"],
    ):
        assert main(argv) in (0, 2)
        assert "Traceback" not in capsys.readouterr().err


def _whole_files() -> dict[str, bytes]:
    from safetensors.numpy import save

    small = np.linspace(0, 1, 70, dtype=np.float32)
    plain, packed = io.BytesIO(), io.BytesIO()
    np.savez(plain, a=small, b=np.asfortranarray(small.reshape(7, 10)))
    np.savez_compressed(packed, a=small)
    return {
        "npy": saved(small.reshape(7, 10)),
        "npz": plain.getvalue(),
        "packed.npz": packed.getvalue(),
        "safetensors": save({"a": small, "b": small[:3]}),
        "pz": container.to_bytes({"a": model.encode(small)}),
    }


WHOLE_FILES = _whole_files()
