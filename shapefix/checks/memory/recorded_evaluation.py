"""SF702: evaluation loops without `torch.no_grad()`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.event_order import (
    ends_early,
    goes_over_data,
    of_kind,
    stops_after_few,
    within,
)
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.idle_results import is_measured
from shapefix.checks.support.syntax import enclosing, enclosing_function, holds
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Edit, Evidence, Fix, Import, Role, Span
from shapefix.domains.gradients import carries_graph, lineage
from shapefix.domains.modes import EvaluationRecorded, ModeSwitched
from shapefix.domains.training import Backward, LossAccumulated
from shapefix.interpreter.evaluator import Loop
from shapefix.interpreter.modules import Module, dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import InstanceValue, LibraryObject, Unknown

_DIFFERENTIATES = re.compile(
    r"backward|autograd|\.grad\b|grad_|(?<!zero)_grad\b|attack|adversar|saliency|captum|cam\b"
)
"""Words of evaluation code that needs gradients: attacks, attributions, learned inputs."""


@rule("SF702", on=EvaluationRecorded)
def recorded_evaluation(event: EvaluationRecorded, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    module = event.place.module
    switched = _switched_off(event, context)
    if switched is None:
        return
    loop = event.loops[-1].loop
    function = enclosing_function(event.place)
    # One `with torch.no_grad()` serves all calls of a loop.
    calls = within(loop, context, EvaluationRecorded)
    first = next(each for each in calls if _switched_off(each, context) is not None)
    others = [
        each for each in calls if each.place.module is module and each.place.node is not event.place.node
    ]
    models = [_called(event), *(_called(each) for each in others if not _is_loss(each))]
    kept = _kept(event, loop, context)
    if kept is None and stops_after_few(loop):
        # A look at a few batches.
        return
    effect = "activations are stored for nothing"
    if kept is not None:
        effect = f"`{abbreviate(module.code(kept.holder))}` keeps every batch's activations in memory"
    yield rule.diagnostic(
        event.place.span,
        f"{_joined(list(dict.fromkeys(models)))} evaluated without `torch.no_grad()`: {effect}",
        evidence=[
            *call_trace(event),
            Evidence(switched.place.span, "switched to evaluation mode here", Role.PRODUCER),
            Evidence(event.place.span, "torch records an autograd graph here"),
            *(Evidence(each.place.span, "and here", Role.HISTORY) for each in others),
            *(
                [Evidence(kept.place.span, "kept here, together with its graph", Role.PRODUCER)]
                if kept is not None
                else ()
            ),
        ],
        fixes=_without_gradients(module, function, context),
        follows=Cause(rule.code, first.place.span) if first is not event else None,
        habit="evaluation that records" if kept is None else "",
    )


def _called(event: EvaluationRecorded) -> str:
    """Return the code of the model: `self.model` of `self.model(x)`."""
    node = event.place.node
    return abbreviate(event.place.module.code(node.func)) if isinstance(node, cst.Call) else "the model"


def _is_loss(event: EvaluationRecorded) -> bool:
    module = event.module
    if isinstance(module, InstanceValue):
        return module.cls.name.endswith("Loss")
    return isinstance(module, LibraryObject) and module.kind.endswith("Loss")


def _joined(models: list[str]) -> str:
    """Return the names of models with their verb: "`encoder` and `generator` are"."""
    named = [f"`{name}`" for name in models]
    return f"{named[0]} is" if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]} are"


def _switched_off(event: EvaluationRecorded, context: CheckContext) -> ModeSwitched | None:
    """Return the switch to evaluation mode before a call; None for a call with a use for gradients."""
    module, loop = event.place.module, event.loops[-1].loop
    around = enclosing(module, event.place.node)
    if loop.node not in around or not goes_over_data(loop) or within(loop, context, Backward):
        return None
    if ends_early(loop) or _is_benchmark(loop, context):
        # A look at one batch, or a benchmark.
        return None
    switched = _switched(event, context)
    if switched is None or switched.training is not False or _is_differentiated(event, context):
        return None
    searched = enclosing_function(event.place) or loop.node
    if _has_volatile_inputs(searched):
        return None
    texts = [_text(module, searched)]
    for branch in _branches_of_other_phases(around):
        texts = [part for text in texts for part in text.split(_text(module, branch))]
    return None if any(map(_DIFFERENTIATES.search, texts)) else switched


def _branches_of_other_phases(around: list[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """Yield the branches of `if phase == "train":`, in a loop over texts around an evaluation, without it.

    A pass for another phase does not run them.
    """
    for loop in around:
        if not isinstance(loop, cst.For) or not isinstance(loop.iter, (cst.List, cst.Tuple)):
            continue
        if not all(isinstance(each.value, cst.SimpleString) for each in loop.iter.elements):
            continue
        phase = dotted_name(loop.target)
        for node in nodes(loop.body):
            if isinstance(node, cst.If) and isinstance(node.test, cst.Comparison) and node.body not in around:
                if dotted_name(node.test.left) == phase:
                    yield node.body


def _has_volatile_inputs(evaluation: cst.CSTNode) -> bool:
    """Whether code makes `Variable(x, volatile=True)`, for evaluation before torch 0.4."""
    return any(
        isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "volatile"
        for node in nodes(evaluation)
    )


def _is_benchmark(loop: Loop, context: CheckContext) -> bool:
    """Whether a loop takes the time of calls of models without a use of their results."""
    calls = within(loop, context, EvaluationRecorded)
    around = [(each.place.module, enclosing(each.place.module, each.place.node)) for each in calls]
    is_timed = any(is_measured(module, path) for module, path in around)
    return is_timed and not any(_is_used(path) for _, path in around)


def _is_used(around: list[cst.CSTNode]) -> bool:
    """Whether the result of a call is used, and not only assigned."""
    statement = around[-2] if len(around) > 1 else None
    if isinstance(statement, cst.Expr):
        return False
    if not isinstance(statement, cst.Assign):
        return True
    names = {name for each in statement.targets for name in target_names(each.target)}
    function = next((node for node in reversed(around) if isinstance(node, cst.FunctionDef)), around[0])
    bound = {
        id(each.target) for node in nodes(function) if isinstance(node, cst.Assign) for each in node.targets
    }
    return any(
        isinstance(node, cst.Name) and node.value in names and id(node) not in bound
        for node in nodes(function)
    )


def _switched(event: EvaluationRecorded, context: CheckContext) -> ModeSwitched | None:
    """Return the last change of the module's mode before the call."""
    before = context.training[: context.positions[event]]
    return next(
        (
            other
            for other in reversed(before)
            if isinstance(other, ModeSwitched) and other.module is event.module
        ),
        None,
    )


def _is_differentiated(event: EvaluationRecorded, context: CheckContext) -> bool:
    """Whether any backward uses the module's results."""
    results = {id(result) for result in event.results}
    return any(
        isinstance(each.loss, TensorValue) and not results.isdisjoint(map(id, lineage(each.loss)))
        for each in of_kind(context, Backward)
    )


def _text(module: Module, node: cst.CSTNode) -> str:
    span = module.span(node)
    return "\n".join(module.text.split("\n")[span.row - 1 : span.end_row])


def _kept(event: EvaluationRecorded, loop: Loop, context: CheckContext) -> LossAccumulated | None:
    """Return the accumulation, in the loop, of a value with the graph of the module's results."""
    results = {id(result) for result in event.results}
    for each in within(loop, context, LossAccumulated):
        value = each.value.tensor if isinstance(each.value, Unknown) else each.value
        if value is None or not carries_graph(value) or each.place.module is not event.place.module:
            continue
        if not results.isdisjoint(map(id, lineage(value))):
            return each
    return None


def _trains(function: cst.FunctionDef, context: CheckContext) -> bool:
    """Whether the function runs a backward, in its own code or by a call."""
    return any(
        isinstance(each, Backward) and any(holds(function, place.node) for place in (each.place, *each.calls))
        for each in context.training
    )


def _without_gradients(
    module: Module, function: cst.FunctionDef | None, context: CheckContext
) -> Iterator[Fix]:
    """Decorate the function with `@torch.no_grad()`, unless it trains, too."""
    if function is None or function.asynchronous is not None or _trains(function, context):
        yield Fix(Applicability.DISPLAY, "wrap the loop in `with torch.no_grad():`", ())
        return
    row = module.span(function.name).row
    line = module.text.split("\n")[row - 1]
    indent = line[: len(line) - len(line.lstrip())]
    start = Span(module.path, row, len(indent) + 1, row, len(indent) + 1)
    edit = Edit(start, f"@torch.no_grad()\n{indent}")
    yield Fix(
        Applicability.UNSAFE,
        f"disable gradients in `{function.name.value}`: `@torch.no_grad()`",
        (edit,),
        (Import("torch"),),
    )
