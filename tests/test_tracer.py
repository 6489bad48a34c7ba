"""Tracing of PyTorch steps, on small models whose storages can be counted by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import planezip.sim.extra
from planezip.sim.extra import MissingExtraError, require_capture
from planezip.sim.record import record_trace
from planezip.sim.trace import Kind, Phase, TraceError
from planezip.sim.trace_file import load_trace, save_trace

TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="NOT TESTED: needs planezip[capture]")

MODELS = """
import torch
from torch import nn
from torch.nn import functional as F

def convs(batch):
    layers = (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 3))
    return nn.Sequential(*layers), (torch.randn(batch, 3, 8, 8),), lambda m, x: m(x).mean()

class Heads(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5, is_causal=True)

def heads(batch):
    x = torch.randn(batch, 2, 16, 8, requires_grad=True)
    return Heads(), (x,), lambda m, x: m(x).sum()

def dropout(batch):
    return (nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1)),
            (torch.randn(batch, 8),), lambda m, x: m(x).sum())

def wrong(batch):
    return 1

def raises(batch):
    return nn.Linear(batch, "x")

def reads_data(batch):
    return nn.Linear(3, 3), (torch.randn(batch, 3),), lambda m, x: m(x).sum() * m(x).max().item()

def sparse(batch):
    return (nn.Linear(3, 3), (torch.eye(3).to_sparse(),),
            lambda m, x: torch.sparse.mm(x, m.weight).sum())
"""


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return str(path)


def saved(trace: Any) -> list[tuple[str, int, int]]:
    """Producer, slot and bytes of each saved storage."""
    rows = []
    for n in trace.saved:
        s = trace.storages[n]
        name = trace.ops[s.producer].name if s.producer >= 0 else s.kind.value
        rows.append((name.removeprefix("aten."), s.slot, s.bytes))
    return rows


@needs_torch
@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_storages_of_a_small_network(models: str, device: str) -> None:
    trace = record_trace(f"{models}:convs", 5, device=device)
    # batch norm's output and the ReLU in place share a storage
    assert saved(trace) == [
        ("input", 0, 5 * 3 * 64 * 4),
        ("convolution", 0, 5 * 4 * 36 * 4),
        ("native_batch_norm", 0, 5 * 4 * 36 * 4),
        ("native_batch_norm", 1, 16),
        ("native_batch_norm", 2, 16),
        ("mean", 0, 4),
    ]
    categories = [trace.storages[n].category for n in trace.saved]
    assert categories[1:3] == ["Conv output", "ReLU output"]
    assert trace.parameter_count == 4 * 27 + 4 + 4 + 4 + 2 * 36 + 2
    optimizer = trace.ops[-1]
    assert optimizer.phase is Phase.OPTIMIZER
    assert optimizer.other_bytes == 20 * trace.parameter_count
    gradients = [s for s in trace.storages if s.kind is Kind.PARAMETER_GRADIENT]
    assert sum(s.bytes for s in gradients) == 4 * trace.parameter_count == trace.gradient_bytes


@needs_torch
def test_counts_of_single_operators(models: str) -> None:
    trace = record_trace(f"{models}:convs", 5)
    by_name = {op.name.removeprefix("aten."): op for op in trace.ops if op.phase is Phase.FORWARD}
    norm = by_name["native_batch_norm"]
    # input and output, and five parameters and buffers and two statistics of 4 elements
    assert norm.float_elements == 2 * 5 * 4 * 36 + 4 * 4 + 2 * 4
    assert [trace.storages[n].kind for n in norm.writes[-2:]] == [Kind.BUFFER, Kind.BUFFER]
    relu = by_name["relu_"]
    assert relu.float_elements == 2 * 5 * 4 * 36
    assert relu.reads == relu.writes == (norm.writes[0],)
    assert by_name["convolution"].scope == "3"
    counted = by_name["add_"]  # num_batches_tracked
    assert (counted.float_elements, counted.other_bytes) == (0, 16)


@needs_torch
def test_meta_and_real_tensors_give_the_same_operators(models: str) -> None:
    traces = [record_trace(f"{models}:convs", 2, device=d) for d in ("meta", "cpu")]
    assert traces[0].ops == traces[1].ops
    assert traces[0].storages == traces[1].storages


@needs_torch
def test_fused_dropout(models: str) -> None:
    trace = record_trace(f"{models}:dropout", 4)
    assert ("native_dropout", 1, 4 * 8) in saved(trace)  # one byte an element
    op = next(op for op in trace.ops if op.name == "aten.native_dropout")
    assert op.random
    mask = trace.storages[op.writes[1]]
    assert (mask.dtype, mask.category) == ("bool", "Dropout mask")


@needs_torch
def test_attention(models: str) -> None:
    plain = record_trace(f"{models}:heads", 3)
    fused = record_trace(f"{models}:heads", 3, fused_attention=True)
    square = 3 * 2 * 16 * 16 * 4
    assert ("_softmax", 0, square) in saved(plain)
    assert ("native_dropout", 1, square // 4) in saved(plain)
    assert all(size != square for _, _, size in saved(fused))
    op = next(op for op in fused.ops if op.name == "aten._scaled_dot_product_flash_attention")
    assert op.flops == 2 * 3 * 2 * (16 * 17 // 2) * 16


@needs_torch
@pytest.mark.parametrize(("causal", "masked"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("groups", [1, 2])
def test_plain_attention_is_attention(causal: bool, masked: bool, groups: int) -> None:
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attention

    from planezip.sim.gpu_kernels import gpu_kernels

    torch.manual_seed(1)
    query = torch.randn(2, 4, 5, 8)
    key, value = torch.randn(2, 2, 4 // groups, 7, 8)
    mask = torch.rand(5, 7) < 0.8 if masked else None
    arguments = (query, key, value, mask, 0.0, causal)
    expected = attention(*arguments, enable_gqa=groups > 1)
    for fused in (False, True):
        with gpu_kernels(fused):
            torch.testing.assert_close(attention(*arguments, enable_gqa=groups > 1), expected)


@needs_torch
def test_round_trip_and_determinism(models: str, tmp_path: Path) -> None:
    files = []
    for k in range(2):
        save_trace(record_trace(f"{models}:convs", 2), tmp_path / f"{k}.json.gz")
        files.append((tmp_path / f"{k}.json.gz").read_bytes())
    assert files[0] == files[1]
    assert load_trace(tmp_path / "0.json.gz") == record_trace(f"{models}:convs", 2)


@needs_torch
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("resnet50", "model must be timm:NAME"),
        ("keras:resnet50", "model must be timm:NAME"),
        pytest.param(
            "timm:resnet5",
            "timm has no model 'resnet5'; similar names: .*resnet50",
            marks=pytest.mark.skipif(
                importlib.util.find_spec("timm") is None, reason="NOT TESTED: needs timm"
            ),
        ),
        ("missing.py:f", "there is no file missing.py"),
        ("{models}:absent", "has no function 'absent'"),
        ("{models}:raises", "models.py:raises failed: TypeError"),
        ("{models}:reads_data", "the step failed in the forward pass after aten.*Tensor.item"),
        ("{models}:wrong", r"must return \(model, inputs, loss\), not 1"),
    ],
)
def test_bad_models(models: str, model: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        record_trace(model.replace("{models}", models), 2)


@needs_torch
def test_bad_batch_and_sparse_tensors(models: str) -> None:
    with pytest.raises(ValueError, match="batch must be a positive integer, not 0"):
        record_trace(f"{models}:convs", 0)
    with pytest.raises(TraceError, match="only dense tensors can be traced"):
        record_trace(f"{models}:sparse", 1, device="cpu")


def test_missing_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planezip.sim.extra, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"this needs torch.*pip install planezip\[capture\]"
    ):
        require_capture()
