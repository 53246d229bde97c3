"""SF518: a cross entropy over one class, always 0."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, made_at, shape_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.losses import LossComputed
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject
from shapefix.tensors.bounds import same
from shapefix.tensors.dtypes import is_floating

_TWINS = {
    "torch.nn.CrossEntropyLoss": "BCEWithLogitsLoss",
    "torch.nn.functional.cross_entropy": "binary_cross_entropy_with_logits",
}


@rule("SF518", on=LossComputed)
def single_class_scores(event: LossComputed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    scores, target = event.given.get("input"), event.given.get("target")
    if event.function not in _TWINS or not isinstance(scores, TensorValue) or scores.layout is None:
        return
    sizes = scores.layout.sizes
    if len(sizes) < 2 or sizes[1].value != 1:
        return
    has_ids = not (isinstance(target, TensorValue) and target.dtype is not None and is_floating(target.dtype))
    ids = target if isinstance(target, TensorValue) and not target.storage.is_written else None
    known = None if ids is None else ids.extremes
    if has_ids and known is not None and known.most.value != 0:
        # Another class raises an IndexError, reported as an id out of range.
        return
    if any(guard.is_own for guard in context.way(event).guards):
        # Only some values lead here, and may not be those with one class.
        return
    shape = context.shape(sizes)
    consequence = "the loss is always 0" if not has_ids else "the loss of class 0 is always 0"
    but = ", any other class is an error" if has_ids else ""
    yield rule.diagnostic(
        event.place.span,
        f"`{_code(event)}` gets scores of one class, sizes {shape}: {consequence}{but}",
        evidence=[
            *call_trace(event),
            *made_at(event.layer),
            *shape_trace(scores, context),
            Evidence(event.place.span, f"softmax over one class is always 1: {consequence}"),
        ],
        fixes=_fixes(event, scores, target),
    )


def _code(event: LossComputed) -> str:
    node = event.place.node
    return abbreviate(event.place.module.code(node.func if isinstance(node, cst.Call) else node))


def _fixes(event: LossComputed, scores: TensorValue, target: object) -> Iterator[Fix]:
    """Yield the fix to use binary cross entropy, with a target of the sizes of the scores."""
    twin = _TWINS[event.function]
    edit = _renamed(event, twin)
    fits = (
        isinstance(target, TensorValue)
        and target.dtype is not None
        and is_floating(target.dtype)
        and target.layout is not None
        and scores.layout is not None
        and target.layout.rank == scores.layout.rank
        and all(same(a, b) for a, b in zip(target.layout.sizes, scores.layout.sizes, strict=True))
    )
    if fits and edit is not None:
        yield Fix(Applicability.UNSAFE, f"use `{twin}` for one score of two classes", (edit,))
    else:
        text = f"`{twin}` with float targets of the same sizes, or a last layer with a score for each class"
        yield Fix(Applicability.DISPLAY, text, ())


def _renamed(event: LossComputed, name: str) -> Edit | None:
    """Return the edit to create or call another loss, unless it has arguments of its own."""
    place = event.layer.place if isinstance(event.layer, LibraryObject) else event.place
    node = place.node if place is not None else None
    if (
        place is None
        or not isinstance(node, cst.Call)
        or not isinstance(node.func, (cst.Name, cst.Attribute))
    ):
        return None
    most = 0 if event.layer is not None else 2
    if len(node.args) > most or isinstance(node.func, cst.Name):
        return None
    return rewrites.renamed(place.module, node.func, name)
