"""``planezip ratio``: tables, JSON, codecs of one's own."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from planezip import model
from planezip.cli import files, main
from planezip.model import container, registry
from tests.cli_calls import EXAMPLE, RAMP, Capture, failure, report

pytestmark = pytest.mark.usefixtures("in_tmp")


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
