"""The number and the bytes of the parameters of models and their modules."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

from ..protocol import ModelParametersLine

_MODULES = 3000


def parameter_counts(module: Any, number: int) -> ModelParametersLine | None:
    """The parameters of an outermost module in a numbered call, and of its modules; None without any."""
    sizes: dict[int, int] = {}
    size_of: Counter[str] = Counter()
    trainable = 0
    for each in module.parameters():
        # A parameter of a lazy module has no size before the first call.
        with contextlib.suppress(Exception):
            sizes[id(each)] = each.numel()
            size_of[str(each.dtype).removeprefix("torch.")] += each.numel() * each.element_size()
            trainable += each.numel() if each.requires_grad else 0
    if not sizes:
        return None
    buffers = 0
    for each in module.buffers():
        with contextlib.suppress(Exception):
            buffers += each.numel() * each.element_size()
    modules: dict[str, int] = {}
    held: dict[int, set[int]] = {}
    for name, each in module.named_modules():
        if len(modules) == _MODULES:
            break
        modules[name] = sum(sizes.get(key, 0) for key in _held(each, held))
    return ModelParametersLine(
        kind="model_parameters",
        id=number,
        total=sum(sizes.values()),
        trainable=trainable,
        bytes=dict(size_of),
        buffer_bytes=buffers,
        modules={name: count for name, count in modules.items() if count},
    )


def _held(module: Any, known: dict[int, set[int]]) -> set[int]:
    """The ids of the parameters of a module and the modules in it; known are those of modules seen before."""
    found = known.get(id(module))
    if found is None:
        found = known[id(module)] = {id(each) for each in module._parameters.values() if each is not None}
        for child in module._modules.values():
            if child is not None:
                found |= _held(child, known)
    return found
