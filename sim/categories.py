"""Producers of Table III: which operator makes what kind of tensor."""

from __future__ import annotations

__all__ = ["CATEGORIES", "category"]

CATEGORIES = (
    "Conv output",
    "Elementwise",
    "ReLU output",
    "Copy/concat",
    "Softmax",
    "Linear output",
    "Dropout output",
    "Norm in/out",
    "Log-softmax",
    "Dropout mask",
    "Indices",
    "",
)
"""Producers of Table III; the empty one is for storages that are not in it."""

_CATEGORY = {
    "Conv output": ("convolution",),
    "Linear output": (
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "mv",
        "addmv",
        "linear",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
    ),
    "ReLU output": (
        "relu",
        "relu_",
        "hardtanh",
        "hardtanh_",
        "threshold",
        "threshold_",
    ),
    "Norm in/out": (
        "native_batch_norm",
        "_native_batch_norm_legit",
        "cudnn_batch_norm",
        "native_layer_norm",
        "native_group_norm",
        "_fused_rms_norm",
    ),
    "Softmax": ("_softmax",),
    "Log-softmax": ("_log_softmax",),
    "Copy/concat": (
        "cat",
        "stack",
        "clone",
        "copy_",
        "_to_copy",
        "constant_pad_nd",
        "embedding",
        "index",
        "index_select",
        "repeat",
    ),
    "Dropout output": ("native_dropout",),
    "": ("max_pool2d_with_indices", "avg_pool2d", "mean", "nll_loss_forward"),
}
_BY_OPERATOR = {f"aten.{op}": name for name, ops in _CATEGORY.items() for op in ops}
_SECOND_RESULT = {
    "aten.native_dropout": "Dropout mask",
    "aten.max_pool2d_with_indices": "Indices",
}


def category(operator: str, slot: int) -> str:
    """Producer, as Table III names it, of result ``slot`` of ``operator`` (no overload).

    All results of a normalisation (output, mean, inverse deviation) are ``Norm
    in/out``. Pooled values and the loss are in no row (empty); what is left is
    ``Elementwise``. So the shares of Table III come out.
    """
    if slot == 1 and operator in _SECOND_RESULT:
        return _SECOND_RESULT[operator]
    return _BY_OPERATOR.get(operator, "Elementwise")
