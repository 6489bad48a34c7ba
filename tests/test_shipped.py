"""The traces that come with the package: Table I, and the throughput of ResNet-50."""

from __future__ import annotations

import pytest

from planezip.sim.shipped import WORKLOADS, shipped_trace
from planezip.sim.trace import Op, Phase

TABLE_I = {  # saved tensors, GB, parameters in millions
    "resnet50": (216, 11.0, 25.6),
    "densenet121": (494, 16.7, 8.0),
    "efficientnet_b0": (314, 11.3, 5.3),
    "vit_b16": (None, 9.0, 86.6),  # the number of tensors depends on timm's version
    "gpt2": (275, 21.2, 124.4),
}


@pytest.mark.parametrize("name", TABLE_I)
def test_table_1(name: str) -> None:
    trace = shipped_trace(name)
    tensors, gigabytes, millions = TABLE_I[name]
    assert tensors is None or len(trace.saved) == tensors
    assert round(sum(trace.storages[n].bytes for n in trace.saved) / 1e9, 1) == gigabytes
    assert round(trace.parameter_count / 1e6, 1) == millions
    assert trace.batch == WORKLOADS[name].batch


@pytest.mark.parametrize("name", WORKLOADS)
def test_hooks_agree(name: str) -> None:
    # only the loss differs: backward() reads it to make a gradient of its shape
    differences = shipped_trace(name).notes["saved_tensor_hooks"]
    assert differences["only_in_hooks"] == []
    assert [why.split()[2] for _, why in differences["only_in_trace"]] == ["aten.ones_like"]


def test_fused_attention_saves_no_square_matrix() -> None:
    square = 8 * 12 * 1024 * 1024 * 4
    sizes = {}
    for name in ("gpt2", "gpt2_fused"):
        trace = shipped_trace(name)
        sizes[name] = {trace.storages[n].bytes for n in trace.saved}
    assert square in sizes["gpt2"]
    assert square not in sizes["gpt2_fused"]
    assert any("flash_attention" in op.name for op in shipped_trace("gpt2_fused").ops)


def test_resnet50_on_platform_b() -> None:
    def seconds(op: Op) -> float:
        if op.view:
            return 0.0
        compute = op.flops / (312e12 * 0.6)
        memory = (2 * op.float_elements + op.other_bytes) / (1555e9 * 0.8)
        return (4e-6 if op.phase is not Phase.OPTIMIZER else 0) + max(compute, memory)

    trace = shipped_trace("resnet50")
    rate = trace.batch / sum(map(seconds, trace.ops))
    assert rate == pytest.approx(2529, rel=0.001)


def test_resnet50_flops() -> None:
    # 4.09 GMAC an image forward (the usual figure for 224x224), twice that backward
    # less the input gradient of the first convolution (118 MMAC)
    trace = shipped_trace("resnet50")
    forward = sum(op.flops for op in trace.ops if op.phase is Phase.FORWARD) / 128
    backward = sum(op.flops for op in trace.ops if op.phase is Phase.BACKWARD) / 128
    assert forward == pytest.approx(2 * 4.09e9, rel=0.001)
    assert backward == pytest.approx(2 * forward - 2 * 118e6, rel=0.001)


SHARES = {  # Table III, percent of a model's saved bytes; least and largest
    "Conv output": (18, 52),
    "Elementwise": (26, 39),
    "ReLU output": (45, 48),
    "Copy/concat": (6, 32),
    "Softmax": (16, 23),
    "Linear output": (6, 21),
    "Dropout output": (23, 23),
    "Norm in/out": (0, 11),
    "Log-softmax": (0, 8),
    "Dropout mask": (6, 6),
    "Indices": (1, 2),  # 0 to 2 in the paper
}


def test_shares_of_table_3() -> None:
    found: dict[str, list[int]] = {}
    for name in TABLE_I:
        trace = shipped_trace(name)
        sizes: dict[str, int] = {}
        for n in trace.saved:
            s = trace.storages[n]
            sizes[s.category] = sizes.get(s.category, 0) + s.bytes
        for category, size in sizes.items():
            found.setdefault(category, []).append(round(100 * size / sum(sizes.values())))
    assert max(found.pop("")) <= 2  # inputs, pooling, loss
    assert {c: (min(v), max(v)) for c, v in found.items()} == SHARES


def test_unknown_workload() -> None:
    with pytest.raises(ValueError, match="workload must be one of resnet50"):
        shipped_trace("alexnet")
