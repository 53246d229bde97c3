"""SF702: evaluation loops without `torch.no_grad()`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.event_order import ends_early, of_kind, within
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Edit, Evidence, Fix, Import, Span
from shapefix.domains.gradients import carries_graph, lineage
from shapefix.domains.modes import EvaluationRecorded, ModeSwitched
from shapefix.domains.training import Backward, LossAccumulated
from shapefix.domains.try_blocks import EnclosingLoop
from shapefix.interpreter.evaluator import Loop
from shapefix.interpreter.modules import Module, dotted_name
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Unknown

_DIFFERENTIATES = re.compile(
    r"backward|autograd|\.grad\b|grad_|_grad\b|attack|adversar|saliency|captum|cam\b"
)
"""Words of evaluation code that needs gradients: attacks, attributions, learned inputs."""
_COUNTERS = ("range", "trange", "count", "itertools.count")


@rule("SF702", on=EvaluationRecorded)
def recorded_evaluation(event: EvaluationRecorded, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    module = event.place.module
    loop = event.loops[-1].loop
    around = enclosing(module, event.place.node)
    if loop.node not in around or not _goes_over_data(loop) or within(loop, context, Backward):
        return
    if ends_early(loop):
        # A look at one batch.
        return
    switched = _switched(event, context)
    if switched is None or switched.training is not False or _is_differentiated(event, context):
        return
    function = next((node for node in reversed(around) if isinstance(node, cst.FunctionDef)), None)
    if _DIFFERENTIATES.search(_text(module, function or loop.node)):
        return
    called = (
        abbreviate(module.code(event.place.node.func))
        if isinstance(event.place.node, cst.Call)
        else "the model"
    )
    # One `with torch.no_grad()` serves all calls of a loop.
    first = within(loop, context, EvaluationRecorded)[0]
    kept = _kept(event, loop, context)
    effect = "activations are stored for nothing"
    if kept is not None:
        effect = f"`{abbreviate(module.code(kept.holder))}` keeps every batch's activations in memory"
    yield rule.diagnostic(
        event.place.span,
        f"`{called}` is evaluated without `torch.no_grad()`: {effect}",
        evidence=[
            *call_trace(event),
            Evidence(switched.place.span, "switched to evaluation mode here"),
            Evidence(event.place.span, "torch records an autograd graph here"),
            *([Evidence(kept.place.span, "kept here, together with its graph")] if kept is not None else ()),
        ],
        fixes=_without_gradients(module, function),
        follows=Cause(rule.code, first.place.span) if first is not event else None,
    )


def _goes_over_data(loop: Loop) -> bool:
    """Whether a loop iterates over data instead of counting."""
    node = loop.node
    if not isinstance(node, cst.For) or loop.state[EnclosingLoop].of_settings:
        return False
    counts = isinstance(node.iter, cst.Call) and dotted_name(node.iter.func) in _COUNTERS
    return loop.state[EnclosingLoop].over_batches or not counts


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


def _without_gradients(module: Module, function: cst.FunctionDef | None) -> Iterator[Fix]:
    """Decorate the function with `@torch.no_grad()`."""
    if function is None or function.asynchronous is not None:
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
