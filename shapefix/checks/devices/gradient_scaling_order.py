"""SF604: `unscale_`, clipping, `step` and `update` of a GradScaler in the wrong order."""

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
    is_certain,
    is_followed,
    is_passed,
    receiver_code,
    text_between,
    within,
)
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import after_statement, argument, before_statement
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Condition, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.domains.training import (
    GradientsClipped,
    GradientsUnscaled,
    OptimizerStepped,
    PendingGradients,
    ScalerUpdated,
    Scales,
    is_enabled,
)
from shapefix.interpreter.values import LibraryObject, Value, facts_of

_GRADIENT = re.compile(r"\.grad\b")
_SCALE = re.compile(r"scale", re.IGNORECASE)


@rule("SF604", on=(GradientsClipped, GradientsUnscaled, OptimizerStepped))
def gradient_scaling_order(
    event: GradientsClipped | GradientsUnscaled | OptimizerStepped, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, GradientsUnscaled):
        yield from _unscaled_again(event, context, rule)
        return
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
    """Whether this is an enabled GradScaler."""
    return isinstance(scaler, LibraryObject) and is_enabled(scaler) is not False


def _scales(scaler: Value | None) -> bool:
    return Scales in facts_of(scaler)


def _unscaled_again(event: GradientsUnscaled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report unscaled gradients in each pass of a loop, with updates in some passes only."""
    loop = event.loops[-1].loop if event.loops else None
    if loop is None or not _works(event.scaler) or not is_certain(event, loop) or not is_followed(loop):
        return
    updates = [each for each in within(loop, context, ScalerUpdated) if each.scaler is event.scaler]
    if len({each.place.node for each in updates}) != 1 or any(is_certain(each, loop) for each in updates):
        return
    update = updates[0]
    around = enclosing(update.place.module, update.place.node)
    test = next((each for each in reversed(around) if isinstance(each, cst.If)), None)
    if test is None or update.place.module is not event.place.module:
        return
    if any(isinstance(each, (cst.Try, cst.TryStar)) for each in around) or test in enclosing(
        event.place.module, event.place.node
    ):
        return
    named = receiver_code(event.place)
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` in each pass, but `{named}.update()` in some of them only",
        error=ExpectedError("RuntimeError", "unscale_() has already been called on this optimizer"),
        condition=Condition(f"a pass skips `{abbreviate(update.place.code)}`"),
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, "unscaled in each pass of the loop"),
            Evidence(update.place.span, "the only update is skipped where the condition does not hold"),
        ],
        fixes=[Fix(Applicability.DISPLAY, f"call `{named}.update()` in each pass, also without a step", ())],
    )


def _clipped_too_early(
    event: GradientsClipped, gradients: PendingGradients, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    scaler = gradients.scaled
    steps = [step for step in after(event, context, OptimizerStepped) if step.scaler is scaler]
    if not steps or _is_divided_by_hand(event, gradients):
        return
    step = steps[0]
    named = receiver_code(step.place)
    optimizer = first_argument(step.place)
    stepping = step.place.module.code(optimizer) if optimizer is not None else "optimizer"
    unscaled = [each for each in between(event, step, context, GradientsUnscaled) if each.scaler is scaler]
    late = unscaled[0].place if unscaled else step.place
    clip = abbreviate(event.place.code)
    yield rule.diagnostic(
        event.place.span,
        f"`{clip}` clips scaled gradients; call `{named}.unscale_({stepping})` before clipping",
        condition=_condition(scaler),
        evidence=[
            *call_trace(event),
            Evidence(
                gradients.place.span,
                f"`{named}` scales the loss here, and with it every gradient",
            ),
            Evidence(event.place.span, "clipped here: the limit applies to the scaled gradients"),
            Evidence(late.span, "unscaled only here, after the clipping"),
        ],
        fixes=() if unscaled else _unscale_first(event, steps, named),
        habit="clips scaled gradients",
    )


def _is_divided_by_hand(event: GradientsClipped, gradients: PendingGradients) -> bool:
    """Whether the code may divide the gradients itself, or scale the limit as well."""
    node = event.place.node
    limit = argument(node, 1, "max_norm") if isinstance(node, cst.Call) else None
    known = limit is None or not _SCALE.search(event.place.module.code(limit))
    return not known or _GRADIENT.search(text_between(gradients.place, event.place)) is not None


def _unscale_first(event: GradientsClipped, steps: Sequence[OptimizerStepped], named: str) -> Iterator[Fix]:
    """Insert `scaler.unscale_(optimizer)` before clipping, if the function always reaches the step."""
    module = event.place.module
    near = [step for step in steps if step.calls == event.calls and step.place.module is module]
    optimizers = {id(step.optimizer) for step in steps}
    if not near or len(optimizers) != 1 or not is_passed(module, event.place.node, near[0].place.node):
        return
    optimizer = first_argument(near[0].place)
    call = f"{named}.unscale_({module.code(optimizer)})" if optimizer is not None else ""
    edit = before_statement(event.place, call)
    if call and edit is not None:
        yield Fix(Applicability.SAFE, f"unscale first: `{call}`", (edit,))


def _never_scaled(event: OptimizerStepped, gradients: PendingGradients, rule: Rule) -> Diagnostic:
    named = receiver_code(event.place)
    return rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` without `{named}.scale(loss)`",
        error=ExpectedError("AssertionError", "Attempted step but _scale is None"),
        condition=_condition(event.scaler),
        evidence=[
            *call_trace(event),
            Evidence(gradients.place.span, "gradients computed here, of the unscaled loss"),
            Evidence(event.place.span, f"`{named}` has no scale to divide by yet"),
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
    """Whether the scaler steps in each pass of a loop and is never updated."""
    if not event.loops or not event.loops[-1].certain:
        return False
    before, later = event.loops[-1].loop.unfollowed
    if before != later or any(
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
        f"`{named}.update()` is never called, so the second step fails",
        error=ExpectedError("RuntimeError", "step() has already been called since the last update()"),
        condition=_condition(event.scaler),
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, f"call `{named}.update()` after each step"),
        ],
        fixes=[Fix(Applicability.SAFE, f"update the scale: `{named}.update()`", (edit,))] if edit else (),
    )


def _condition(scaler: Value | None) -> Condition | None:
    """Return the condition for an enabled scaler, or None if it always is."""
    if not isinstance(scaler, LibraryObject) or is_enabled(scaler) is True:
        return None
    if scaler.place is None:
        return Condition("the scaler is enabled")
    node = scaler.place.node
    given = (
        [arg for arg in node.args if arg.keyword and arg.keyword.value == "enabled"]
        if isinstance(node, cst.Call)
        else []
    )
    return Condition(f"`{scaler.place.module.code(given[0].value)}`" if given else "the scaler is enabled")
