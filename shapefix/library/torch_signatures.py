"""Signatures of torch's functions, layers and tensor methods, generated from torch itself.

`torch_signatures.json` is written by `tests/library/generate_torch_signatures.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

WRITTEN: Final = {
    # One handler serves the layer and the function, whose parameter is `input`.
    "torch.nn.RMSNorm.forward": "input",
    "torch.nn.PoissonNLLLoss.forward": "input, target",
    "torch.nn.AdaptiveLogSoftmaxWithLoss.forward": "input, target",
    # Two overloads, whose third parameter is `src` or `value`.
    "torch.scatter": "input, dim, index, src=None, *, value=None, reduce=None",
    "torch.Tensor.scatter": "dim, index, src=None, *, value=None, reduce=None",
    "torch.Tensor.scatter_": "dim, index, src=None, *, value=None, reduce=None",
    # Two overloads, for a dimension and for another tensor.
    **dict.fromkeys(("torch.max", "torch.min"), "input, dim=None, keepdim=False, *, other=None"),
    **dict.fromkeys(("torch.Tensor.max", "torch.Tensor.min"), "dim=None, keepdim=False, *, other=None"),
    # Two overloads, for sizes and for a dtype.
    "torch.Tensor.view": "*size, dtype=None",
    # The tensor is the second parameter of the function.
    "torch.Tensor.where": "condition, other",
    "torch.einsum": "equation, *operands",
    "torch.spmm": "input, mat2",
    # Parsed by hand in C++.
    "torch.tensor": "data, *, dtype=None, device=None, requires_grad=False, pin_memory=False",
    "torch.as_tensor": "data, *, dtype=None, device=None",
    "torch.asarray": "obj, *, dtype=None, device=None, copy=None, requires_grad=False",
    "torch.from_numpy": "ndarray",
    "torch.Tensor.new_tensor": "data, *, dtype=None, device=None, requires_grad=False, pin_memory=False",
    "torch.Tensor.type": "dtype=None, non_blocking=False",
    "torch.Tensor.cuda": "device=None, non_blocking=False, memory_format=None",
    "torch.Tensor.xpu": "device=None, non_blocking=False, memory_format=None",
    "torch.Tensor.cpu": "memory_format=None",
    **dict.fromkeys(
        ("torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.BoolTensor", "torch.IntTensor"),
        "*data",
    ),
}
"""Signatures that differ from torch's, each for a reason."""


@cache
def generated() -> Mapping[str, str]:
    """Parameters of each name as in torch: `input, p=0.5, *, dtype=None`."""
    text = (files("shapefix.library") / "torch_signatures.json").read_text(encoding="utf-8")
    by_signature: dict[str, str] = json.loads(text)["signatures"]
    return {name: found for found, names in by_signature.items() for name in names.split()}


def signature(name: str) -> str:
    """Parameters of a function, a constructor, a forward method or a tensor method, without self."""
    return WRITTEN.get(name) or generated()[name]


def overloads(name: str) -> tuple[str, ...]:
    """Signatures of a function: one for each group of overloads with the same first parameter."""
    return tuple(signature(name).split(" | "))
