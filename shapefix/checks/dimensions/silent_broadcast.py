"""SF509: losses and metrics with every prediction broadcast against every target."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, made_at, shape_trace
from shapefix.checks.support.operands import code_of, is_empty, named, shown
from shapefix.checks.support.syntax import holds
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, Fix
from shapefix.domains.operations import Broadcast, ReducedToScalar
from shapefix.interpreter.modules import called_name
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import LibraryObject
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.ops import Op
from shapefix.tensors.tensor_iterator import broadcast_sizes

_MEANT = frozenset({Op.UNSQUEEZE, Op.INDEX, Op.VIEW, Op.RESHAPE, Op.UNFLATTEN, Op.SLICE, Op.EXPAND})
"""Steps that add a dimension of size 1, for an intended broadcast."""
_SEEN = _MEANT | {
    Op.VIEW_AS_REAL,
    Op.VIEW_AS_COMPLEX,
    Op.SQUEEZE,
    Op.TRANSPOSE,
    Op.PERMUTE,
    Op.MOVEDIM,
    Op.FLATTEN,
    Op.TO_DTYPE,
    Op.TO,
    Op.TENSOR,
    Op.TRIANGLE,
    Op.CONTIGUOUS,
}
_REPEATED = (_MEANT - {Op.VIEW, Op.RESHAPE}) | {Op.REDUCTION, Op.CREATION}
"""Steps to a size of 1 that is meant to be repeated: a mean that keeps its dimension, one row for all."""
_FURTHEST = 12
_FILLED = frozenset({"ones", "zeros", "full"})
"""Functions making a tensor of one number."""


@rule("SF509", on=Broadcast)
def silent_broadcast(event: Broadcast, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if _is_meant(event) or any(is_empty(operand) for operand in event.operands):
        return
    if event.undecided:
        return
    summed = None
    if event.result is not None:
        summed = _summed(event.result, context)
        is_comparison = event.function.rpartition(".")[2] in ("eq", "ne", "not_equal")
        if summed is None or not (is_comparison or _is_predicted(event.operands[event.longer].tensor)):
            return
        if _is_mean(summed) and any(_is_of_one_number(operand.tensor) for operand in event.operands):
            # Each prediction meets the same number: the mean of all pairs is that of the right ones.
            return
    one, two = event.operands
    if one.layout is None or two.layout is None:
        return
    try:
        sizes = broadcast_sizes(one.layout.sizes, two.layout.sizes)
    except ShapeError:
        return
    longer = event.operands[event.longer].layout
    assert longer is not None
    code = abbreviate(event.place.module.code(event.place.node))
    both = f"({', '.join(map(context.concrete, sizes))})"
    compared = f"{shown(one, context)} with {shown(two, context)}"
    evidence = [
        *call_trace(event),
        *made_at(event.layer),
        *shape_trace(one.tensor, context),
        *shape_trace(two.tensor, context),
        Evidence(event.place.span, f"{named(event, 0)} and {named(event, 1)} broadcast to {both}"),
    ]
    if summed is not None:
        evidence.append(Evidence(summed.place.span, "all elements are reduced here"))
    yield rule.diagnostic(
        event.place.span,
        f"`{code}` compares {compared}: both are broadcast to {both}",
        condition=None if event.is_repeated else context.condition(longer.sizes[: event.dim]),
        evidence=evidence,
        fixes=_fixes(event),
    )


def _is_meant(event: Broadcast) -> bool:
    """Whether the dimension was added for this comparison, or both operands come from one tensor."""
    step = event.operands[event.longer].tensor.origin
    if event.is_repeated:
        return _is_repeated_on_purpose(event.operands[event.longer].tensor) or _is_of_one_tensor(event)
    if step is not None and step.op in _MEANT and holds(event.place.node, step.place.node):
        return True
    return _is_of_one_tensor(event)


def _is_repeated_on_purpose(tensor: TensorValue) -> bool:
    """Whether a size of 1 may be meant to be repeated: of a mean, or of one row for all."""
    steps = _steps(tensor)
    made = next((at for at, step in enumerate(steps) if isinstance(step.producer, LibraryObject)), len(steps))
    return not steps or any(step.op in _REPEATED for step in steps[:made])


def _is_of_one_tensor(event: Broadcast) -> bool:
    one, two = (_seen_from(operand.tensor) for operand in event.operands)
    return one is not None and one is two


def _seen_from(tensor: TensorValue) -> LayoutStep | None:
    """Return the step computing the values of a tensor, before views and casts."""
    step = tensor.origin
    while step is not None and step.source is not None and step.op in _SEEN:
        step = step.source
    return step


def _steps(tensor: TensorValue) -> list[LayoutStep]:
    found: list[LayoutStep] = []
    step = tensor.origin
    while step is not None and len(found) < _FURTHEST:
        found.append(step)
        step = step.source
    return found


def _is_predicted(tensor: TensorValue) -> bool:
    """Whether a layer, or a model, computed the tensor."""
    return any(
        isinstance(step.producer, LibraryObject) or step.op is Op.MODULE_CALL for step in _steps(tensor)
    )


def _summed(result: TensorValue, context: CheckContext) -> ReducedToScalar | None:
    """Return the reduction of all elements of the result, by sum or mean."""
    for other in context.events:
        if isinstance(other, ReducedToScalar) and result.origin in _steps(other.tensor):
            return other
    return None


def _is_mean(reduction: ReducedToScalar) -> bool:
    return called_name(reduction.place.node) == "mean"


def _is_of_one_number(tensor: TensorValue) -> bool:
    """Whether all elements of a tensor are equal: `torch.ones(n)`."""
    step = _seen_from(tensor)
    if step is None or step.op is not Op.CREATION or tensor.storage.is_written:
        return False
    return called_name(step.place.node).removeprefix("new_").removesuffix("_like") in _FILLED


def _fixes(event: Broadcast) -> Iterator[Fix]:
    if event.is_repeated:
        text = f"give both the same sizes: {named(event, event.longer)} has size 1 in dimension {event.dim}"
        yield Fix(Applicability.DISPLAY, text, ())
        return
    target = code_of(event, 1)
    if target is None:
        return
    method = f"unsqueeze({event.dim})" if event.longer == 0 else f"squeeze({event.dim})"
    edit = rewrites.method_called(event.place.module, target, method)
    text = f"compare each prediction with its own target: `.{method}`"
    yield Fix(Applicability.UNSAFE, text, (edit,))
