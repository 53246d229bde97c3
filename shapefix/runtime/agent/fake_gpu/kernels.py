"""Functions with different kernels on CUDA and on the CPU, for tensors on the simulated GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

_HALVES = (torch.float16, torch.bfloat16)


def install(on_device: Callable[[Any], bool]) -> None:
    """Make attention, dropout and softmax save the same tensors for backward as their CUDA kernels.

    one_hot has no kernel for tensors without values.
    """
    plain_one_hot = functional.one_hot
    plain_attention, plain_dropout = functional.scaled_dot_product_attention, functional.dropout
    plain_softmax, plain_log_softmax = functional.softmax, functional.log_softmax

    def scaled_dot_product_attention(query: Any, *args: Any, **kwargs: Any) -> Any:
        function = attention if on_device(query) else plain_attention
        return function(query, *args, **kwargs)

    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if on_device(input) and training and not inplace and 0 < p < 1:
            return torch.native_dropout(input, p, True)[0]
        return plain_dropout(input, p, training, inplace)

    def softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        if dim is not None and dtype == torch.float32 and on_device(input) and input.dtype == torch.float16:
            return torch.ops.aten._softmax(input, dim, True)
        return plain_softmax(input, dim, _stacklevel, dtype)

    def log_softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        if dim is not None and dtype == torch.float32 and on_device(input) and input.dtype == torch.float16:
            return torch.ops.aten._log_softmax(input, dim, True)
        return plain_log_softmax(input, dim, _stacklevel, dtype)

    def one_hot(tensor: Any, num_classes: int = -1) -> Any:
        if num_classes < 0 or not on_device(tensor):
            return plain_one_hot(tensor, num_classes)
        return tensor.new_zeros((*tensor.shape, num_classes), dtype=torch.int64)

    functional.one_hot = one_hot
    functional.scaled_dot_product_attention = scaled_dot_product_attention
    functional.dropout, functional.softmax, functional.log_softmax = dropout, softmax, log_softmax


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention by CUDA's kernel: flash for halves without a mask, otherwise memory-efficient."""
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        query, key, value = (each.to(dtype) for each in (query, key, value))
        if attn_mask is not None and attn_mask.is_floating_point():
            attn_mask = attn_mask.to(dtype)
    if query.dim() == 3:
        query, key, value = (each.unsqueeze(0) for each in (query, key, value))
        mask = attn_mask if attn_mask is None or attn_mask.dim() != 3 else attn_mask.unsqueeze(0)
        return attention(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa).squeeze(0)
    flash = query.dtype in _HALVES and attn_mask is None and query.size(-1) <= 256
    if enable_gqa and key.size(1) != query.size(1) and not flash:
        times = query.size(1) // key.size(1)
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    if flash:
        return torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False, scale=scale
        )[0]
    bias = attn_mask
    if bias is not None and bias.dtype == torch.bool:
        bias = torch.zeros(bias.shape, dtype=query.dtype, device=query.device)
        bias = bias.masked_fill(~attn_mask, float("-inf"))
    if bias is not None:
        bias = bias.expand(query.size(0), query.size(1), query.size(2), key.size(2))
    backward = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, bias, backward, dropout_p, is_causal, scale=scale
    )[0]
