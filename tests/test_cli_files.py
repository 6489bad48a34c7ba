"""``planezip encode``, ``decode`` and ``inspect``: round trips and files."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from planezip import model
from planezip.cli import main
from planezip.model import container
from tests.cli_calls import RAMP, Capture, failure, report

pytestmark = pytest.mark.usefixtures("in_tmp")


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
