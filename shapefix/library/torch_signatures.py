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
