"""SF605: layers of a training loop without an optimizer for their parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.event_order import is_certain, is_followed, of_kind, within
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.optimized import are_all_known, has_weights
from shapefix.checks.support.syntax import enclosing_function
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Evidence
from shapefix.domains.gradients import depends_on
from shapefix.domains.modes import ForwardCalled
from shapefix.domains.training import Backward, OptimizerCreated, OptimizerStepped, WeightsWritten
from shapefix.interpreter.evaluator import Loop
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import LibraryObject, Value, as_tensor

_FIXED = re.compile(r"requires_grad|load_state_dict|pretrained|\bfrozen\b|\bfreeze", re.IGNORECASE)


@rule("SF605", on=ForwardCalled)
def untrained_parameters(event: ForwardCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not event.recording or not event.loops:
        return
    loop = event.loops[-1].loop
    steps = within(loop, context, OptimizerStepped)
    layers = [each for each in event.modules if has_weights(each)]
    if not steps or not layers or not is_followed(loop):
        return
    built = list(of_kind(context, OptimizerCreated))
    if not are_all_known(steps, built):
        return
    given = frozenset(module for each in built for module in each.modules)
    missing = sorted((each for each in layers if each not in given), key=_row)
    written = (each.modules for each in context.events if isinstance(each, WeightsWritten))
    if not missing or not event.modules.isdisjoint(frozenset().union(*written)):
        return
    if event.module in given:
        yield _too_late(event, missing[0], built, rule)
    elif (late := _late_layer(event, missing, steps[0], built, loop, context)) is not None:
        yield _replaced(event, late, steps[0], built, rule)
    elif given.isdisjoint(event.modules) and _is_learned_from(event, loop, context):
        yield _never_given(event, missing[0], steps[0], built, rule)


def _late_layer(
    event: ForwardCalled,
    missing: list[Value],
    step: OptimizerStepped,
    built: list[OptimizerCreated],
    loop: Loop,
    context: CheckContext,
) -> LibraryObject | None:
    """Return a layer created by the same function, after the only optimizer; it has uncalled layers only."""
    made = _creation(step, built)
    if made is None or len(built) != 1 or not made.modules:
        return None
    calls = within(loop, context, ForwardCalled)
    if not all(made.modules.isdisjoint(each.modules | each.called) for each in calls):
        return None
    if not any(is_certain(each, loop) for each in within(loop, context, Backward)):
        return None
    function = enclosing_function(made.place)
    for layer in missing:
        if not isinstance(layer, LibraryObject) or layer.place is None:
            continue
        is_near = layer.place.module is made.place.module and enclosing_function(layer.place) is function
        if is_near and layer.place.span.row > made.place.span.row:
            return layer
    return None


def _creation(step: OptimizerStepped, built: list[OptimizerCreated]) -> OptimizerCreated | None:
    return next((each for each in built if each.optimizer is step.optimizer), None)


def _row(layer: Value) -> tuple[str, int]:
    """Return the place of a layer, for a stable order."""
    span = layer.place.span if isinstance(layer, LibraryObject) and layer.place is not None else None
    return (span.path, span.row) if span is not None else ("", 0)


def _is_learned_from(event: ForwardCalled, loop: Loop, context: CheckContext) -> bool:
    """Whether a loss depends on the module's result, and its weights are neither frozen nor loaded."""
    result = as_tensor(event.result)
    if result is None or any(_FIXED.search(each.module.text) for each in _places(event)):
        return False
    return any(
        is_certain(backward, loop) and depends_on(loss, result)
        for backward in within(loop, context, Backward)
        if (loss := as_tensor(backward.loss)) is not None
    )


def _places(event: ForwardCalled) -> Iterator[Place]:
    yield event.place
    for module in event.modules:
        if isinstance(module, LibraryObject) and module.place is not None:
            yield module.place


def _called(event: ForwardCalled) -> str:
    node = event.place.node
    return abbreviate(event.place.module.code(node.func if isinstance(node, cst.Call) else node))


def _too_late(event: ForwardCalled, layer: Value, built: list[OptimizerCreated], rule: Rule) -> Diagnostic:
    assert isinstance(layer, LibraryObject)
    assert layer.place is not None
    last = next(each for each in reversed(built) if event.module in each.modules)
    kind = abbreviate(layer.place.code)
    return rule.diagnostic(
        layer.place.span,
        f"`{kind}` is added to `{_called(event)}` after the optimizer was created: it is never trained",
        evidence=[
            *call_trace(event),
            Evidence(last.place.span, "optimizer created here, with the current parameters"),
            Evidence(layer.place.span, "this layer is created later"),
            Evidence(event.place.span, "used in training here"),
        ],
    )


def _replaced(
    event: ForwardCalled,
    layer: LibraryObject,
    step: OptimizerStepped,
    built: list[OptimizerCreated],
    rule: Rule,
) -> Diagnostic:
    made = _creation(step, built)
    assert layer.place is not None
    assert made is not None
    return rule.diagnostic(
        layer.place.span,
        f"`{abbreviate(layer.place.code)}` is created after the optimizer of the layer that it replaces: "
        "it is never trained",
        evidence=[
            *call_trace(event),
            Evidence(made.place.span, "the optimizer gets the parameters of a layer out of use"),
            Evidence(layer.place.span, "this layer is created later"),
            Evidence(event.place.span, "used in training here"),
        ],
    )


def _never_given(
    event: ForwardCalled, layer: Value, step: OptimizerStepped, built: list[OptimizerCreated], rule: Rule
) -> Diagnostic:
    made = _creation(step, built)
    assert isinstance(layer, LibraryObject)
    assert layer.place is not None
    assert made is not None
    named = _called(event)
    return rule.diagnostic(
        event.place.span,
        f"`{named}` is used in the loss, but its parameters are in no optimizer: it is never trained",
        evidence=[
            *call_trace(event),
            Evidence(layer.place.span, "created here, with random weights"),
            Evidence(made.place.span, "the optimizer gets other parameters"),
            Evidence(step.place.span, f"this step does not update `{named}`"),
        ],
    )
