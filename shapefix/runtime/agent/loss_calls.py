"""Calls of the loss functions of torch.nn.functional: what they are given, and when they raise."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from . import describe, frames
from .call_sites import Visits
from .failures import Failures
from .session import Session
from .watchers import loss_targets

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


def install(session: Session, failures: Failures, visits: Visits) -> None:
    """Watch the loss functions from now on."""
    seen: dict[Any, int] = {}
    for name in NAMES:
        original = getattr(functional, name, None)
        if original is not None:
            setattr(functional, name, _watched(original, name, session, failures, visits, seen))


def _watched(
    original: Callable[..., Any],
    name: str,
    session: Session,
    failures: Failures,
    visits: Visits,
    seen: dict[Any, int],
) -> Callable[..., Any]:
    @functools.wraps(original)
    def loss(*args: Any, **kwargs: Any) -> Any:
        if not session.watches():
            return original(*args, **kwargs)
        if session.depth == 0:
            session.go_on()
            failures.flush()
        caller = sys._getframe(1)
        visit = visits.reach(caller)
        key = _kind(name, args, kwargs)
        if seen.get(key, 0) < _EACH and (key in seen or len(seen) < _AT_MOST):
            seen[key] = seen.get(key, 0) + 1
            session.observations.write(
                "loss",
                name=name,
                called=frames.site(caller),
                gradient=torch.is_grad_enabled(),
                input=describe.call(args, kwargs),
                targets=None if session.sizes_only else loss_targets.known(name, args, kwargs),
            )
        session.depth += 1
        try:
            out = original(*args, **kwargs)
        except BaseException as error:
            session.depth -= 1
            failures.note(error, "loss", caller, loss=name, given=lambda: _given(args, kwargs))
            raise
        session.depth -= 1
        visits.passed(visit)
        return out

    return loss


def _kind(name: str, args: Any, kwargs: Any) -> Any:
    """What calls of a loss have in common: what they are given, and whether a backward may follow."""
    given = (*args[:2], kwargs.get("input"), kwargs.get("target"))
    sizes = tuple((each.shape, each.dtype) for each in given if isinstance(each, torch.Tensor))
    return name, torch.is_grad_enabled(), sizes


def _given(args: Any, kwargs: Any) -> dict[str, Any]:
    """What a loss that has raised was given, and between which numbers integers are."""
    return {**describe.call(args, kwargs), "numbers": [describe.numbers(each) for each in args[:2]]}
