"""The multiplications of layers with weights, from the sizes of their weights and results."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd


def multiplications(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int | None:
    """The multiply-accumulate operations of one call of a layer; None for other modules.

    Those of functions, such as attention, and of biases and normalizations are not counted.
    """
    try:
        if isinstance(module, (_ConvTransposeNd, _ConvNd, nn.Linear)):
            # Each element of the input of a transposed convolution is multiplied, otherwise of the result.
            counted = args[0] if isinstance(module, _ConvTransposeNd) else out
            return int(math.prod(module.weight.shape[1:]) * counted.numel())
        if isinstance(module, nn.MultiheadAttention):
            names = ("query", "key", "value")
            query, key, value = (args[n] if n < len(args) else kwargs[name] for n, name in enumerate(names))
            return _of_attention(module, query, key, value)
        if isinstance(module, (nn.RNN, nn.LSTM, nn.GRU)):
            weights = sum(each.numel() for name, each in module.named_parameters() if "weight" in name)
            data = getattr(args[0], "data", args[0])  # of a packed sequence: the elements of all rows
            return int(weights * data.numel() // module.input_size)
        if isinstance(module, nn.modules.rnn.RNNCellBase):
            weights = module.weight_ih.numel() + module.weight_hh.numel()
            return int(weights * args[0].numel() // module.input_size)
    except (AttributeError, IndexError, KeyError, TypeError, RuntimeError, torch.jit.Error):
        return None
    return None


def _of_attention(module: Any, query: Any, key: Any, value: Any) -> int:
    """Those of its four projections, and of the products of queries with keys, and of weights with values."""
    width, dim = module.embed_dim, (1 if module.batch_first else 0) if query.dim() == 3 else 0
    rows = query.numel() // width
    projected = width * (query.numel() + key.numel() + value.numel() + rows * width)
    return int(projected + 2 * rows * key.shape[dim] * width)
