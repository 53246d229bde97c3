"""Trial settings in place of the script's own: batch size, checkpointing, bf16, or adapters."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any, Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from ...protocol import TrialAppliedLine
from ..session import Session


def override_batch_size(old: int, new: int) -> None:
    """Have loaders with one batch size use another one."""
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


class MemoryTrials:
    """Tries to save memory with the models of one session, and writes a line for each applied one."""

    def __init__(self, session: Session, checkpointing: bool, bf16: bool) -> None:
        self._session = session
        self._checkpointing, self._bf16 = checkpointing, bf16

    def prepare(self, module: nn.Module) -> None:
        """Apply checkpointing to an outermost module before its first call with gradients."""
        if self._checkpointing and any(True for _ in module.parameters()):
            if _apply_checkpointing(module):
                self._write("checkpointing")

    def context(self) -> AbstractContextManager[Any]:
        """The context manager for calls of outermost modules with gradients."""
        if not self._bf16:
            return contextlib.nullcontext()
        if not torch.is_autocast_enabled("cuda"):
            self._write("bf16")
        tried: AbstractContextManager[Any] = torch.autocast("cuda", dtype=torch.bfloat16)
        return tried

    def note_adapters(self) -> None:
        """Write a line for an optimizer of adapters."""
        self._write("lora")

    def _write(self, what: Literal["checkpointing", "bf16", "lora"]) -> None:
        self._session.sink.write(TrialAppliedLine(kind="trial_applied", what=what))


def _apply_checkpointing(module: nn.Module) -> int:
    """Recompute a model's blocks in backward; returns how many, 0 if the model does so already."""
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
    """The members of a list with the same class and several layers with parameters each."""
    if not isinstance(module, (nn.ModuleList, nn.Sequential)):
        return []
    made = [each for each in module if sum(1 for inner in each.modules() if inner._parameters) > 1]
    kinds = Counter(type(each) for each in made)
    return [each for each in made if kinds[type(each)] > 1]
