"""What a run tries instead of what the script says: another batch size, checkpointing, or bf16."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from ..session import Session


def batches(old: int, new: int) -> None:
    """Loaders that are asked for batches of one size give batches of another."""
    original = DataLoader.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError:
            original(self, *args, **kwargs)
            return
        if given.arguments.get("batch_size", 1) == old and given.arguments.get("batch_sampler") is None:
            given.arguments["batch_size"] = new
        original(*given.args, **given.kwargs)

    DataLoader.__init__ = __init__


class Trials:
    """What is tried with the model of one session; a trial that could be made is written down."""

    def __init__(self, session: Session, checkpointing: bool, bf16: bool) -> None:
        self._session = session
        self._checkpointing, self._bf16 = checkpointing, bf16

    def prepare(self, module: nn.Module) -> None:
        """Called with each outermost module before its first call with gradient."""
        if self._checkpointing and any(True for _ in module.parameters()):
            blocks = _checkpointed(module)
            if blocks:
                self._session.observations.write("trial", what="checkpointing", blocks=blocks)

    def around(self) -> AbstractContextManager[Any]:
        """What calls of outermost modules with gradient run in."""
        if not self._bf16:
            return contextlib.nullcontext()
        if not torch.is_autocast_enabled("cuda"):
            self._session.observations.write("trial", what="bf16")
        tried: AbstractContextManager[Any] = torch.autocast("cuda", dtype=torch.bfloat16)
        return tried


def _checkpointed(module: nn.Module) -> int:
    """Let a model's blocks be computed again in backward; returns how many, 0 where it does so already."""
    enable = getattr(module, "gradient_checkpointing_enable", None)
    if enable is not None and getattr(module, "supports_gradient_checkpointing", False):
        if getattr(module, "is_gradient_checkpointing", False):
            return 0
        enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return sum(hasattr(each, "gradient_checkpointing") for each in module.modules())
    blocks = [block for each in module.modules() for block in _blocks(each)]
    for block in blocks:
        forward = block.forward
        block.forward = functools.partial(checkpoint, forward, use_reentrant=False)
    return len(blocks)


def _blocks(module: nn.Module) -> list[nn.Module]:
    """The members of a list that share their kind, and are made of several layers with parameters."""
    if not isinstance(module, (nn.ModuleList, nn.Sequential)):
        return []
    made = [each for each in module if sum(1 for inner in each.modules() if inner._parameters) > 1]
    kinds = Counter(type(each) for each in made)
    return [each for each in made if kinds[type(each)] > 1]
