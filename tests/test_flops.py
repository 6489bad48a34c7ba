"""FLOPs formulas against counts made by hand, one operator at a time."""

from __future__ import annotations

from typing import Any

import pytest

from planezip.sim.flops import FORMULAS, Shape, operator_flops


def conv(**changes: Any) -> dict[str, Any]:
    """Arguments of a convolution of one image: 3 channels, 8x8, to 16 channels, 3x3."""
    return {
        "input": Shape((1, 3, 8, 8)),
        "weight": Shape((16, 3, 3, 3)),
        "transposed": False,
        "groups": 1,
    } | changes


def test_convolution() -> None:
    # 16 x 6 x 6 outputs, each 3 x 3 x 3 products
    assert operator_flops("aten.convolution", conv(), [Shape((1, 16, 6, 6))]) == 2 * 576 * 27


def test_grouped_convolution() -> None:
    # depthwise 3x3 over 32 channels of 32x32: each output has 9 products, not 32 x 9
    arguments = conv(input=Shape((2, 32, 32, 32)), weight=Shape((32, 1, 3, 3)), groups=32)
    flops = operator_flops("aten.convolution", arguments, [Shape((2, 32, 32, 32))])
    assert flops == 2 * (2 * 32 * 32 * 32) * 9


def test_transposed_convolution() -> None:
    # each of the 4 x 5 x 5 inputs is spread over 2 channels (8 in 4 groups) of 2 x 2
    arguments = conv(
        input=Shape((1, 4, 5, 5)), weight=Shape((4, 2, 2, 2)), transposed=True, groups=4
    )
    flops = operator_flops("aten.convolution", arguments, [Shape((1, 8, 10, 10))])
    assert flops == 2 * 100 * 8


@pytest.mark.parametrize(
    ("mask", "gradients"),
    [([True, True, False], 2), ([False, True, True], 1), ([True, False, False], 1)],
)
def test_convolution_backward(mask: list[bool], gradients: int) -> None:
    # the gradients of input and weight take the products of the forward pass once each;
    # the bias only adds
    arguments = conv(grad_output=Shape((1, 16, 6, 6)), output_mask=mask)
    assert operator_flops("aten.convolution_backward", arguments, []) == gradients * 2 * 576 * 27


def test_grouped_convolution_backward() -> None:
    # The trap: torch's own counter makes the weight gradient `groups` times too dear.
    # Depthwise 3x3, 32 channels, 2 images of 32x32: 65,536 outputs x 9 products, twice.
    arguments = conv(
        input=Shape((2, 32, 32, 32)),
        weight=Shape((32, 1, 3, 3)),
        groups=32,
        grad_output=Shape((2, 32, 32, 32)),
        output_mask=[True, True, False],
    )
    assert operator_flops("aten.convolution_backward", arguments, []) == 2 * 2 * 65536 * 9


def test_transposed_convolution_backward() -> None:
    arguments = conv(
        input=Shape((1, 4, 5, 5)),
        weight=Shape((4, 2, 2, 2)),
        transposed=True,
        groups=4,
        grad_output=Shape((1, 8, 10, 10)),
        output_mask=[True, True, False],
    )
    assert operator_flops("aten.convolution_backward", arguments, []) == 2 * 2 * 100 * 8


M, K, N = 5, 7, 11


@pytest.mark.parametrize(
    ("name", "arguments", "products"),
    [
        ("mm", {"self": (M, K), "mat2": (K, N)}, M * K * N),
        ("addmm", {"self": (N,), "mat1": (M, K), "mat2": (K, N)}, M * K * N),
        ("bmm", {"self": (3, M, K), "mat2": (3, K, N)}, 3 * M * K * N),
        (
            "baddbmm",
            {"self": (3, M, N), "batch1": (3, M, K), "batch2": (3, K, N)},
            3 * M * K * N,
        ),
        ("mv", {"self": (M, K), "vec": (K,)}, M * K),
        ("addmv", {"self": (M,), "mat": (M, K), "vec": (K,)}, M * K),
        ("dot", {"self": (K,), "tensor": (K,)}, K),
        ("linear", {"input": (2, M, K), "weight": (N, K), "bias": (N,)}, 2 * M * K * N),
    ],
)
def test_products(name: str, arguments: dict[str, tuple[int, ...]], products: int) -> None:
    shapes = {key: Shape(shape) for key, shape in arguments.items()}
    assert operator_flops(f"aten.{name}", shapes, []) == 2 * products


ATTENTION = sorted(n for n in FORMULAS if "_scaled_dot_product" in n and "backward" not in n)


def heads(causal: bool, keys: int = 4) -> dict[str, Any]:
    """Two sequences, three heads, 4 queries, width 8, value width 6."""
    return {
        "query": Shape((2, 3, 4, 8)),
        "key": Shape((2, 3, keys, 8)),
        "value": Shape((2, 3, keys, 6)),
        "is_causal": causal,
    }


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    # 2 x 3 heads, 4 x 4 pairs; a score takes 8 products, its value 6
    assert operator_flops(name, heads(False), []) == 2 * 6 * 16 * 14
    # a causal mask leaves 1 + 2 + 3 + 4 pairs; with 2 keys 1 + 2 + 2 + 2
    assert operator_flops(name, heads(True), []) == 2 * 6 * 10 * 14
    assert operator_flops(name, heads(True, keys=2), []) == 2 * 6 * 7 * 14


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_backward(name: str) -> None:
    # scores once more, gradients of queries and keys: 8 each; of values and scores: 6 each
    assert operator_flops(f"{name}_backward", heads(False), []) == 2 * 6 * 16 * (3 * 8 + 2 * 6)
    assert operator_flops(f"{name}_backward", heads(True), []) == 2 * 6 * 10 * (3 * 8 + 2 * 6)


def test_memory_bound_operators_count_nothing() -> None:
    assert operator_flops("aten.relu", {"self": Shape((100,))}, [Shape((100,))]) == 0


def test_every_formula_has_an_operator_of_that_name_and_those_arguments() -> None:
    torch = pytest.importorskip("torch", reason="NOT TESTED: needs planezip[capture]")
    wanted = {
        "convolution": {"input", "weight", "transposed"},
        "convolution_backward": {"input", "weight", "transposed", "grad_output", "output_mask"},
        "mm": {"self", "mat2"},
        "bmm": {"self", "mat2"},
        "addmm": {"mat1", "mat2"},
        "baddbmm": {"batch1", "batch2"},
        "mv": {"self", "vec"},
        "addmv": {"mat", "vec"},
        "dot": {"self", "tensor"},
        "linear": {"input", "weight"},
    }
    for name in FORMULAS:
        short = name.removeprefix("aten.")
        schema = getattr(torch.ops.aten, short).default._schema
        names = {argument.name for argument in schema.arguments}
        assert wanted.get(short, {"query", "key", "value", "is_causal"}) <= names, name
