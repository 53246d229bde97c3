"""Describe values as JSON: sizes, strides, dtypes and devices; never contents, and always short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..protocol import CallArguments, Value

_DEPTH, _KEYS, _ITEMS, _LENGTHS = 4, 24, 6, 64
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_COUNTED = 50_000_000


def describe(value: Any, depth: int = 0) -> Value:
    """Describe a value. Runs no code of the user's except `keys`, `[]` and `len` of a mapping."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if value is None or isinstance(value, (bool, int, float)):
        return {"kind": "number", "type": type(value).__name__, "text": repr(value)[:30]}
    if isinstance(value, str):
        return {"kind": "text", "type": "str", "length": len(value)}
    if isinstance(value, (list, tuple)):
        return _sequence(value, depth)
    if isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__")):
        return _mapping(value, depth)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return {"kind": "array", "type": _name(value), "dtype": str(value.dtype), "size": _sizes(value.shape)}
    return {"kind": "other", "type": _name(value)}


def describe_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallArguments:
    """Describe the arguments of a call."""
    return CallArguments(
        args=[describe(each, 1) for each in args[:_ITEMS]],
        kwargs={name: describe(each, 1) for name, each in list(kwargs.items())[:_KEYS]},
    )


def integer_range(value: Any) -> list[int] | None:
    """The least and the greatest number in a tensor of integers."""
    try:
        if value.dtype in _INTEGERS and 0 < value.numel() <= _COUNTED:
            return [int(value.min()), int(value.max())]
    except Exception:
        pass
    return None


def part_sizes(sample: Any) -> dict[str, list[int]]:
    """The sizes of the parts of a dataset's sample, by key or position."""
    if isinstance(sample, Mapping):
        parts = {str(key): sample[key] for key in list(sample)[:_KEYS]}
    elif isinstance(sample, tuple):
        parts = {str(number): each for number, each in enumerate(sample[:_ITEMS])}
    else:
        parts = {"": sample}
    found = {}
    for key, part in parts.items():
        if isinstance(part, list):
            found[key] = [len(part)]
        elif hasattr(part, "shape") and len(part.shape):
            found[key] = _sizes(part.shape)
    return found


def _tensor(value: torch.Tensor) -> Value:
    known: Value = {
        "kind": "tensor",
        "type": _name(value),
        "dtype": str(value.dtype).replace("torch.", ""),
        "size": _sizes(value.shape),
        "device": str(value.device),
        "requires_grad": bool(value.requires_grad),
    }
    try:
        known["stride"] = list(value.stride())
        known["contiguous"] = value.is_contiguous()
    except Exception:  # sparse, nested and other layouts have no strides
        known["layout"] = str(value.layout)
    return known


def _sequence(value: Any, depth: int) -> Value:
    known: Value = {"kind": "sequence", "type": _name(value), "length": len(value)}
    inner = [len(each) for each in value[:_LENGTHS] if isinstance(each, (list, tuple))]
    if inner:
        known["lengths"] = inner
        known["ragged"] = len(set(inner)) > 1
    sizes = {tuple(each.shape) for each in value[:_LENGTHS] if isinstance(each, torch.Tensor)}
    if len(sizes) > 1 and isinstance(value, list):
        known["ragged"] = True
    if depth < _DEPTH:
        known["items"] = [describe(each, depth + 1) for each in value[:_ITEMS]]
    return known


def _mapping(value: Any, depth: int) -> Value:
    known: Value = {"kind": "mapping", "type": _name(value)}
    try:
        keys = list(value.keys())
        known["length"] = len(keys)
        if depth < _DEPTH:
            known["items"] = {str(key): describe(value[key], depth + 1) for key in keys[:_KEYS]}
    except Exception as error:
        return {"kind": "other", "type": _name(value), "text": f"keys raise {type(error).__name__}"}
    return known


def _sizes(shape: Any) -> list[int]:
    try:
        return [int(size) for size in shape]
    except Exception:
        return []


def _name(value: object) -> str:
    return type(value).__name__
