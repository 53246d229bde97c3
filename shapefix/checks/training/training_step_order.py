"""SF803: training loops with missing or misplaced `zero_grad`, `backward` and `step` calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.event_order import (
    ends_early,
    goes_over_data,
    is_certain,
    is_followed,
    of_kind,
    receiver_code,
    stops_after_few,
    within,
)
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.lost_steps import (
    backward_after_clipping,
    backward_without_step,
    counting_test,
    first_step_after,
    seldom_step,
    skips_pass,
    step_before_clipping,
    summed_window,
    unreachable_backward,
)
from shapefix.checks.support.rewrites import (
    after_statement,
    before_statement,
    unsafe_or_advice,
    without_statement,
)
from shapefix.checks.support.schedule_units import (
    WrongUnit,
    in_batches,
    in_epochs,
    keeps_first_rate,
    more_steps,
    moved_in,
    moved_out,
)
from shapefix.checks.support.syntax import enclosing, is_after
from shapefix.checks.support.uncalled import uncalled
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.gradients import lineage
from shapefix.domains.modes import ForwardCalled
from shapefix.domains.training import (
    Backward,
    GradientsClipped,
    GradientsZeroed,
    OptimizerCreated,
    OptimizerStepped,
    Owners,
    PendingGradients,
    SchedulerStepped,
    TrainingEvent,
)
from shapefix.interpreter.modules import Place, called_name, nodes
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, Value
from shapefix.tensors.ops import Op

_GRADIENT = re.compile(
    r"\.grad\b(?!(\.data|\.detach\(\)|\.cpu\(\))*\.(abs|clone|max|mean|min|norm|shape|std|sum)\b|\s+is\b)"
)
"""Use of a gradient, other than to look at it."""
_HARMLESS = frozenset({"print", "append", "info", "debug", "item", "format", "step", "zero_grad"})
"""Calls between `zero_grad` and `step` that compute no gradients."""


_Watched = OptimizerStepped | SchedulerStepped | GradientsClipped | GradientsZeroed | ForwardCalled


@rule(
    "SF803",
    on=(OptimizerStepped, SchedulerStepped, GradientsClipped, GradientsZeroed, ForwardCalled),
)
def training_step_order(event: _Watched, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if isinstance(event, SchedulerStepped):
        yield from _only_scheduled(event, context, rule)
        yield from _scheduled_too_early(event, context, rule)
        yield from _scheduled_per_batch(event, context, rule)
        yield from _scheduled_per_epoch(event, context, rule)
        yield from _scheduled_too_often(event, context, rule)
    elif isinstance(event, GradientsClipped):
        yield from _clipped_too_late(event, context, rule)
    elif isinstance(event, GradientsZeroed):
        yield from _cleared_too_often(event, context, rule)
        yield from _never_stepped(event, context, rule)
    elif isinstance(event, ForwardCalled):
        yield from _unreachable(event, context, rule)
    elif isinstance(event.optimizer, LibraryObject) and not event.closure:
        yield from _summed(event, context, rule)
        gradients = event.gradients
        if gradients is not None and gradients.zeroed is not None:
            if not _is_of_other_tensors(gradients, context):
                yield from _zeroed_before(event, event.optimizer, gradients, gradients.zeroed, rule)
        else:
            yield from _never_zeroed(event, event.optimizer, context, rule)
            yield from _before_backward(event, event.optimizer, context, rule)


_MADE = frozenset({Op.TENSOR, Op.CREATION, Op.RANDOM_SAMPLING})


def _is_of_other_tensors(gradients: PendingGradients, context: CheckContext) -> bool:
    """Whether a backward computes the gradients of tensors made by the code, and of no layer or parameter."""
    backward = next((each for each in of_kind(context, Backward) if each.place == gradients.place), None)
    if backward is None or not isinstance(backward.loss, TensorValue):
        return False
    tensors = lineage(backward.loss)
    return all(
        each.origin is not None
        and not each.own
        and each.origin.producer is None
        and (each.sources or each.origin.op in _MADE)
        for each in tensors
    )


def _zeroed_before(
    event: OptimizerStepped,
    optimizer: LibraryObject,
    gradients: PendingGradients,
    zeroed: GradientsZeroed,
    rule: Rule,
) -> Iterator[Diagnostic]:
    if optimizer in gradients.stepped or not _covers(zeroed.owner, optimizer):
        return
    if event.unfollowed != zeroed.unfollowed or not _is_straight(zeroed, event):
        return
    steps = [
        Evidence(gradients.place.span, "gradients computed here"),
        Evidence(zeroed.place.span, "cleared here, still unused"),
        Evidence(event.place.span, "this step changes no weight"),
    ]
    yield _without_gradients(event, zeroed, "clears them first", steps, rule)


def _before_backward(
    event: OptimizerStepped, optimizer: LibraryObject, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    """Report a step right after `zero_grad`, and before the only backward of the same pass."""
    if not event.loops:
        return
    loop = event.loops[-1].loop
    cleared = [each for each in within(loop, context, GradientsZeroed) if _covers(each.owner, optimizer)]
    computed = within(loop, context, Backward)
    if len(cleared) != 1 or len(computed) != 1 or not is_followed(loop) or _touches_gradients(event.place):
        return
    zeroed, backward = cleared[0], computed[0]
    is_in_order = _is_before(zeroed, event) and _is_before(event, backward)
    if not is_in_order or not _is_straight(zeroed, event) or not is_certain(zeroed, loop):
        return
    steps = [
        Evidence(zeroed.place.span, "cleared here in each pass"),
        Evidence(event.place.span, "this step changes no weight"),
        Evidence(backward.place.span, "gradients computed only here"),
    ]
    why = "clears those of the pass before, and `backward` comes later"
    yield _without_gradients(event, zeroed, why, steps, rule)


def _without_gradients(
    event: OptimizerStepped, zeroed: GradientsZeroed, why: str, steps: Sequence[Evidence], rule: Rule
) -> Diagnostic:
    stepping, clearing = abbreviate(event.place.code), abbreviate(zeroed.place.code)
    message = f"`{stepping}` has no gradients: `{clearing}` {why}"
    return rule.diagnostic(event.place.span, message, evidence=[*call_trace(event), *steps])


def _is_before(first: TrainingEvent, last: TrainingEvent) -> bool:
    """Whether a call comes before another one of the same function."""
    one, other = first.place.span, last.place.span
    return first.place.module is last.place.module and (one.row, one.column) < (other.row, other.column)


def _covers(owner: Value, optimizer: LibraryObject) -> bool:
    """Whether zero_grad of owner clears all gradients of an optimizer."""
    owners = optimizer.facts.known(Owners)
    return owner is optimizer or (owners is not None and owners.modules == {owner})


def _is_straight(first: TrainingEvent, last: TrainingEvent) -> bool:
    """Whether no code between two calls of one function can compute gradients again."""
    module = first.place.module
    if first.calls != last.calls or module is not last.place.module or first.loops != last.loops:
        if [each.loop for each in first.loops] != [each.loop for each in last.loops]:
            return False
    around, others = enclosing(module, first.place.node), enclosing(module, last.place.node)
    block = next(
        (node for node in reversed(around) if isinstance(node, (cst.IndentedBlock, cst.Module))), None
    )
    if block is None or block not in others:
        return False
    body = list(block.body)
    start = next(index for index, node in enumerate(body) if node in around)
    end = next(index for index, node in enumerate(body) if node in others)
    between = (node for part in body[start + 1 : end] for node in nodes(part))
    return all(called_name(node) in _HARMLESS for node in between if isinstance(node, cst.Call))


def _never_zeroed(
    event: OptimizerStepped, optimizer: LibraryObject, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if not event.loops:
        return
    loop = event.loops[-1].loop
    if not event.loops[-1].certain and counting_test(event, loop) is None:
        return
    computed = [each for each in within(loop, context, Backward) if is_certain(each, loop)]
    if not computed or within(loop, context, GradientsZeroed) or not is_followed(loop) or ends_early(loop):
        return
    if stops_after_few(loop):
        # It measures the time of a step, or shows one.
        return
    if any(each.optimizer is optimizer for each in within(loop, context, OptimizerCreated)):
        return
    if uncalled(context, event.place.module, "zero_grad"):
        return
    if not goes_over_data(loop) and any(
        within(each.loop, context, GradientsZeroed) for each in event.loops if goes_over_data(each.loop)
    ):
        # A loop over the parts of one batch, whose gradients may add up.
        return
    backward = computed[0]
    if any(_touches_gradients(place) for place in (event.place, backward.place)):
        return
    named = _name_of(event)
    before = takewhile(lambda each: each is not event, context.training)
    zeroed = (each for each in before if isinstance(each, GradientsZeroed))
    earlier = [each for each in zeroed if _covers(each.owner, optimizer)]
    where = "not called in the loop" if earlier else "never called"
    yield rule.diagnostic(
        event.place.span,
        f"`{named}.zero_grad()` is {where}; gradients accumulate across batches",
        evidence=[
            *call_trace(event),
            *(Evidence(each.place.span, "cleared here, outside of the loop") for each in earlier[:1]),
            Evidence(backward.place.span, "adds to the gradients of earlier passes"),
            Evidence(event.place.span, "steps with the sum of all passes"),
        ],
        fixes=_of_validation() if _is_evaluated(event, context) else _zero_first(event, backward, named),
        habit="gradients accumulate across batches",
    )


def _is_evaluated(event: OptimizerStepped, context: CheckContext) -> bool:
    """Whether all models called in the loop are in evaluation mode: it may be a copy of the training loop."""
    called = within(event.loops[-1].loop, context, ForwardCalled)
    return bool(called) and all(each.training is False for each in called)


def _of_validation() -> Iterator[Fix]:
    advice = "the model is in evaluation mode: if the loop validates it, remove `backward` and `step`"
    yield Fix(Applicability.DISPLAY, advice, ())


def _touches_gradients(place: Place) -> bool:
    """Whether the file edits gradients by hand."""
    return _GRADIENT.search(place.module.text) is not None


def _name_of(event: OptimizerStepped) -> str:
    """Return the code of the optimizer of a step."""
    node = event.place.node
    if event.scaler is not None and isinstance(node, cst.Call) and node.args:
        return event.place.module.code(node.args[0].value)
    return receiver_code(event.place)


def _zero_first(event: OptimizerStepped, backward: Backward, named: str) -> Iterator[Fix]:
    """Insert `optimizer.zero_grad()` before backward, if both are in one function.

    A step of several batches clears their gradients itself.
    """
    if backward.calls != event.calls or backward.place.module is not event.place.module:
        return
    if event.loops[-1].certain:
        edit = before_statement(backward.place, f"{named}.zero_grad()")
        when = "first"
    else:
        edit = after_statement(event.place, f"{named}.zero_grad()")
        when = "after the step"
    if edit is not None:
        yield Fix(Applicability.UNSAFE, f"clear the gradients {when}: `{named}.zero_grad()`", (edit,))


def _only_scheduled(event: SchedulerStepped, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not isinstance(event.optimizer, LibraryObject):
        return
    outer = next((each.loop for each in event.loops if within(each.loop, context, Backward)), None)
    if outer is None or within(outer, context, OptimizerStepped) or not is_followed(outer):
        return
    backward = within(outer, context, Backward)[0]
    if any(_touches_gradients(place) for place in (event.place, backward.place)):
        return
    if uncalled(context, event.place.module, "step"):
        return
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` without `optimizer.step()`: no weight changes",
        evidence=[
            *call_trace(event),
            Evidence(backward.place.span, "gradients computed here"),
            Evidence(event.place.span, "the scheduler steps, but the optimizer does not"),
        ],
    )


def _scheduled_too_early(event: SchedulerStepped, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    step = first_step_after(event, context)
    if step is None or not event.follows or keeps_first_rate(event.scheduler):
        return
    scheduled, stepping = abbreviate(event.place.code), abbreviate(step.place.code)
    yield rule.diagnostic(
        event.place.span,
        f"`{scheduled}` before `{stepping}` skips the first learning rate",
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, "the schedule goes on before the first update"),
            Evidence(step.place.span, "the first update, with the second learning rate"),
        ],
        habit="scheduler before optimizer",
    )


def _scheduled_per_batch(event: SchedulerStepped, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    found = in_epochs(event, context)
    if found is None:
        return
    setting = _setting(event, found, context)
    problem = f"the schedule is in epochs: {setting}"
    if found.vanishes:
        problem = f"{setting}: the learning rate falls below a millionth"
    wrong = _in_wrong_unit(
        event,
        found,
        f"runs for each batch, but {problem}",
        "once per batch: the schedule is over too early",
        rule,
    )
    yield replace(wrong, fixes=tuple(moved_out(event, found)), habit="scheduler per batch")


def _scheduled_per_epoch(event: SchedulerStepped, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    found = in_batches(event, context)
    if found is None:
        return
    problem = f"runs once per epoch, but the schedule is in batches: {_setting(event, found, context)}"
    wrong = _in_wrong_unit(
        event, found, problem, "once per epoch: only the start of the schedule is used", rule
    )
    yield replace(wrong, fixes=tuple(moved_in(event, found, context)), habit="scheduler per epoch")


def _scheduled_too_often(event: SchedulerStepped, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report a schedule with fewer steps than calls; torch raises at the first call too many."""
    found = more_steps(event, context)
    if found is None or in_epochs(event, context) is not None:
        return
    calls, planned = found
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` runs {calls} times, but the schedule has {planned} steps",
        error=ExpectedError("ValueError", "Tried to step"),
        evidence=[
            *call_trace(event),
            *_schedule(event, f"a schedule of {planned} steps"),
            Evidence(event.place.span, f"called {calls} times", Role.FAILURE),
        ],
        fixes=[Fix(Applicability.DISPLAY, "plan `epochs * len(loader)` steps", ())],
    )


def _in_wrong_unit(
    event: SchedulerStepped, found: WrongUnit, problem: str, called: str, rule: Rule
) -> Diagnostic:
    return rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` {problem}",
        evidence=[
            *call_trace(event),
            *_schedule(event, f"`{found.setting}` counts the calls of `step`"),
            Evidence(event.place.span, f"called {called}"),
        ],
    )


def _setting(event: SchedulerStepped, found: WrongUnit, context: CheckContext) -> str:
    """Return a setting with its value; a schedule without a number of steps has a factor for each."""
    value = _factor(event.scheduler, found.setting)
    return f"`{found.setting}` is {context.text(found.size) if value is None else value}"


def _factor(scheduler: Value, name: str) -> float | None:
    given = scheduler.arguments.get(name) if isinstance(scheduler, LibraryObject) else None
    return given.value if isinstance(given, Constant) and isinstance(given.value, float) else None


def _schedule(event: SchedulerStepped, text: str) -> Iterator[Evidence]:
    scheduler = event.scheduler
    if isinstance(scheduler, LibraryObject) and scheduler.place is not None:
        yield Evidence(scheduler.place.span, text)


def _clipped_too_late(event: GradientsClipped, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    later = backward_after_clipping(event, context)
    if later is not None and not _touches_gradients(event.place):
        yield rule.diagnostic(
            event.place.span,
            f"`{abbreviate(event.place.code)}` has no effect before `{abbreviate(later.place.code)}`",
            evidence=[
                *call_trace(event),
                Evidence(event.place.span, "clipped here: this batch has no gradients yet"),
                Evidence(later.place.span, "gradients computed here, not clipped"),
            ],
            fixes=_clipped_after(event, later),
        )
        return
    step = step_before_clipping(event, context)
    if step is None or event.gradients is None or _touches_gradients(event.place):
        return
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` has no effect after `{abbreviate(step.place.code)}`",
        evidence=[
            *call_trace(event),
            Evidence(event.gradients.place.span, "gradients computed here"),
            Evidence(step.place.span, "used here, not clipped"),
            Evidence(event.place.span, "clipped here: no step uses them any more"),
        ],
    )


def _clipped_after(event: GradientsClipped, backward: Backward) -> list[Fix]:
    """Move the clipping after the backward."""
    removed = without_statement(event.place)
    added = after_statement(backward.place, event.place.code)
    if removed is None or added is None:
        return []
    return [Fix(Applicability.UNSAFE, "clip the gradients after they are computed", (removed, added))]


def _cleared_too_often(event: GradientsZeroed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    found = seldom_step(event, context)
    if found is None or _touches_gradients(event.place):
        return
    step, test = found
    cleared, stepping = abbreviate(event.place.code), abbreviate(step.place.code)
    condition = abbreviate(step.place.module.code(test.test))
    when = "is skipped if" if skips_pass(test) else "runs only if"
    yield rule.diagnostic(
        event.place.span,
        f"`{cleared}` clears the gradients in each pass, but `{stepping}` {when} `{condition}`",
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, "the gradients of all earlier passes are lost here"),
            Evidence(step.place.span, "steps with the gradients of a single pass"),
        ],
        fixes=_cleared_after(event, step),
    )


def _cleared_after(event: GradientsZeroed, step: OptimizerStepped) -> Iterator[Fix]:
    """Clear the gradients after their use by a step."""
    removed, inserted = without_statement(event.place), after_statement(step.place, event.place.code)
    if removed is not None and inserted is not None and event.calls == step.calls:
        message = f"clear them after `{abbreviate(step.place.code)}` only"
        edits = (removed,) if _is_cleared_beside(event, step) else (removed, inserted)
        yield Fix(Applicability.UNSAFE, message, edits)


def _is_cleared_beside(event: GradientsZeroed, step: OptimizerStepped) -> bool:
    """Whether a later statement of the step's block clears the same gradients already."""
    around = enclosing(step.place.module, step.place.node)
    block = next((each for each in reversed(around) if isinstance(each, cst.IndentedBlock)), None)
    return block is not None and any(
        node is not event.place.node
        and isinstance(node, cst.Call)
        and event.place.module.code(node) == event.place.code
        and is_after(step.place, node)
        for statement in block.body
        for node in nodes(statement)
    )


def _never_stepped(event: GradientsZeroed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    backward = backward_without_step(event, context)
    if backward is None or any(_touches_gradients(place) for place in (event.place, backward.place)):
        return
    if uncalled(context, event.place.module, "step"):
        return
    named = receiver_code(event.place)
    edit = after_statement(backward.place, f"{named}.step()") if backward.calls == event.calls else None
    yield rule.diagnostic(
        backward.place.span,
        f"`{named}.step()` is never called: no weight changes",
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, "clears the gradients of each pass"),
            Evidence(backward.place.span, "gradients computed here, and never used"),
        ],
        fixes=[] if edit is None else [unsafe_or_advice(f"update the weights: `{named}.step()`", edit)],
    )


def _summed(event: OptimizerStepped, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    found = summed_window(event, context)
    if found is None or _touches_gradients(event.place):
        return
    backward, count = found
    number = abbreviate(event.place.module.code(count))
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` uses the sum of the gradients, not their mean: the loss is not "
        f"divided by `{number}`",
        evidence=[
            *call_trace(event),
            Evidence(backward.place.span, "adds the gradients of a mean over one batch"),
            Evidence(event.place.span, f"steps with the sum over {number} batches, not with the mean"),
        ],
        fixes=[unsafe_or_advice(f"average over the batches: `/ {number}`", _divided(backward, count, event))],
        habit="accumulated loss not divided",
    )


def _divided(backward: Backward, count: cst.BaseExpression, event: OptimizerStepped) -> Edit | None:
    """Return the edit of `loss.backward()` to `(loss / n).backward()`."""
    node, module = backward.place.node, backward.place.module
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.args:
        return None
    if module is not event.place.module or backward.calls != event.calls:
        return None
    value = node.func.value
    return Edit(module.span(value), f"({module.code(value)} / {module.code(count)})")


def _unreachable(event: ForwardCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    found = unreachable_backward(event, context)
    if found is None:
        return
    left, backward = found
    module = event.place.module
    yield rule.diagnostic(
        module.span(left),
        f"`continue` in each pass: `{abbreviate(module.code(backward))}` never runs",
        evidence=[
            *call_trace(event),
            Evidence(module.span(left), "the next pass begins here"),
            Evidence(module.span(backward), "not reached: no weight changes"),
        ],
    )
