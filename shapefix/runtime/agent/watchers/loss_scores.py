"""The scores of a loss: their activation, and whether they are probabilities."""

from __future__ import annotations

from typing import Any

import torch

from ...protocol import ScoreFacts

NAMES = ("binary_cross_entropy_with_logits", "cross_entropy", "kl_div", "nll_loss")
_OF_CLASSES = ("cross_entropy", "nll_loss")
_ACTIVATIONS = {
    "SoftmaxBackward0": "softmax", "LogSoftmaxBackward0": "log_softmax", "SigmoidBackward0": "sigmoid",
    "LogBackward0": "log", "LogSigmoidBackward0": "log_sigmoid",
}  # fmt: skip
_VIEWS = (
    "AliasBackward0", "CloneBackward0", "ExpandBackward0", "PermuteBackward0", "ReshapeAliasBackward0",
    "SelectBackward0", "SliceBackward0", "SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2",
    "TBackward0", "ToCopyBackward0", "TransposeBackward0", "UnsafeViewBackward0", "UnsqueezeBackward0",
    "ViewBackward0",
)  # fmt: skip
_PRODUCTS = ("AddmmBackward", "BmmBackward", "ConvolutionBackward", "MmBackward", "LinearBackward")
_STEPS, _MOST = 12, 20_000_000


def score_facts(name: str, args: Any, kwargs: Any, with_values: bool) -> ScoreFacts | None:
    """The facts about the scores of a loss, by its name; None for other losses, or without a gradient."""
    scores = args[0] if args else kwargs.get("input")
    if name not in NAMES or not isinstance(scores, torch.Tensor) or scores.grad_fn is None:
        return None
    try:
        activation, dim = _activation(scores)
        by_class = name in _OF_CLASSES
        facts = ScoreFacts(
            activation=activation,
            dim=dim,
            class_dim=(1 if scores.dim() > 1 else 0) if by_class else None,
            sums_to_one=False,
            total=None,
        )
        if by_class and with_values and 0 < scores.numel() <= _MOST:
            with torch.no_grad():
                _values(facts, scores.detach().float())
        elif name == "kl_div" and activation is None and with_values and 0 < scores.numel() <= _MOST:
            with torch.no_grad():
                facts["total"] = _least_total(scores.detach().float())
        return facts
    except Exception:  # other versions of torch expose less of their graph
        return None


def _least_total(scores: torch.Tensor) -> float | None:
    """The least sum of exponentials along any dimension, as a logarithm: 0 for log-probabilities."""
    if scores.dim() == 0 or not bool(torch.isfinite(scores).all()):
        return None
    totals = [float(scores.logsumexp(dim).min()) for dim in range(scores.dim()) if scores.shape[dim] > 1]
    return min(totals, default=None)


def _activation(scores: torch.Tensor) -> tuple[str | None, int | None]:
    """The activation of a tensor, and the dimension of a softmax directly before it.

    Views are followed, and operations after a logarithm, such as a scale: the result is not raw scores.
    """
    node, direct, views = scores.grad_fn, True, True
    for _ in range(_STEPS):
        if node is None:
            return None, None
        name = node.name()
        if name in _ACTIVATIONS:
            activation = _ACTIVATIONS[name]
            if not views and not activation.startswith("log"):
                return None, None
            dim = getattr(node, "_saved_dim", None) if direct else None
            return activation, _signed(dim) % scores.dim() if dim is not None and scores.dim() else None
        if name.startswith(_PRODUCTS):
            return None, None
        inner = [each for each, _ in node.next_functions if each is not None]
        if not inner:
            return None, None
        direct = False
        views = views and name in _VIEWS
        node = inner[0]
    return "unknown", None


def _signed(number: int) -> int:
    """Convert an unsigned number of torch's graph into the negative one."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _values(facts: ScoreFacts, scores: torch.Tensor) -> None:
    dim = facts["class_dim"]
    assert dim is not None
    if scores.shape[dim] < 2 or not bool(torch.isfinite(scores).all()):
        return
    sums = scores.sum(dim)
    facts["sums_to_one"] = (
        sums.numel() > 1 and bool((scores >= 0).all()) and bool(((sums - 1).abs() < 1e-3).all())
    )
    facts["total"] = float(scores.logsumexp(dim).min())
