"""Dropout and attention on the CPU and on the meta device as GPU training runs them.

This module imports torch; others import it in functions only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

__all__ = ["gpu_kernels"]


class _GpuKernels(TorchFunctionMode):
    """Dropout and attention as GPU training runs them."""

    def __init__(self, fused_attention: bool) -> None:
        super().__init__()
        self.attention = _fused_attention if fused_attention else _plain_attention

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.dropout:
            return _dropout(*args, **kwargs)
        if func is functional.scaled_dot_product_attention:
            return self.attention(*args, **kwargs)
        return func(*args, **kwargs)


def _dropout(
    x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    if not training or p == 0:
        return x
    return torch.native_dropout(x, p, True)[0]


def _repeated(query: torch.Tensor, *others: torch.Tensor) -> list[torch.Tensor]:
    """Keys and values once per query head (grouped-query attention)."""
    return [t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in others]


def _bias(query: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """A mask as numbers to add to the scores."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill(mask.logical_not(), -torch.inf)


def _plain_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    if enable_gqa:
        key, value = _repeated(query, key, value)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None:
        scores = scores + _bias(query, attn_mask)
    return _dropout(scores.softmax(-1), dropout_p) @ value


def _fused_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    aten: Any = torch.ops.aten
    output: torch.Tensor
    if enable_gqa:
        key, value = _repeated(query, key, value)
    if not query.is_meta:
        output = functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale
        )
    elif attn_mask is None:
        output = aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, scale=scale
        )[0]
    else:
        bias = _bias(query, attn_mask).expand(*query.shape[:-1], key.shape[-2])
        output = aten._scaled_dot_product_efficient_attention(
            query, key, value, bias, True, dropout_p, is_causal, scale=scale
        )[0]
    return output


@contextmanager
def gpu_kernels(fused_attention: bool = False) -> Iterator[None]:
    """Within it, dropout and attention run as in GPU training (paper Section IV).

    Dropout goes through the fused kernel, which saves a 1-byte mask. Attention is the
    plain one, which saves the softmax output, or fused: on the meta device
    FlashAttention (its memory-efficient sibling where there is a mask), on real
    tensors what torch has for their device.
    """
    with _GpuKernels(fused_attention), _no_search_for_packed_sequences():
        yield


@contextmanager
def _no_search_for_packed_sequences() -> Iterator[None]:
    """Hugging Face looks at the positions for several sequences in a row, which needs data.

    On the meta device there are none to look at: a row is one sequence.
    """
    masking: Any = sys.modules.get("transformers.masking_utils")
    search = getattr(masking, "find_packed_sequence_indices", None)
    if search is None:
        yield
        return
    masking.find_packed_sequence_indices = lambda ids: None if ids.is_meta else search(ids)
    try:
        yield
    finally:
        masking.find_packed_sequence_indices = search
