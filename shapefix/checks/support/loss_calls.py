"""Calls of loss functions."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support.wording import abbreviate
from shapefix.domains.operations import Broadcast
from shapefix.interpreter.events import OpRejected

_FUNCTIONS = ("_loss", "cross_entropy", "cross_entropy_with_logits", "kl_div")


_BY_CLASS = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "cross_entropy", "nll_loss", "nll_loss2d")


def is_loss(function: str) -> bool:
    """Whether this is the qualified name of a loss of torch, a layer's class or a function."""
    return function.startswith("torch.nn.") and (
        function.endswith(("Loss", "Loss2d")) or function.endswith(_FUNCTIONS)
    )


def is_by_class(function: str) -> bool:
    """Whether the target of a loss may hold ids of classes, and its input scores for each class."""
    return function.startswith("torch.nn.") and function.rpartition(".")[2] in _BY_CLASS


def loss_code(event: OpRejected | Broadcast) -> str:
    """Return the code of the called loss: `criterion`."""
    node = event.place.node
    return abbreviate(event.place.module.code(node.func if isinstance(node, cst.Call) else node))
