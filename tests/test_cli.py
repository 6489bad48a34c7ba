"""The command: tables, JSON, round trips, and one line for whatever is wrong."""

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planezip import model
from planezip.cli import COMMANDS, files, main
from planezip.cli.progress import Progress
from planezip.model import container, registry

EXAMPLE = str(Path(__file__).parents[1] / "docs" / "examples" / "my_encoding.py")
RAMP = np.linspace(-3, 3, 3000, dtype=np.float32)
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def failure(capsys: Capture, *argv: str) -> str:
    """The one line on stderr of a call that fails."""
    capsys.readouterr()
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("planezip: ")
    assert err.count("\n") == 1
    return err.removeprefix("planezip: ").rstrip()


def report(capsys: Capture, schema: str, *argv: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*argv, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    text = resources.files("planezip.cli").joinpath("schemas", f"{schema}.json").read_text()
    jsonschema.Draft202012Validator(json.loads(text)).validate(data)
    return data


# --- ratio ----------------------------------------------------------------------------


def test_ratio_table(capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    mask = (rng.random(8192) >= 0.1).astype(np.uint8)
    np.savez("a.npz", mask=mask, zeros=np.zeros((4, 2048), np.float16), one=np.float32(1))
    assert main(["ratio", "a.npz", "--codec", "BX,PlaneZip"]) == 0
    assert capsys.readouterr().out.splitlines() == GOLDEN.strip().splitlines()


# zeros: 32 blocks of 9 bits (6 without tag) and a header in each of 4 chunks: 16384 / 152
GOLDEN = """
tensor  dtype    shape    bytes       BX  PlaneZip  RAW%  ZVC%  DBX%    BX%  ZBX%
mask    uint8    8192     8,192    5.949     5.847   0.0   0.0   0.0  100.0   0.0
zeros   float16  4x2048  16,384  157.538   107.789   0.0   0.0   0.0  100.0   0.0
one     float32  scalar       4    0.571     0.571   0.0   0.0   0.0  100.0   0.0
total                    24,580   16.519    15.756   0.0   0.0   0.0  100.0   0.0
"""


@pytest.mark.parametrize("bf16", [False, True])
def test_ratio_json_is_what_the_encoder_writes(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, bf16: bool
) -> None:
    """Over many pieces, too."""
    monkeypatch.setattr(files, "PIECE_BYTES", 2 * 4096)
    monkeypatch.setattr(registry, "PIECE_BLOCKS", 96)
    rng = np.random.default_rng(1)
    big = rng.standard_normal(20_000).astype(np.float32) * (rng.random(20_000) > 0.5)
    np.savez("a.npz", big=big, bool=rng.random((3, 99)) > 0.5, empty=np.zeros((0, 3)))
    options = ["--bf16"] if bf16 else []
    data = report(capsys, "ratio", "ratio", "a.npz", "--codec", "all", *options)
    first, _, empty = data["tensors"]
    assert [t["name"] for t in data["tensors"]] == ["big", "bool", "empty"]
    assert first["dtype"] == ("bfloat16" if bf16 else "float32")
    if bf16:
        big = big.astype(ml_dtypes.bfloat16)
    sizes = registry.compare(big)
    assert list(sizes) == data["codecs"]
    assert first["wire_bytes"] == {name: size.wire_bytes for name, size in sizes.items()}
    assert first["wire_bytes"]["PlaneZip"] == model.encode(big).wire_bytes
    assert sum(first["tags"].values()) == -(-big.nbytes // 128)
    assert empty["ratio"]["BX"] is None
    assert data["total"]["raw_bytes"] == big.nbytes + 297
    main(["encode", "a.npz", *options])
    assert container.read("a.pz")["big"] == model.encode(big)
    assert main(["decode", "a.pz", "-o", "b.npz"]) == 0
    with np.load("b.npz") as arrays:
        assert arrays["big"].tobytes() == big.tobytes()


def test_ratio_of_several_files_and_formats(capsys: Capture) -> None:
    from safetensors.numpy import save_file

    np.save("größe.npy", RAMP)
    np.savez_compressed("b.npz", RAMP)
    save_file({"層": RAMP}, "c.safetensors")
    main(["encode", "größe.npy", "-o", "d.pz"])
    data = report(capsys, "ratio", "ratio", "größe.npy", "b.npz", "c.safetensors", "d.pz")
    assert [t["name"] for t in data["tensors"]] == ["größe", "arr_0", "層", "größe"]
    assert len({json.dumps([t["wire_bytes"], t["tags"]]) for t in data["tensors"]}) == 1
    main(["ratio", "größe.npy", "b.npz"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "tensor",
        "größe.npy",
        "b.npz: arr_0",
        "total",
    ]


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6000, dtype=np.float32).reshape(20, 300)),
        np.arange(5000, dtype=">i4").reshape(50, 100),
        np.asfortranarray(np.arange(5000, dtype=">f8").reshape(50, 100)),
        np.array(7, np.uint16),
        np.zeros((0, 5), np.float32),
        np.asfortranarray(np.zeros((0, 5, 2), ">i2")),
        np.array([True, False]),
        np.arange(9) * (1 + 2j),
    ],
)
def test_orders_and_shapes(capsys: Capture, save: Any, array: np.ndarray) -> None:
    name = "a.npy" if save is np.save else "a.npz"
    save(name, array)
    assert main(["encode", name]) == 0
    (stream,) = container.read("a.pz").values()
    assert stream == model.encode(array)
    assert np.array_equal(model.decode(stream), array)
    assert main(["decode", "a.pz", "-o", "back.npy"]) == 0
    back = np.load("back.npy")
    assert back.shape == array.shape
    assert np.array_equal(back, array)


def test_codec_of_ones_own(capsys: Capture) -> None:
    np.save("a.npy", RAMP)
    data = report(capsys, "ratio", "ratio", "a.npy", "--with", EXAMPLE, "--codec", "ZVC")
    assert data["codecs"] == ["ZVC", "shared-bytes"]
    assert "shared-bytes" not in [e.name for e in registry.encodings()]
    assert "--codec all" not in failure(capsys, "ratio", "a.npy", "--codec", "nix")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "registers no codec"),
        ("import nowhere", "line 1: ModuleNotFoundError: No module named 'nowhere'"),
        ("\ndef f(:", "line 2: SyntaxError"),
        ("\n\n1 / 0", "line 3: ZeroDivisionError"),
        (
            "from planezip.model.registry import register\nregister(3)",
            "line 2: TypeError: encoding",
        ),
        (
            "from planezip.model.registry import register\nclass E:\n name='ZVC'\n tag_bits=0\n"
            " def bits(self, b, w): return 0\nregister(E())",
            "line 6: ValueError: name must be a new one, not 'ZVC'",
        ),
        (
            "from planezip.model.registry import register\nclass E:\n name='E'\n tag_bits=0\n"
            " def bits(self, b, w): return 0\nregister(E())",
            "E: bits must return 94 integers",
        ),
        (
            "from planezip.model.registry import register\nclass E:\n name='E'\n tag_bits=0\n"
            " def bits(self, b, w): return b[5000]\nregister(E())",
            "my.py, line 5: IndexError: index 5000",
        ),
    ],
)
def test_codec_that_is_wrong(capsys: Capture, text: str, words: str) -> None:
    np.save("a.npy", RAMP)
    Path("my.py").write_text(text)
    assert words in failure(capsys, "ratio", "a.npy", "--with", "my.py")


# --- encode, decode, inspect ----------------------------------------------------------


def test_round_trip_of_safetensors(capsys: Capture) -> None:
    from safetensors import deserialize

    def tensors(name: str) -> dict[str, tuple[str, list[int], bytes]]:
        pairs = deserialize(Path(name).read_bytes())
        return {k: (t["dtype"], t["shape"], bytes(t["data"])) for k, t in pairs}

    noise = np.random.default_rng(2).integers(0, 256, 4200, np.uint8).tobytes()
    want = {
        "b/f": ("BF16", [3, 700], noise),
        "größe": ("F32", [], b"\1\2\3\4"),
        "empty": ("I64", [0, 4], b""),
        "f8": ("F8_E4M3", [5], b"12345"),
        "bool": ("BOOL", [3], b"\1\0\1"),
    }
    header: dict[str, Any] = {"__metadata__": {"x": "y"}}
    data = b""
    for name, (dtype, shape, part) in want.items():
        span = [len(data), len(data) + len(part)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": span}
        data += part
    text = json.dumps(header).encode()
    Path("a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    assert tensors("a.safetensors") == want
    total = report(capsys, "ratio", "encode", "a.safetensors")["total"]
    assert total["raw_bytes"] == len(data)
    streams = container.read("a.pz")
    assert total["wire_bytes"]["PlaneZip"] == sum(s.wire_bytes for s in streams.values())
    assert main(["decode", "a.pz", "-o", "b.safetensors"]) == 0
    assert tensors("b.safetensors") == want
    assert main(["decode", "a.pz", "-o", "b.npz"]) == 0
    assert "cannot name bfloat16, float8_e4m3fn" in capsys.readouterr().err
    with np.load("b.npz") as arrays:
        assert set(arrays.files) == set(want)
        assert arrays["b/f"].shape == (3, 700)
        assert arrays["b/f"].tobytes() == noise


def test_bfloat16_in_numpy_files(capsys: Capture) -> None:
    values = RAMP.astype(ml_dtypes.bfloat16)
    np.save("v2.npy", values)
    np.save("u2.npy", values.view(np.uint16))
    assert "say --bits-as bfloat16" in failure(capsys, "encode", "v2.npy")
    for name in ("v2", "u2"):
        assert main(["encode", f"{name}.npy", "--bits-as", "bfloat16"]) == 0
        assert container.read(f"{name}.pz")[name] == model.encode(values)
    np.save("f4.npy", RAMP)
    assert main(["encode", "f4.npy", "--bf16"]) == 0
    assert container.read("f4.pz")["f4"] == model.encode(values)


def test_rounding_to_bfloat16(capsys: Capture) -> None:
    """To nearest, ties to even, in integers; NaN stays NaN."""
    bits = np.array(
        [0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x80000001, 0xFF800000],
        np.uint32,
    )
    np.save("a.npy", np.append(bits, np.uint32(0x7F800001)).view(np.float32))
    assert main(["encode", "a.npy", "--bf16"]) == 0
    got = model.decode(container.read("a.pz")["a"])
    want = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    assert got.view(np.uint16)[:-1].tolist() == want.tolist()
    assert np.isnan(got[-1].astype(np.float32))


def test_existing_files_are_kept(capsys: Capture) -> None:
    np.save("a.npy", RAMP)
    Path("a.pz").write_text("mine")
    assert "say --force" in failure(capsys, "encode", "a.npy")
    assert Path("a.pz").read_text() == "mine"
    assert main(["encode", "a.npy", "--force"]) == 0
    Path("d.npy").mkdir()
    assert "d.npy is there already" in failure(capsys, "decode", "a.pz", "-o", "d.npy", "--force")
    assert "must end in .npy, .npz, .safetensors" in failure(
        capsys, "decode", "a.pz", "-o", "x.txt"
    )
    assert "No such file" in failure(capsys, "decode", "a.pz", "-o", "no/x.npy")


def test_tensor_by_name(capsys: Capture) -> None:
    np.savez("a.npz", x=RAMP, y=RAMP[:5])
    main(["encode", "a.npz", "--no-index", "--quiet"])
    assert "holds one tensor, not 2" in failure(capsys, "decode", "a.pz", "-o", "y.npy")
    assert not Path("y.npy").exists()
    assert main(["decode", "a.pz", "-o", "y.npy", "--tensor", "y", "--tensor", "y"]) == 0
    assert np.array_equal(np.load("y.npy"), RAMP[:5])
    assert "no tensor 'z': `planezip inspect`" in failure(capsys, "decode", "a.pz", "--tensor", "z")
    np.savez("c.npz", c=np.zeros(3, complex))
    main(["encode", "c.npz"])
    assert "say -o NAME.npz" in failure(capsys, "decode", "c.pz")


def test_inspect(capsys: Capture) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (2, 5000), np.uint8)
    np.savez("a.npz", noise=noise, ramp=RAMP)
    assert [t["name"] for t in report(capsys, "inspect", "inspect", "a.npz")["tensors"]] == [
        "noise",
        "ramp",
    ]
    main(["encode", "a.npz"])
    first = report(capsys, "inspect", "inspect", "a.pz")["tensors"][0]
    assert first.pop("crc32")
    assert " ".join(map(str, first.values())) == "noise uint8 [2, 5000] 32 10000 10016 3 2"
    assert main(["inspect", "a.pz", "--verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:6] == ["noise", "uint8", "2x5000", "10,000", "10,016", "3"]
    assert lines[-1] == "verified: every chunk decodes"
    main(["encode", "a.npz", "--no-index", "--force"])
    assert (
        report(capsys, "inspect", "inspect", "a.pz", "--verify")["tensors"][0]["raw_chunks"] is None
    )
    damaged = bytearray(Path("a.pz").read_bytes())
    damaged[-3] ^= 1
    Path("a.pz").write_bytes(damaged)
    assert main(["inspect", "a.pz"]) == 0
    assert failure(capsys, "inspect", "a.pz", "--verify")
    assert failure(capsys, "decode", "a.pz", "-o", "b.npz")
    assert not Path("b.npz").exists()


# --- bad input ------------------------------------------------------------------------


def npy(header: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    text = header.encode("latin1")
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


def zipped(*names_and_data: str | bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in zip(names_and_data[::2], names_and_data[1::2], strict=True):
            archive.writestr(str(name), data)
    return buffer.getvalue()


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


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


# --- the command itself ---------------------------------------------------------------


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
from planezip.cli import main
try:
    main({argv!r})
except SystemExit as stop:
    assert stop.code == 0
heavy = {{"numpy", "numba", "torch", "amaranth", "safetensors"}} & set(sys.modules)
sys.exit(f"imported {{heavy}}" if heavy else 0)
"""
    for argv in (
        ["--help"],
        ["ratio", "--help"],
        ["encode", "-h"],
        ["decode", "-h"],
        ["inspect", "-h"],
    ):
        done = run(code.format(argv=argv))
        assert done.returncode == 0, done.stderr
    assert all(name in run(code.format(argv=["--help"])).stdout for name in COMMANDS)


def test_usage_errors(capsys: Capture) -> None:
    for argv in ([], ["nix"], ["ratio"], ["--nix"]):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 2
    assert "ratio, encode" in capsys.readouterr().err.replace("'", "")
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("planezip ")


def test_every_command_has_a_module() -> None:
    import argparse
    import importlib

    for name in COMMANDS:
        subparsers = argparse.ArgumentParser().add_subparsers()
        importlib.import_module(f"planezip.cli.{name}").add_parser(subparsers)
        assert list(subparsers.choices) == [name]


def test_reader_that_goes_away() -> None:
    one = saved(np.zeros(1))
    members = [part for k in range(2000) for part in (f"tensor{k}.npy", one)]
    Path("a.npz").write_bytes(zipped(*members))
    command = f"{sys.executable} -m planezip.cli ratio a.npz | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[1] == "141"


def test_interrupt_and_want_of_memory(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from planezip.cli import ratio

    np.save("a.npy", RAMP)
    for error, code, words in (
        (KeyboardInterrupt, 130, ""),
        (MemoryError, 2, "planezip: out of memory\n"),
        (ImportError("No module named 'torch'"), 2, "planezip: No module named 'torch'\n"),
    ):

        def fail(*_: object, error: object = error) -> None:
            raise error  # type: ignore[misc]

        monkeypatch.setattr(ratio, "measure", fail)
        assert main(["ratio", "a.npy"]) == code
        assert capsys.readouterr().err == words


def test_progress(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    for total, terminal, quiet, shown in (
        *((1 << 30, True, False, True), (1 << 30, False, False, False)),
        *((1 << 30, True, True, False), (1 << 20, True, False, False)),
    ):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with Progress(total, quiet) as progress:
            progress.last -= 10
            progress.add(total // 2)
        assert ("50%  512 of 1024 MiB" in capsys.readouterr().err) == shown
