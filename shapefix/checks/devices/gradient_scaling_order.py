"""SF604: gradients of mixed precision that are clipped or stepped with in the wrong order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.event_order import (
    after,
    between,
    first_argument,
    is_passed,
    receiver_code,
    text_between,
)
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import after_statement, argument, before_statement, line_of
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.training import (
    ENABLED,
    SCALES,
    GradientsClipped,
    GradientsUnscaled,
    OptimizerStepped,
    PendingGradients,
    ScalerUpdated,
)
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import LibraryObject, Value

_GRADIENT = re.compile(r"\.grad\b")
_SCALE = re.compile(r"scale", re.IGNORECASE)


@rule("SF604", on=(GradientsClipped, OptimizerStepped))
def gradient_scaling_order(
    event: GradientsClipped | OptimizerStepped, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    gradients = event.gradients
    if isinstance(event, GradientsClipped):
        if gradients is not None and not gradients.unscaled and _works(gradients.scaled):
            yield from _clipped_too_early(event, gradients, context, rule)
    elif _works(event.scaler):
        if gradients is not None and gradients.scaled is None and not _scales(event.scaler):
            yield _never_scaled(event, gradients, rule)
        elif _is_never_updated(event, context):
            yield _without_update(event, rule)


def _works(scaler: Value | None) -> bool:
    """Whether this is a GradScaler, and not one that is switched off."""
    return isinstance(scaler, LibraryObject) and truth(scaler.fields[ENABLED]) is not False


def _scales(scaler: Value | None) -> bool:
    return isinstance(scaler, LibraryObject) and SCALES in scaler.fields


def _clipped_too_early(
    event: GradientsClipped, gradients: PendingGradients, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    scaler = gradients.scaled
    steps = [step for step in after(event, context, OptimizerStepped) if step.scaler is scaler]
    if not steps or _is_divided_by_hand(event, gradients):
        return
    step = steps[0]
    named = receiver_code(step.place)
    unscaled = [each for each in between(event, step, context, GradientsUnscaled) if each.scaler is scaler]
    late = unscaled[0].place if unscaled else step.place
    clip, where = abbreviate(event.place.code), line_of(late, event.place.module)
    yield rule.diagnostic(
        event.place.span,
        f"`{clip}` clips gradients that `{named}` has multiplied, and divides again only in {where}",
        condition=_condition(scaler),
        evidence=[
            *call_trace(event),
            Evidence(
                gradients.place.span,
                f"the loss is multiplied by the scale of `{named}` here, and every gradient with it",
            ),
            Evidence(event.place.span, "clipped here: the limit is compared with the multiplied gradients"),
            Evidence(late.span, "divided by the scale here"),
        ],
        fixes=() if unscaled else _unscale_first(event, steps, named),
    )


def _is_divided_by_hand(event: GradientsClipped, gradients: PendingGradients) -> bool:
    """Whether the code may have divided the gradients itself, or multiplied the limit as well."""
    node = event.place.node
    limit = argument(node, 1, "max_norm") if isinstance(node, cst.Call) else None
    known = limit is None or not _SCALE.search(event.place.module.code(limit))
    return not known or _GRADIENT.search(text_between(gradients.place, event.place)) is not None


def _unscale_first(event: GradientsClipped, steps: Sequence[OptimizerStepped], named: str) -> Iterator[Fix]:
    """`scaler.unscale_(optimizer)` in front, where the function always gets to the step."""
    module = event.place.module
    near = [step for step in steps if step.calls == event.calls and step.place.module is module]
    optimizers = {id(step.optimizer) for step in steps}
    if not near or len(optimizers) != 1 or not is_passed(module, event.place.node, near[0].place.node):
        return
    optimizer = first_argument(near[0].place)
    call = f"{named}.unscale_({module.code(optimizer)})" if optimizer is not None else ""
    edit = before_statement(event.place, call)
    if call and edit is not None:
        yield Fix(Applicability.SAFE, f"divide first: `{call}`", (edit,))


def _never_scaled(event: OptimizerStepped, gradients: PendingGradients, rule: Rule) -> Diagnostic:
    named = receiver_code(event.place)
    return rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` steps, but `{named}` never scaled the loss: AssertionError",
        condition=_condition(event.scaler),
        evidence=[
            *call_trace(event),
            Evidence(gradients.place.span, "the gradients come from here: the loss is as it was computed"),
            Evidence(event.place.span, f"`{named}` has no scale yet that it could divide by"),
        ],
        fixes=_scale_loss(event, gradients, named),
    )


def _scale_loss(event: OptimizerStepped, gradients: PendingGradients, named: str) -> Iterator[Fix]:
    module, node = event.place.module, gradients.place.node
    if gradients.calls != event.calls or gradients.place.module is not module:
        return
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        loss = node.func.value
        code = f"{named}.scale({module.code(loss)})"
        yield Fix(Applicability.SAFE, f"scale the loss: `{code}`", (Edit(module.span(loss), code),))


def _is_never_updated(event: OptimizerStepped, context: CheckContext) -> bool:
    """Whether the scaler steps in each pass of a loop, and is updated nowhere."""
    if not event.loops or not event.loops[-1].certain:
        return False
    before, behind = event.loops[-1].loop.unfollowed
    if before != behind or any(
        each.scaler is event.scaler for each in context.training if isinstance(each, ScalerUpdated)
    ):
        return False
    last = [step for step in after(event, context, OptimizerStepped) if step.scaler is event.scaler]
    return not last and f"{receiver_code(event.place)}.update" not in event.place.module.text


def _without_update(event: OptimizerStepped, rule: Rule) -> Diagnostic:
    named = receiver_code(event.place)
    edit = after_statement(event.place, f"{named}.update()")
    return rule.diagnostic(
        event.place.span,
        f"`{named}` steps in every pass of the loop, and is never updated: RuntimeError in the second one",
        condition=_condition(event.scaler),
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, f"`{named}.update()` has to come between this step and the next one"),
        ],
        fixes=[Fix(Applicability.SAFE, f"update the scale: `{named}.update()`", (edit,))] if edit else (),
    )


def _condition(scaler: Value | None) -> str | None:
    """What switches the scaler on, where that is not certain."""
    if not isinstance(scaler, LibraryObject) or truth(scaler.fields[ENABLED]) is True:
        return None
    if scaler.place is None:
        return "the scaler is enabled"
    node = scaler.place.node
    given = (
        [arg for arg in node.args if arg.keyword and arg.keyword.value == "enabled"]
        if isinstance(node, cst.Call)
        else []
    )
    return f"`{scaler.place.module.code(given[0].value)}`" if given else "the scaler is enabled"
