"""Calls of a training loop without effect: too late, too often, too early, unreachable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.event_order import ends_early, is_certain, is_followed, of_kind, within
from shapefix.checks.support.syntax import enclosing
from shapefix.domains.modes import ForwardCalled
from shapefix.domains.training import (
    Backward,
    GradientsClipped,
    GradientsZeroed,
    OptimizerCreated,
    OptimizerStepped,
    SchedulerStepped,
    TrainingEvent,
)
from shapefix.interpreter.evaluator import Loop
from shapefix.interpreter.modules import Module, counts_passes, dotted_name, is_remainder, nodes
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Unknown
from shapefix.tensors.ops import Op


def step_before_clipping(event: GradientsClipped, context: CheckContext) -> OptimizerStepped | None:
    """Return the step before a clipping of used gradients; None if the clipped ones may still be used.

    Gradients are cleared in each pass, so that no later step uses them.
    """
    gradients, node = event.gradients, event.place.node
    if gradients is None or not gradients.stepped or gradients.zeroed is not None or not event.loops:
        return None
    loop = event.loops[-1].loop
    line = enclosing(event.place.module, node)[-2:-1]
    if not line or not isinstance(line[0], cst.Expr) or not is_followed(loop):
        return None
    steps, computed = within(loop, context, OptimizerStepped), within(loop, context, Backward)
    is_cleared = any(is_in_each_pass(each, loop) for each in within(loop, context, GradientsZeroed))
    is_used = all(each.optimizer in gradients.stepped and is_in_each_pass(each, loop) for each in steps)
    alone = len({each.place.node for each in computed}) == 1
    once = len({each.place.node for each in steps}) == len({each.optimizer for each in steps})
    if not (steps and is_cleared and is_used and alone and once and is_in_each_pass(event, loop)):
        return None
    return next((each for each in reversed(steps) if each.calls == event.calls), None)


def backward_after_clipping(event: GradientsClipped, context: CheckContext) -> Backward | None:
    """Return the only backward of a loop, after a clipping in the same pass; None if clipped ones are used.

    Gradients are cleared in each pass, so that the clipped ones are those of no batch.
    """
    if not event.loops:
        return None
    loop, module = event.loops[-1].loop, event.place.module
    line = enclosing(module, event.place.node)[-2:-1]
    if not line or not isinstance(line[0], cst.Expr) or not is_followed(loop):
        return None
    computed, steps = within(loop, context, Backward), within(loop, context, OptimizerStepped)
    if len({each.place.node for each in computed}) != 1 or not is_in_each_pass(event, loop):
        return None
    is_cleared = any(is_in_each_pass(each, loop) for each in within(loop, context, GradientsZeroed))
    is_used = steps and all(_comes_after(computed[0], each) for each in steps)
    found = computed[0]
    if not (is_cleared and is_used and found.calls == event.calls and is_in_each_pass(found, loop)):
        return None
    return found if _comes_after(event, found) else None


def _comes_after(first: TrainingEvent, last: TrainingEvent) -> bool:
    """Whether the second call comes after the first one in the same function."""
    one, other = first.place, last.place
    if one.module is not other.module or first.calls != last.calls:
        return False
    return (one.span.row, one.span.column) < (other.span.row, other.span.column)


def is_in_each_pass(event: TrainingEvent, loop: Loop) -> bool:
    """Whether each pass of a loop gets to an event, with no `if` on the way."""
    around = enclosing(event.place.module, event.place.node)
    inner = around[around.index(loop.node) :] if loop.node in around else around
    return is_certain(event, loop) and not any(isinstance(node, (cst.If, cst.IfExp)) for node in inner)


def seldom_step(event: GradientsZeroed, context: CheckContext) -> tuple[OptimizerStepped, cst.If] | None:
    """Return the step under `if (i + 1) % n == 0` in a loop with gradients cleared in each pass.

    The condition may also count by hand, or skip the step: `if count < n: continue`.
    """
    if not event.loops:
        return None
    loop = event.loops[-1].loop
    steps, computed = within(loop, context, OptimizerStepped), within(loop, context, Backward)
    backward = [each for each in computed if is_in_each_pass(each, loop) and each.loops[-1].loop is loop]
    if not steps or not backward or not is_in_each_pass(event, loop) or not is_followed(loop):
        return None
    if (
        len({each.optimizer for each in steps}) != 1
        or steps[0].closure
        or steps[0].optimizer is not event.owner
    ):
        return None
    tests = [counting_test(each, loop) or _test_by_hand(each, loop) for each in steps]
    around = enclosing(event.place.module, event.place.node)
    first = tests[0]
    if first is None or any(each is not first for each in tests) or first in around:
        return None
    return None if _holds_in_each_pass(first.test, event.place.module) else (steps[0], first)


def _holds_in_each_pass(test: cst.BaseExpression, module: Module) -> bool:
    """Whether a condition is that of a window of one pass: `step % Config.window == 0` with `window = 1`."""
    remainders = filter(is_remainder, nodes(test))
    return any(_stated_number(node.right, module) == 1 for node in remainders)


def _stated_number(node: cst.BaseExpression, module: Module) -> int | None:
    """Return the number of a constant of the file, or of a class with settings."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    owner, _, name = dotted_name(node).rpartition(".")
    bound = module.bindings.get(owner or name, ())
    stated: Sequence[cst.CSTNode] = bound
    if owner:
        stated = [inner for each in bound if isinstance(each, cst.ClassDef) for inner in nodes(each.body)]
    found = [
        each.value
        for each in stated
        if isinstance(each, cst.Assign) and any(dotted_name(target.target) == name for target in each.targets)
    ]
    return found[0].evaluated_value if len(found) == 1 and isinstance(found[0], cst.Integer) else None


def summed_window(
    event: OptimizerStepped, context: CheckContext
) -> tuple[Backward, cst.BaseExpression] | None:
    """Return the backward of means and its number in the gradients of a step, if their size matters.

    The step is under `if (i + 1) % n == 0`, and follows the size of its gradients: SGD, or clipped gradients.
    """
    if not event.loops or event.closure or event.scaler is not None:
        return None
    loop = event.loops[-1].loop
    test, module = counting_test(event, loop), event.place.module
    computed, steps = within(loop, context, Backward), within(loop, context, OptimizerStepped)
    if (
        test is None
        or len({each.place.node for each in computed}) != 1
        or len({each.optimizer for each in steps}) != 1
    ):
        return None
    backward, count = computed[0], next(node.right for node in nodes(test.test) if is_remainder(node))
    zeroed = within(loop, context, GradientsZeroed)
    if not zeroed or not all(test in enclosing(each.place.module, each.place.node) for each in zeroed):
        return None
    loss = backward.loss.tensor if isinstance(backward.loss, Unknown) else backward.loss
    if (
        not isinstance(loss, TensorValue)
        or loss.origin is None
        or loss.origin.op not in (Op.LOSS, Op.MODEL_LOSS)
    ):
        return None
    if not is_followed(loop) or not is_in_each_pass(backward, loop) or backward.loops[-1].loop is not loop:
        return None
    kind = event.optimizer.kind if isinstance(event.optimizer, LibraryObject) else ""
    if not kind.endswith(".SGD") and not within(loop, context, GradientsClipped):
        # Adam divides by the size of the gradients.
        return None
    return None if _is_divided(module, count) else (backward, count)


def _is_divided(module: Module, count: cst.BaseExpression) -> bool:
    """Whether any code divides by a number, or computes other losses than means."""
    name = dotted_name(count).rpartition(".")[2] or module.code(count)
    if name == "1" or "reduction" in module.text:
        return True
    return re.search(rf"[/*]=?\s*[\w.(]*\b{re.escape(name)}\b", module.text) is not None


def counting_test(step: OptimizerStepped, loop: Loop) -> cst.If | None:
    """Return the `if` statement with a remainder around a step, directly in the body of a loop."""
    if step.loops[-1].loop is not loop:
        return None
    around = enclosing(step.place.module, step.place.node)
    found = [node for node in around if isinstance(node, cst.If) and node in loop.node.body.body]
    if len(found) != 1 or not counts_passes(found[0].test):
        return None
    is_in_body = found[0].body in around
    return found[0] if is_in_body and found[0].orelse is None else None


def _test_by_hand(step: OptimizerStepped, loop: Loop) -> cst.If | None:
    """Return the `if` statement with a counter of the loop around a step, or before it to skip it."""
    if step.loops[-1].loop is not loop:
        return None
    around = enclosing(step.place.module, step.place.node)
    before: list[cst.If] = []
    for statement in loop.node.body.body:
        if statement in around:
            found = [statement] if isinstance(statement, cst.If) else before
            is_plain = len(found) == 1 and found[0].orelse is None
            return found[0] if is_plain and _counts_up(found[0].test, loop) else None
        if isinstance(statement, cst.If) and skips_pass(statement):
            before.append(statement)
    return None


def skips_pass(test: cst.If) -> bool:
    """Whether a condition does nothing but to go on with the next pass of a loop."""
    last = test.body.body[-1] if isinstance(test.body, cst.IndentedBlock) else test.body
    parts = last.body if isinstance(last, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) else ()
    return any(isinstance(part, cst.Continue) for part in parts)


def _counts_up(test: cst.BaseExpression, loop: Loop) -> bool:
    """Whether a condition compares a variable counted up and set back by the loop."""
    if counts_passes(test):
        return True
    inside = list(nodes(loop.node.body))
    added = {dotted_name(n.target) for n in inside if isinstance(n, cst.AugAssign) and _is_one(n.value)}
    reset = {dotted_name(n.target) for n in inside if isinstance(n, cst.AssignTarget)}
    counters = (added & reset) - {""}
    return any(dotted_name(node) in counters for node in nodes(test))


def _is_one(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Integer) and value.value == "1"


def first_step_after(event: SchedulerStepped, context: CheckContext) -> OptimizerStepped | None:
    """Return the optimizer's first step, if each epoch calls the scheduler before it."""
    node = event.place.node
    if not event.loops or not isinstance(node, cst.Call) or node.args:
        return None
    loop = event.loops[-1].loop
    position = context.positions[event]
    steps = [each for each in of_kind(context, OptimizerStepped) if each.optimizer is event.optimizer]
    if not steps or any(context.positions[each] < position for each in steps):
        return None
    if not is_certain(event, loop) or not is_followed(loop) or event.unfollowed != steps[0].unfollowed:
        return None
    return next((each for each in steps if each in within(loop, context, OptimizerStepped)), None)


def backward_without_step(event: GradientsZeroed, context: CheckContext) -> Backward | None:
    """Return the backward of a loop with `optimizer.zero_grad()`, if no code calls `step`."""
    optimizer = event.owner
    if not isinstance(optimizer, LibraryObject) or not event.loops or not event.loops[-1].certain:
        return None
    loop = event.loops[-1].loop
    computed = [each for each in within(loop, context, Backward) if is_certain(each, loop)]
    if not computed or within(loop, context, GradientsZeroed)[0] is not event:
        return None
    if not any(each.optimizer is optimizer and each.modules for each in of_kind(context, OptimizerCreated)):
        return None
    if within(loop, context, SchedulerStepped) or not is_followed(loop) or ends_early(loop):
        return None
    files = {event.place.module, computed[0].place.module}
    if any(
        isinstance(node, cst.Attribute) and node.attr.value == "step"
        for each in files
        for node in nodes(each.tree)
    ):
        # The step of another function, or of a scaler that is not followed.
        return None
    return computed[0]


def unreachable_backward(event: ForwardCalled, context: CheckContext) -> tuple[cst.Continue, cst.Call] | None:
    """Return an unconditional `continue` in a training loop, and the backward after it."""
    if not event.loops or not any(of_kind(context, OptimizerCreated)):
        return None
    loop = event.loops[-1].loop
    if within(loop, context, ForwardCalled)[0] is not event or within(loop, context, Backward):
        return None
    left: cst.Continue | None = None
    for statement in loop.node.body.body:
        if left is not None:
            found = next(_backward_calls(statement), None)
            if found is not None:
                return left, found
        elif isinstance(statement, cst.SimpleStatementLine):
            left = next((each for each in statement.body if isinstance(each, cst.Continue)), None)
    return None


def _backward_calls(statement: cst.CSTNode) -> Iterator[cst.Call]:
    for node in nodes(statement):
        if isinstance(node, cst.Call) and dotted_name(node.func).endswith(".backward"):
            yield node
