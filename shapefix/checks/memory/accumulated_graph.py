"""SF701: losses and outputs accumulated in a training loop together with their autograd graphs."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import is_certain, within
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.scalar_uses import is_only_a_number, may_be_differentiated
from shapefix.checks.support.syntax import enclosing, holds
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.gradients import carries_graph, lineage
from shapefix.domains.lightning_steps import LightningStepFound, StepFault
from shapefix.domains.training import Backward, LossAccumulated
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import NumberRange, elements
from shapefix.interpreter.evaluator import Loop
from shapefix.interpreter.modules import Module, Place, children, dotted_name, is_remainder, nodes
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import FunctionValue, Unknown

FEW = 20
"""Loops of at most this many passes do not fill the memory."""


@rule("SF701", on=(LossAccumulated, LightningStepFound))
def accumulated_graph(
    event: LossAccumulated | LightningStepFound, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, LightningStepFound):
        if event.fault is StepFault.COLLECTED:
            yield _collected(event, rule)
        return
    value = _tensor(event)
    if value is None:
        return
    found = _differentiated(event, value, context)
    if found is None:
        return
    loop, backward = found
    module = event.place.module
    kept = abbreviate(module.code(event.holder))
    method = "item()" if _may_be_number(event, value) else "detach()"
    message = f"`{abbreviate(event.place.code)}` keeps the nodes of every step's autograd graph in memory"
    is_used = may_be_differentiated(event.place, event.holder)
    if not is_used:
        subject = abbreviate(module.code(_subject(event, backward) or event.added), 40)
        message += f"; use `{subject}.{method}`" if subject.replace(".", "").isidentifier() else ""
    yield rule.diagnostic(
        event.place.span,
        message,
        evidence=[
            *call_trace(event),
            Evidence(
                backward.place.span,
                "backward uses the graph here and frees its activations",
            ),
            Evidence(
                event.place.span,
                f"`{kept}` still references the nodes, about 1 KB per operation, in each pass of the loop at "
                f"{rewrites.line_of(Place(module, loop.node), module)}",
            ),
        ],
        fixes=() if is_used else (_without_graph(event, backward, method),),
        habit="values kept with their graphs",
    )


def _collected(event: LightningStepFound, rule: Rule) -> Diagnostic:
    """Return the finding for the loss of a `training_step`, appended to a list of the module."""
    call, module = event.place.node, event.place.module
    given = call.args[0] if isinstance(call, cst.Call) else None
    code = module.code(given.value) if given is not None else ""
    is_dictionary = any(map(_gives_dictionary, [event.method, *_called_for(event, code)]))
    detached = Edit(module.span(given.value), f"{code}.detach()") if given and not is_dictionary else None
    advice = "detach its tensors" if is_dictionary else f"use `{code}.detach()`"
    return rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` keeps the nodes of every step's autograd graph in memory; "
        f"{advice}",
        evidence=[
            Evidence(module.span(event.method.name), "Lightning computes the gradients of the returned loss"),
            Evidence(event.place.span, f"the list still references the graph of `{code}` after the step"),
        ],
        fixes=[rewrites.unsafe_or_advice("keep the loss without its graph", detached)],
    )


def _called_for(event: LightningStepFound, name: str) -> Iterator[cst.FunctionDef]:
    """Yield the methods of the module with a result assigned to a variable of the step."""
    for node in nodes(event.method.body):
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
            owner, _, called = dotted_name(node.value.func).rpartition(".")
            method = member(event.owner, called) if owner == "self" else None
            if isinstance(method, FunctionValue) and isinstance(method.node, cst.FunctionDef):
                if any(dotted_name(target.target) == name for target in node.targets):
                    yield method.node


def _gives_dictionary(method: cst.FunctionDef) -> bool:
    """Whether a method returns a dictionary, by its annotation or its last line."""
    inside = tuple(nodes(method))
    made = {
        dotted_name(target.target)
        for node in inside
        if isinstance(node, cst.Assign) and isinstance(node.value, (cst.Dict, cst.DictComp))
        for target in node.targets
    }
    annotation = nodes(method.returns.annotation) if method.returns is not None else ()
    return any(isinstance(node, cst.Name) and node.value.lower() == "dict" for node in annotation) or any(
        isinstance(node.value, (cst.Dict, cst.DictComp)) or dotted_name(node.value) in made
        for node in inside
        if isinstance(node, cst.Return) and node.value is not None
    )


def _tensor(event: LossAccumulated) -> TensorValue | None:
    value = event.value
    return value.tensor if isinstance(value, Unknown) else value


def _differentiated(
    event: LossAccumulated, value: TensorValue, context: CheckContext
) -> tuple[Loop, Backward] | None:
    """Find the accumulating loop, and the backward in it for the last use of the value's graph."""
    holder = event.place.module.code(event.holder)
    own = [entered.loop for entered in event.loops[len(event.loops) - event.own :]]
    for position, loop in reversed(list(enumerate(own))):
        if _binds(event, loop, holder) or _is_reset_now_and_then(event, loop, holder):
            return None
        if _is_short(loop, event) or _is_one_step(event, own[: position + 1], holder):
            continue
        if event.place.module.once(loop.node, _steps_each):
            continue
        for backward in within(loop, context, Backward):
            if _runs_with(backward, event) and _uses_up(backward, value, event):
                return loop, backward
    return None


def _runs_with(backward: Backward, event: LossAccumulated) -> bool:
    """Whether each adding pass of the innermost loop also gets to this backward.

    A backward in another branch says nothing about what is added here, nor does one that follows a loop: it
    uses up what the last pass made.
    """
    innermost = event.loops[-1].loop
    if is_certain(backward, innermost):
        return True
    if all(entered.loop is not innermost for entered in backward.loops):
        return False
    module, added = event.place.module, event.place
    body = innermost.node.body
    if backward.place.module is not module or not holds(body, backward.place.node):
        return False
    if not any(node is _block(module, backward.place.node) for node in enclosing(module, added.node)):
        return False
    start, end = added.span, backward.place.span
    return not any(
        isinstance(node, (cst.Continue, cst.Break, cst.Return, cst.Raise))
        and start.row <= module.span(node).row < end.row
        for node in nodes(body)
    )


def _block(module: Module, node: cst.CSTNode) -> cst.CSTNode | None:
    """The block of statements around a node; the block of a `with` is part of the one around it."""
    around = enclosing(module, node)
    for parent, block in zip(reversed(around[:-1]), reversed(around), strict=False):
        if isinstance(block, cst.BaseSuite) and not isinstance(parent, cst.With):
            return block
    return None


def _binds(event: LossAccumulated, loop: Loop, holder: str) -> bool:
    """Whether each pass of a loop assigns the accumulator again."""
    return holder in event.place.module.once(loop.node.body, _bound_each_pass)


def _is_reset_now_and_then(event: LossAccumulated, loop: Loop, holder: str) -> bool:
    """Whether a condition in the loop sets the accumulator to a constant: `if step % 50 == 0: total = 0`.

    Then the graphs of a few passes are kept, not of all. A condition on the first pass alone does not count.
    """
    module, target = event.place.module, loop.node.target if isinstance(loop.node, cst.For) else None
    counters = _names(target) - {""} if target is not None else frozenset()
    for node in module.once(loop.node.body, _constant_assignments):
        if holder not in {module.code(part) for each in node.targets for part in _parts(each.target)}:
            continue
        around = [each for each in enclosing(module, node) if isinstance(each, cst.If)]
        if not any(_is_first_pass(each.test, counters) for each in around):
            return True
    return False


def _constant_assignments(body: cst.BaseSuite) -> tuple[cst.Assign, ...]:
    return tuple(node for node in nodes(body) if isinstance(node, cst.Assign) and _is_constant(node.value))


def _is_constant(value: cst.BaseExpression) -> bool:
    """Whether an expression has no graph: a number, an empty list, zeros; or a tuple of such."""
    if isinstance(value, (cst.Tuple, cst.List)):
        return all(_is_constant(element.value) for element in value.elements)
    if isinstance(value, cst.Call):
        return dotted_name(value.func).rpartition(".")[2] in ("zeros", "tensor", "list", "dict")
    name = dotted_name(value)
    return isinstance(value, (cst.BaseNumber, cst.Dict)) or name == "None"


def _is_first_pass(test: cst.BaseExpression, counters: frozenset[str]) -> bool:
    """Whether a test holds in the first pass only: `i == 0` or `not i`, for a counter of the loop."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return dotted_name(test.expression) in counters
    if not isinstance(test, cst.Comparison) or dotted_name(test.left) not in counters:
        return False
    return any(isinstance(each.comparator, cst.Integer) for each in test.comparisons)


def _is_short(loop: Loop, event: LossAccumulated) -> bool:
    """Whether few passes of a loop add: `for _ in range(5)`, or each tenth of `range(100)`."""
    call = loop.node.iter if isinstance(loop.node, cst.For) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name) or call.func.value != "range":
        return False
    passes = _stated_passes(call, loop)
    return passes is not None and passes <= FEW * _interval(event, loop)


def _stated_passes(call: cst.Call, loop: Loop) -> int | None:
    given = call.args[0].value if len(call.args) == 1 else None
    if isinstance(given, cst.Integer):
        return given.evaluated_value
    items = elements(loop.iterable)
    if items is not None:
        return len(items)
    return loop.iterable.count.value if isinstance(loop.iterable, NumberRange) else None


def _interval(event: LossAccumulated, loop: Loop) -> int:
    """Return 10 for a place under `if epoch % 10 == 0:` in a loop, 1 without such a test."""
    for each in enclosing(event.place.module, event.place.node):
        if isinstance(each, cst.If) and holds(loop.node, each) and holds(each.body, event.place.node):
            test = each.test if isinstance(each.test, cst.Comparison) else None
            if test is None or not is_remainder(test.left) or not isinstance(test.left.right, cst.Integer):
                continue
            if all(isinstance(target.operator, cst.Equal) for target in test.comparisons):
                return max(test.left.right.evaluated_value, 1)
    return 1


def _is_one_step(event: LossAccumulated, loops: list[Loop], holder: str) -> bool:
    """Whether the innermost of these loops accumulates gradients over parts of a batch, for one step."""
    if len(loops) < 2 or not _binds(event, loops[-2], holder):
        return False
    steps = [event.place.module.once(loop.node.body, _has_step) for loop in loops[-2:]]
    return steps == [True, False]


def _has_step(body: cst.BaseSuite) -> bool:
    """Whether a block calls `optimizer.step()`."""
    waiting: list[cst.CSTNode] = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value == "step":
                return True
        waiting.extend(children(node))
    return False


def _steps_each(loop: cst.CSTNode) -> bool:
    """Whether each pass of a loop is for another optimizer, `self.optimizers[i].step()`: they are few."""
    names = _names(loop.target) - {""} if isinstance(loop, cst.For) else frozenset()
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "step"
        and not names.isdisjoint(_names(node.func.value))
        for node in nodes(loop)
    )


def _uses_up(backward: Backward, value: TensorValue, event: LossAccumulated) -> bool:
    """Whether backward goes through the graph of the accumulated value, and frees it."""
    loss = backward.loss
    if not isinstance(loss, TensorValue) or _keeps_graph(backward):
        return False
    through = {id(each): each for each in lineage(loss)}
    total = event.total.tensor if isinstance(event.total, Unknown) else event.total
    if total is not None and id(total) in through:
        # backward runs on the sum itself.
        return False
    proved = _proved(loss)
    if id(value) in through:
        return carries_graph(value, proved) is True
    return id(loss) in map(id, lineage(value)) and carries_graph(value, proved) is True


def _proved(loss: TensorValue) -> set[int]:
    """The ids of the tensors with a graph proved by a successful backward of loss."""
    proved: set[int] = set()
    tensor: TensorValue | None = loss
    while tensor is not None and id(tensor) not in proved:
        proved.add(id(tensor))
        tensor = tensor.sources[0] if len(tensor.sources) == 1 else None
    return proved


def _keeps_graph(backward: Backward) -> bool:
    """Whether the graph may be used again after this backward."""
    node = backward.place.node
    given = node.args if isinstance(node, cst.Call) else ()
    return any(
        argument.star or (argument.keyword is not None and argument.keyword.value.endswith("_graph"))
        for argument in given
    )


def _bound_each_pass(body: cst.BaseSuite) -> frozenset[str]:
    """Return the code of everything certainly assigned or emptied in each pass of a loop."""
    return frozenset(_bound(body))


_WHOLE = cst.Module([])


def _bound(body: cst.CSTNode) -> Iterator[str]:
    for node in body.body:  # type: ignore[attr-defined]
        for statement in node.body if isinstance(node, cst.SimpleStatementLine) else (node,):
            if isinstance(statement, cst.Assign):
                for target in (part for each in statement.targets for part in _parts(each.target)):
                    name = _WHOLE.code_for_node(target)
                    if name not in _names(statement.value):
                        yield name
            elif isinstance(statement, cst.AnnAssign) and statement.value is not None:
                yield _WHOLE.code_for_node(statement.target)
            elif isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
                function = statement.value.func
                if isinstance(function, cst.Attribute) and function.attr.value in ("clear", "reset"):
                    yield _WHOLE.code_for_node(function.value)
            elif isinstance(statement, (cst.With, cst.Try)):
                yield from _bound(statement.body)


def _parts(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield the targets of an assignment: both of `values, losses = [], []`."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _parts(element.value)
    else:
        yield target


def _names(node: cst.CSTNode) -> frozenset[str]:
    """Return the names and dotted names in an expression."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        found.add(dotted_name(each))
        waiting.extend(children(each))
    return frozenset(found)


def _may_be_number(event: LossAccumulated, value: TensorValue) -> bool:
    """Whether a plain number is enough for all uses of the sum."""
    is_scalar = value.layout is not None and not value.layout.rank
    return is_scalar and event.total is not None and is_only_a_number(event.place, event.holder)


def _without_graph(event: LossAccumulated, backward: Backward, method: str) -> Fix:
    module = event.place.module
    subject = _subject(event, backward) or event.added
    edit = rewrites.method_called(module, subject, method)
    what = "a plain number" if method == "item()" else "the value without its graph"
    safety = Applicability.UNSAFE if _is_attribute(event.holder) else Applicability.SAFE
    return Fix(safety, f"keep {what}: `.{method}`", (edit,))


def _is_attribute(holder: cst.BaseExpression) -> bool:
    """Whether an object holds the sum or list, so that any other code may read it."""
    while isinstance(holder, cst.Subscript):
        holder = holder.value
    return not isinstance(holder, cst.Name)


def _subject(event: LossAccumulated, backward: Backward) -> cst.BaseExpression | None:
    """Return the loss in the added expression: `loss` of `loss * len(batch)`."""
    node = backward.place.node
    if backward.place.module is not event.place.module or not isinstance(node, cst.Call):
        return None
    loss = node.func.value if isinstance(node.func, cst.Attribute) else None
    name = dotted_name(loss) if loss is not None else ""
    added = event.added
    while isinstance(added, cst.BinaryOperation):
        if not isinstance(added.operator, (cst.Multiply, cst.Divide)):
            return None
        if name and dotted_name(added.left) == name:
            return added.left
        added = added.left
    return None
