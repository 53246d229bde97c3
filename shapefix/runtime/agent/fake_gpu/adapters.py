"""Try low-rank adapters in place of the training of all weights of a model of transformers."""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ...protocol.adapter_tasks import task_of


def missing_peft() -> str | None:
    """The reason why no adapters can be tried, if any."""
    return None if importlib.util.find_spec("peft") else "peft is not installed"


def install(applied: Callable[[], None]) -> None:
    """Have the optimizer of a model of transformers train adapters; applied is called then."""
    original = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def __init__(self: Any, params: Any, defaults: dict[str, Any]) -> None:
        groups = _groups(params)
        model = _model_of({id(each) for group in groups for each in group["params"]})
        if model is not None:
            before = {id(each) for each in model.parameters()}
            _add_adapters(model)
            trained = [each for each in model.parameters() if each.requires_grad]
            for group in groups:
                group["params"] = [each for each in group["params"] if each.requires_grad]
            groups[0]["params"] += [each for each in trained if id(each) not in before]
            applied()
        original(self, groups, defaults)

    torch.optim.Optimizer.__init__ = __init__


def _groups(params: Any) -> list[dict[str, Any]]:
    """The groups of an optimizer's parameters, each with a list of them."""
    given = list(params)
    if not given or not isinstance(given[0], dict):
        given = [{"params": given}]
    groups = [{**group, "params": group["params"]} for group in given]
    for group in groups:
        held = group["params"]
        named = [held] if isinstance(held, torch.Tensor) else list(held)
        group["params"] = [each[1] if isinstance(each, tuple) else each for each in named]
    return groups


def _model_of(parameters: set[int]) -> nn.Module | None:
    """The largest model of transformers with some of these parameters, all of them trained so far."""
    kind = getattr(importlib.import_module("transformers"), "PreTrainedModel", None)
    found = [
        each
        for each in gc.get_objects()
        if kind is not None and isinstance(each, kind) and not hasattr(each, "peft_config")
    ]
    held = [each for each in found if any(id(one) in parameters for one in each.parameters())]
    return max(held, key=lambda each: sum(1 for _ in each.modules()), default=None)


def _add_adapters(model: nn.Module) -> None:
    """Freeze a model, and add adapters to its linear layers."""
    peft = importlib.import_module("peft")
    task = task_of(type(model).__name__)
    peft.get_peft_model(model, peft.LoraConfig(target_modules="all-linear", task_type=task))
