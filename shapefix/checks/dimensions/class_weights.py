"""SF520: weights of classes rejected by a cross entropy: too few, too many, or float64."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, shape_trace
from shapefix.checks.support.loss_calls import is_by_class
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix
from shapefix.domains.losses import LossComputed
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject
from shapefix.tensors.bounds import same
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.polynomials import Size

_LENGTH = ExpectedError("RuntimeError", "weight tensor should be defined either for all")
_DTYPE = ExpectedError("RuntimeError", "expected scalar type Float but found")
_OTHERS = frozenset({"float64", "int64", "int32"})
"""Dtypes of weights that neither torch nor autocast converts to that of the scores."""


@rule("SF520", on=LossComputed)
def class_weights(event: LossComputed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    weight, scores, target = (event.given.get(name) for name in ("weight", "input", "target"))
    if not is_by_class(event.function) or not isinstance(weight, TensorValue) or weight.layout is None:
        return
    if not isinstance(scores, TensorValue) or scores.layout is None or scores.layout.rank == 0:
        return
    classes = scores.layout.sizes[1 if scores.layout.rank > 1 else 0]
    loss = event.function.rpartition(".")[2]
    count = weight.layout.sizes[0] if weight.layout.rank == 1 else None
    if count is not None and same(count, classes) is False:
        reason = f"{_number(count, context)} for {context.text(classes)} classes"
        error, fixes = _LENGTH, list[Fix]()
    elif weight.dtype in _OTHERS and scores.dtype == "float32" and _has_ids(target):
        reason = f"{weight.dtype}, but the scores are float32"
        error, fixes = _DTYPE, _as_float(event)
    else:
        return
    yield rule.diagnostic(
        event.place.span,
        f"`{loss}` gets a weight that is {reason}" if error is _DTYPE else f"`{loss}` gets {reason}",
        evidence=[
            *call_trace(event),
            *_created(event),
            *shape_trace(weight, context),
            *shape_trace(scores, context),
            Evidence(event.place.span, f"the loss is computed here: {reason}"),
        ],
        error=error,
        fixes=fixes,
    )


def _number(count: Size, context: CheckContext) -> str:
    return "1 weight" if count.value == 1 else f"{context.text(count)} weights"


def _has_ids(target: object) -> bool:
    """Return whether the target is class ids: with class probabilities, torch converts the weights."""
    return isinstance(target, TensorValue) and target.dtype is not None and not is_floating(target.dtype)


def _created(event: LossComputed) -> Iterator[Evidence]:
    layer = event.layer
    if isinstance(layer, LibraryObject) and layer.place is not None:
        yield Evidence(layer.place.span, "the weight is given here")


def _as_float(event: LossComputed) -> list[Fix]:
    """Return the fix to convert the weights to float32 at the creation of the loss."""
    place = event.layer.place if isinstance(event.layer, LibraryObject) else event.place
    node = place.node if place is not None else None
    if place is None or not isinstance(node, cst.Call):
        return []
    given = rewrites.argument(node, 0 if event.layer is not None else 2, "weight")
    if given is None:
        return []
    edit = rewrites.method_called(place.module, given.value, "float()")
    return [Fix(Applicability.SAFE, "convert the weights to float32: `.float()`", (edit,))]
