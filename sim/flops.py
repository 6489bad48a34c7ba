"""FLOPs of an operator: two per multiply-add, from shapes alone.

Only operators that multiply matrices or convolve have a formula; all others count 0,
since the simulator's time for them is that of their memory traffic (paper Section IV,
Simulator). Additions of a bias are not counted. The CPU's fused LSTM layer has no
formula; on the meta device it falls apart into products that have.

Arguments come by the names of the operator's schema, every tensor as its
:class:`Shape`, so that no formula needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

__all__ = ["FORMULAS", "Shape", "operator_flops"]

Arguments = Mapping[str, Any]


class Shape(tuple[int, ...]):
    """Shape of a tensor argument (a class, to tell it from a list of integers)."""

    @property
    def numel(self) -> int:
        """Elements."""
        return prod(self)


def operator_flops(name: str, arguments: Arguments, results: Sequence[Shape]) -> int:
    """FLOPs of one call.

    Parameters
    ----------
    name : str
        Without overload: ``aten.mm``.
    arguments : mapping
        Schema name to value, tensors as :class:`Shape`.
    results : sequence of Shape
    """
    formula = FORMULAS.get(name)
    return 0 if formula is None else formula(arguments, results)


def _convolution_macs(wide: Shape, weight: Shape) -> int:
    """Every element of ``wide`` meets ``weight[0]`` once.

    ``wide`` is the output (the input if transposed). The weight is
    ``[out, in / groups, kernel...]`` (``[in, out / groups, kernel...]``), so groups
    are accounted for, in both directions and for both gradients.
    """
    return wide.numel * prod(weight[1:])


def _convolution(a: Arguments, results: Sequence[Shape]) -> int:
    wide = a["input"] if a["transposed"] else results[0]
    return 2 * _convolution_macs(wide, a["weight"])


def _convolution_backward(a: Arguments, results: Sequence[Shape]) -> int:
    wide = a["input"] if a["transposed"] else a["grad_output"]
    gradients = sum(map(bool, a["output_mask"][:2]))  # of input and weight, each as dear
    return 2 * _convolution_macs(wide, a["weight"]) * gradients


def _product(left: str, right: str) -> Callable[[Arguments, Sequence[Shape]], int]:
    """``[..., m, k] x [..., k, n]``; a vector has n = 1."""

    def formula(a: Arguments, results: Sequence[Shape]) -> int:
        n = a[right][-1] if len(a[right]) > 1 else 1
        return 2 * a[left].numel * n

    return formula


def _linear(a: Arguments, results: Sequence[Shape]) -> int:
    return 2 * a["input"].numel * a["weight"][0]


def _attention_pairs(a: Arguments) -> int:
    """Pairs of query and key, all heads; of a causal mask only the unmasked ones."""
    *heads, queries, _ = a["query"]
    keys = a["key"][-2]
    pairs = queries * keys
    if a.get("is_causal"):
        pairs = sum(min(q + 1, keys) for q in range(queries))
    return prod(heads) * pairs


def _attention(a: Arguments, results: Sequence[Shape]) -> int:
    # Q K^T, then P V
    return 2 * _attention_pairs(a) * (a["query"][-1] + a["value"][-1])


def _attention_backward(a: Arguments, results: Sequence[Shape]) -> int:
    # Q K^T again, dQ, dK over the query width; dV, dP over the value width
    return 2 * _attention_pairs(a) * (3 * a["query"][-1] + 2 * a["value"][-1])


FORMULAS: dict[str, Callable[[Arguments, Sequence[Shape]], int]] = {
    "aten.convolution": _convolution,
    "aten.convolution_backward": _convolution_backward,
    "aten.mm": _product("self", "mat2"),
    "aten.bmm": _product("self", "mat2"),
    "aten.addmm": _product("mat1", "mat2"),
    "aten.baddbmm": _product("batch1", "batch2"),
    "aten.mv": _product("self", "vec"),
    "aten.addmv": _product("mat", "vec"),
    "aten.dot": _product("self", "tensor"),
    "aten.linear": _linear,
    **{
        f"aten._scaled_dot_product_{kind}": _attention
        for kind in (
            "flash_attention",
            "flash_attention_for_cpu",
            "efficient_attention",
            "cudnn_attention",
            "fused_attention_overrideable",
        )
    },
    **{
        f"aten._scaled_dot_product_{kind}_backward": _attention_backward
        for kind in (
            "flash_attention",
            "flash_attention_for_cpu",
            "efficient_attention",
            "cudnn_attention",
            "fused_attention_overrideable",
        )
    },
}
"""Formula of each operator that has one, by name without overload."""
