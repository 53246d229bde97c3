"""Calls of the loss functions of torch.nn.functional: their arguments and exceptions."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from ..protocol import ExceptionDetails, LossCallLine
from . import frames
from .call_sites import CallSites
from .describe import describe_call, integer_range
from .exceptions import ExceptionRecorder
from .session import Session
from .watchers import loss_scores, loss_targets
from .watchers.padded_rows import PaddedRows

NAMES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
)
_AT_MOST, _EACH = 32, 2


def install(session: Session, exceptions: ExceptionRecorder, call_sites: CallSites) -> None:
    """Watch the loss functions from now on."""
    seen: dict[Any, int] = {}
    padded = PaddedRows(session)
    padded.install()
    for name in NAMES:
        original = getattr(functional, name, None)
        if original is not None:
            setattr(functional, name, _watched(original, name, session, exceptions, call_sites, seen, padded))


def _watched(
    original: Callable[..., Any],
    name: str,
    session: Session,
    exceptions: ExceptionRecorder,
    call_sites: CallSites,
    seen: dict[Any, int],
    padded: PaddedRows,
) -> Callable[..., Any]:
    @functools.wraps(original)
    def loss(*args: Any, **kwargs: Any) -> Any:
        if not session.watches():
            return original(*args, **kwargs)
        if session.depth == 0:
            session.raise_if_stopped()
            exceptions.flush()
        caller = sys._getframe(1)
        call_site = call_sites.record(caller)
        key = _signature(name, args, kwargs)
        if seen.get(key, 0) < _EACH and (key in seen or len(seen) < _AT_MOST):
            seen[key] = seen.get(key, 0) + 1
            session.sink.write(
                LossCallLine(
                    kind="loss_call",
                    name=name,
                    called_at=frames.site(caller),
                    grad_enabled=torch.is_grad_enabled(),
                    input=describe_call(args, kwargs),
                    targets=None if session.sizes_only else loss_targets.target_facts(name, args, kwargs),
                    scores=loss_scores.score_facts(name, args, kwargs, with_values=not session.sizes_only),
                    padding=padded.among(name, args, kwargs),
                )
            )
        session.loss_rows = _samples(args, kwargs)
        session.depth += 1
        try:
            out = original(*args, **kwargs)
        except BaseException as error:
            session.depth -= 1
            exceptions.record(error, "loss", caller, lambda: _details(args, kwargs))
            raise
        session.depth -= 1
        call_sites.returned(call_site)
        return out

    return loss


def _samples(args: Any, kwargs: Any) -> int | None:
    """The number of samples of a loss with one row of scores for each."""
    scores, target = [*args[:2], *(kwargs[name] for name in ("input", "target") if name in kwargs)][:2]
    both = isinstance(scores, torch.Tensor) and isinstance(target, torch.Tensor)
    if not both or scores.dim() not in (1, 2) or not 0 < target.dim() <= scores.dim():
        return None
    return int(scores.shape[0]) if scores.shape[0] == target.shape[0] else None


def _signature(name: str, args: Any, kwargs: Any) -> Any:
    """A key for calls of a loss with equal sizes and dtypes."""
    given = (*args[:2], kwargs.get("input"), kwargs.get("target"))
    sizes = tuple((each.shape, each.dtype) for each in given if isinstance(each, torch.Tensor))
    return name, torch.is_grad_enabled(), sizes


def _details(args: Any, kwargs: Any) -> ExceptionDetails:
    """Describe the arguments of a failed loss."""
    return {
        "given": describe_call(args, kwargs),
        "integer_ranges": [integer_range(each) for each in args[:2]],
    }
