"""Describe the values of a program as JSON, to compare those of two runs."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any

DIGITS = 5
FOLDER = "modules-of-a-text-"
"""The name of the folder of a program's modules begins so."""


def described_names(names: Mapping[str, object]) -> dict[str, Any]:
    """Describe all public names except functions, classes and modules."""
    return {
        name: described(value, 0)
        for name, value in names.items()
        if not name.startswith("_") and not isinstance(value, _CODE)
    }


_CODE = (types.ModuleType, type, types.FunctionType)


def described(value: object, depth: int) -> Any:
    """Describe a value as JSON: elements of tensors, weights and gradients of modules, items of lists."""
    import torch

    if isinstance(value, torch.nn.Module):
        parts = {name: described(part, 1) for name, part in value.state_dict().items()}
        grads = {f"{name}.grad": described(part.grad, 1) for name, part in value.named_parameters()}
        own = {
            name: described(part, depth + 1)
            for name, part in (vars(value) | dict(value.named_buffers(recurse=False))).items()
            if not name.startswith("_") and isinstance(part, (torch.Tensor, int, float, list, dict))
        }
        return parts | grads | own
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            return [str(value.dtype), list(value.shape), value.device.type]
        return [str(value.dtype), list(value.shape), _numbers(value.detach())]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if value == value else "nan"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if depth > 4:
        return type(value).__name__
    if isinstance(value, dict):
        return {str(key): described(part, depth + 1) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(part, depth + 1) for part in value]
    kept = vars(value) if hasattr(value, "__dict__") and _is_own(type(value)) else {}
    return {name: described(part, depth + 1) for name, part in kept.items()} or type(value).__name__


def _is_own(kind: type) -> bool:
    """Whether a class is one of the text, or of its modules."""
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or FOLDER in str(path)


def _numbers(tensor: Any) -> Any:
    """The elements, rounded, so that another order of a sum makes no difference."""
    return [described(each, 9) for each in _flat(tensor.tolist())]


def _flat(listed: Any) -> list[Any]:
    return [inner for each in listed for inner in _flat(each)] if isinstance(listed, list) else [listed]
