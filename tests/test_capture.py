"""Capture of saved activations on small models: contents, sampling, files, sizes."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import planezip.sim
from planezip.model.registry import compare, encodings
from planezip.sim.align import match_storages
from planezip.sim.ratios import load_ratios, save_ratios, wire_bytes
from planezip.sim.record import record_trace
from planezip.sim.session import Options, make_trainer, run_capture
from planezip.sim.trace_file import load_trace

TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="NOT TESTED: needs planezip[capture]")
needs_images = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="NOT TESTED: needs torchvision"
)
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="NOT TESTED: needs transformers"
)

MODELS = """
import torch
from torch import nn
from torch.nn import functional as F

def convs(batch):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                          nn.Dropout(0.5), nn.Flatten(), nn.Linear(8 * 36, 4))
    return (model, (torch.randn(batch, 3, 8, 8), torch.randint(4, (batch,))),
            lambda m, x, y: F.cross_entropy(m(x), y))

class Wavering(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 4), 0
    def forward(self, x):
        self.calls += 1
        return self.layer(x).tanh() if self.calls % 2 else self.layer(x).sigmoid()

def wavering(batch):
    return Wavering(), (torch.randn(batch, 4),), lambda m, x: m(x).sum()

def tiny_gpt2(batch):
    import transformers
    from planezip.sim.workloads import text_loss
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=600,
                                     n_positions=64, bos_token_id=0, eos_token_id=0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return model, (torch.randint(600, (batch, 64)),), text_loss
"""


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return str(path)


def schema(name: str) -> Any:
    """Schema ``sim/schemas/NAME.json``."""
    return json.loads((Path(planezip.sim.__file__).parent / f"schemas/{name}.json").read_text())


def tensors_of(folder: Path, file: str) -> dict[str, np.ndarray[Any, Any]]:
    """Tensors of a .safetensors file as integers of their size."""
    raw = (folder / file).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    sizes = {"F32": 4, "BF16": 2, "U8": 1, "BOOL": 1, "I64": 8}
    found = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        first, last = (8 + length + k for k in entry["data_offsets"])
        found[name] = np.frombuffer(raw[first:last], f"<u{sizes[entry['dtype']]}")
    return found


# --- contents ---------------------------------------------------------------------------


@needs_torch
def test_contents_of_two_iterations(models: str, tmp_path: Path) -> None:
    import torch

    options = Options(
        f"{models}:convs", batch=4, iterations=2, types=("float32", "bfloat16"), learning_rate=0.5
    )
    out = tmp_path / "out"
    run_capture(options, out)
    index = json.loads((out / "index.json").read_text())
    rows = {row["operator"] + str(row["slot"]): row for row in index["tensors"]}
    first = tensors_of(out, "iteration-0.float32.safetensors")
    second = tensors_of(out, "iteration-1.float32.safetensors")

    # the same model from the same seed, run by hand
    trainer, _ = make_trainer(options)
    model, (x, _) = trainer.step.model, trainer.step.inputs
    conv = model[0](x).detach().numpy().ravel()
    got = first[rows["aten.convolution0"]["name"]].view("<f4")
    np.testing.assert_array_equal(got, conv)
    # the input does not change, what comes after an update does
    assert (first["input.0"] == second["input.0"]).all()
    changed = second[rows["aten.convolution0"]["name"]]
    assert (changed != first[rows["aten.convolution0"]["name"]]).any()
    # batch norm's storage holds what the ReLU in place left
    relu = first[rows["aten.native_batch_norm0"]["name"]].view("<f4")
    assert relu.min() == 0
    assert rows["aten.native_batch_norm0"]["category"] == "ReLU output"
    # dropout is the fused one: a mask of one byte an element
    mask = first[rows["aten.native_dropout1"]["name"]]
    assert mask.dtype == np.uint8
    assert set(mask) == {0, 1}
    # bfloat16 rounds to nearest even
    half = tensors_of(out, "iteration-0.bfloat16.safetensors")
    bits = torch.tensor(conv).view(torch.int32).numpy().view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    np.testing.assert_array_equal(half[rows["aten.convolution0"]["name"]], rounded)
    # the index's trace has the saved storages
    jsonschema.validate(index, schema("capture"))
    trace = load_trace(out / index["trace"])
    assert sorted(row["storage"] for row in index["tensors"]) == list(trace.saved)


@needs_torch
def test_sizes_are_those_of_the_codec(models: str, tmp_path: Path) -> None:
    options = Options(f"{models}:convs", batch=8, iterations=2)
    out = tmp_path / "out"
    ratios = run_capture(options, out, measure=True)["bfloat16"]
    written = [tensors_of(out, f"iteration-{k}.bfloat16.safetensors") for k in range(2)]
    names = {
        (row["position"], row["slot"]): row["name"]
        for row in json.loads((out / "index.json").read_text())["tensors"]
    }
    assert len(ratios.tensors) == len(names)
    for t in ratios.tensors:
        for k in range(2):
            array = written[k][names[t.position, t.slot]]
            array = array.view("float16" if t.dtype == "bfloat16" else array.dtype)
            for codec, size in compare(array, encodings()).items():
                assert t.wire_bytes[codec][k] == size.wire_bytes
        assert sum(t.tags) == -(-t.raw_bytes // 128)


@needs_torch
def test_same_seed_same_bytes(models: str, tmp_path: Path) -> None:
    options = Options(f"{models}:convs", batch=4, iterations=2, train_steps=3)
    for name in ("a", "b"):
        run_capture(options, tmp_path / name)
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


@needs_torch
def test_dynamic_control_flow_is_refused(models: str) -> None:
    with pytest.raises(ValueError, match="leaves the profiled sequence at operator"):
        run_capture(Options(f"{models}:wavering", batch=2), measure=True)


@needs_torch
def test_capture_does_not_overwrite(models: str, tmp_path: Path) -> None:
    options = Options(f"{models}:convs", batch=2, iterations=1)
    run_capture(options, tmp_path / "out")
    with pytest.raises(ValueError, match="holds a capture already"):
        run_capture(options, tmp_path / "out")


@needs_torch
def test_state_round_trip(models: str, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    base = {"model": f"{models}:convs", "batch": 4, "iterations": 1}
    whole = run_capture(Options(**base, train_steps=3, save_state=state), measure=True)
    again = run_capture(Options(**base, state=state), measure=True)
    assert again["bfloat16"].weights == whole["bfloat16"].weights == "random, 3 steps"
    same = [t for t in again["bfloat16"].tensors if t.operator == "aten.convolution"]
    assert same == [t for t in whole["bfloat16"].tensors if t.operator == "aten.convolution"]
    with pytest.raises(ValueError, match="is the state of another model"):
        run_capture(Options(f"{models}:wavering", batch=2, state=state), measure=True)


@needs_torch
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 0}, "batch must be an integer of at least 1, not 0"),
        ({"iterations": 0}, "iterations must be an integer of at least 1"),
        ({"images": Path("a"), "text": Path("b")}, "images and text exclude each other"),
        pytest.param({"images": Path("absent")}, "absent has no images", marks=needs_images),
        ({"text": Path("absent.txt")}, "is no language model"),
        ({"train_batch": 0}, "train_batch must be an integer of at least 1"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"learning_rate": -1.0}, "learning_rate must be positive"),
    ],
)
def test_bad_options(models: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_capture(Options(f"{models}:convs", **changes), measure=True)


# --- data -------------------------------------------------------------------------------


@needs_torch
@needs_images
def test_image_batches(tmp_path: Path) -> None:
    from PIL import Image

    from planezip.sim.batches import image_batches

    for k, name in enumerate(("n01440764_tench", "n01514859_hen", "n01560419_bulbul")):
        Image.new("RGB", (40, 30), (80 * k, 10, 200)).save(tmp_path / f"{name}.png")
    batches = image_batches(tmp_path, 3, 16, seed=4)
    images, classes = next(batches)
    assert images.shape == (3, 3, 16, 16)
    assert sorted(classes.tolist()) in ([0, 8, 16], [0, 1, 2])  # ImageNet's, if timm is there
    again = image_batches(tmp_path, 3, 16, seed=4)
    assert next(again)[1].tolist() == classes.tolist()
    assert sorted(next(batches)[1].tolist()) == sorted(classes.tolist())


@needs_torch
def test_text_windows() -> None:
    import torch

    from planezip.sim.batches import DataError, text_batches

    tokens = torch.arange(100)
    (window,) = next(text_batches(tokens, 4, 10))
    assert window.shape == (4, 10)
    assert (window.diff() == 1).all()
    short, positions = next(text_batches(tokens, 1, 10, context=50))
    assert short.shape == positions.shape == (1, 10)
    assert 0 <= int(positions[0, 0]) <= 40
    with pytest.raises(DataError, match="the text has 100 tokens; more than 100 are needed"):
        next(text_batches(tokens, 1, 100))


@needs_torch
@needs_transformers
def test_training_on_a_text(models: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three four five six seven eight nine ten " * 40)
    options = Options(f"{models}:tiny_gpt2", batch=1, text=text, train_steps=2, iterations=2)
    ratios = run_capture(options, measure=True)["bfloat16"]
    assert (ratios.weights, ratios.iterations) == ("random, 2 steps", 2)
    for content, message in (
        (b"one two", "more than"),
        (b"\xff\xfe" * 500, "is not UTF-8"),
        (None, "there is no text file"),
    ):
        text.unlink(missing_ok=True)
        if content is not None:
            text.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            run_capture(options, measure=True)


# --- alignment and ratios ---------------------------------------------------------------


@needs_torch
@needs_transformers
def test_sequences_of_two_batch_sizes_are_aligned(models: str, tmp_path: Path) -> None:
    one = record_trace(f"{models}:tiny_gpt2", 1)
    eight = record_trace(f"{models}:tiny_gpt2", 8)
    assert [op.name for op in one.ops] != [op.name for op in eight.ops]
    matched = match_storages(one, eight)
    for ours, theirs in matched.items():
        a, b = one.storages[ours], eight.storages[theirs]
        assert b.bytes in (a.bytes, 8 * a.bytes)
        assert one.ops[a.producer].scope == eight.ops[b.producer].scope
    missing = set(eight.saved) - set(matched.values())
    share = sum(eight.storages[n].bytes for n in missing)
    share /= sum(eight.storages[n].bytes for n in eight.saved)
    assert 0 < share < 0.1

    ratios = run_capture(
        Options(f"{models}:tiny_gpt2", batch=1, iterations=1), measure=True, against=eight
    )["bfloat16"]
    assert ratios.unmatched_bytes == sum(eight.storages[n].bytes for n in missing)
    sizes = wire_bytes(eight, ratios, float_bytes=2)
    for n in eight.saved:
        raw = eight.storages[n].size_bytes(2)
        assert sizes[n] == raw if n in missing else sizes[n] <= raw
    save_ratios(ratios, tmp_path / "r.json.gz")
    assert load_ratios(tmp_path / "r.json.gz") == load_ratios(tmp_path / "r.json.gz")
    assert wire_bytes(eight, load_ratios(tmp_path / "r.json.gz"), float_bytes=2) == sizes
