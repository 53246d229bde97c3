"""SF802: a loss that is cut off, or whose nan is replaced, before the backward pass."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.layout.view_across_stride_gap import short
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import calls
from shapefix.checks.support.rewrites import argument, enclosing, without_statement
from shapefix.checks.training.saturated_metric import CODE, NAME, SUMMARY
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Severity
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.training_events import Backward

_SAME_NUMBER = frozenset(
    {"scaled", "mul", "multiply", "div", "divide", "true_divide", "truediv", "converted", "copied"}
)
"""Steps through which one number stays one number: it is scaled, or becomes one of another dtype."""
_CLAMPS = frozenset({"clamp", "clip", "clamp_max"})


@rule(CODE, NAME, Severity.WARNING, SUMMARY, Applicability.UNSAFE, on=Backward)
def cut_loss(event: Backward, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    step = _cut(event.loss.origin) if isinstance(event.loss, TensorValue) else None
    if step is None or not isinstance(step.place.node, cst.Call):
        return
    node, place = step.place.node, step.place
    if step.verb == "nan_to_num":
        outcome = "a number where the loss is nan: the run goes on, and the gradients may be nan all the same"
    elif _has_upper_bound(node, step.verb):
        outcome = (
            "a constant where the loss is larger, and has no gradient there: such a batch teaches nothing"
        )
    else:
        return
    yield this.diagnostic(
        place.span,
        f"`{short(place.code)}` is {outcome}",
        evidence=[
            *calls(event),
            Evidence(place.span, "the loss is replaced here"),
            Evidence(event.place.span, "and the gradients are those of what is left"),
        ],
        fixes=list(_fixes(place, node)),
    )


def _cut(step: LayoutStep | None) -> LayoutStep | None:
    """The step that cut off the number whose gradients are computed; None where nothing did."""
    while step is not None:
        if step.verb in _CLAMPS or step.verb == "nan_to_num":
            return step
        if step.verb not in _SAME_NUMBER:
            return None
        step = step.source
    return None


def _position(node: cst.Call) -> int:
    """How many arguments stand before the bounds: the tensor, where a function is called."""
    return 0 if _receiver(node) is not None else 1


def _receiver(node: cst.Call) -> cst.BaseExpression | None:
    """`loss` of `loss.clamp(max=10)`; None for `torch.clamp(loss, max=10)`."""
    if not isinstance(node.func, cst.Attribute):
        return None
    owner = node.func.value
    return None if isinstance(owner, cst.Name) and owner.value in ("torch", "th") else owner


def _has_upper_bound(node: cst.Call, verb: str) -> bool:
    shift = _position(node) + (0 if verb == "clamp_max" else 1)
    given = argument(node, shift, "max")
    return given is not None and not (isinstance(given.value, cst.Name) and given.value.value == "None")


def _fixes(place: Place, node: cst.Call) -> Iterator[Fix]:
    """Take the loss as it is."""
    first = argument(node, 0, "input") if _receiver(node) is None else None
    loss = first.value if first is not None else _receiver(node)
    if loss is None:
        return
    code = place.module.code(loss)
    statement = next(
        (each for each in reversed(enclosing(place.module, node)) if isinstance(each, cst.Assign)), None
    )
    edit: Edit | None = Edit(place.span, code)
    if statement is not None and statement.value is node and len(statement.targets) == 1:
        if place.module.code(statement.targets[0].target) == code:
            # `loss = loss.clamp(max=10)`
            edit = without_statement(Place(place.module, statement))
    if edit is not None:
        yield Fix(Applicability.UNSAFE, "compute the gradients of the loss itself", (edit,))
