"""SF508: predictions and targets of mismatched sizes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.conditions import combined, comparison, in_backticks
from shapefix.checks.support.evidence import call_trace, made_at, shape_trace
from shapefix.checks.support.loss_calls import is_by_class, is_loss, loss_code
from shapefix.checks.support.operands import code_of, is_unlikely, named, shown
from shapefix.checks.support.torch_errors import torch_error
from shapefix.diagnostics import Applicability, Condition, Diagnostic, Evidence, Fix
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.tensors.bounds import same
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.errors import (
    ClassesLast,
    IndexOutOfRange,
    ShapeError,
    SizeMismatch,
    WrongDtype,
    WrongRank,
)
from shapefix.tensors.losses import extra_dimension, wanted_ids
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size


@rule("SF508", on=OpRejected)
def loss_sizes(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    error = event.error
    if not is_loss(event.function) or isinstance(error, (WrongDtype, IndexOutOfRange)) or is_unlikely(event):
        return
    if len(event.operands) < 2:
        return
    given = " and ".join(shown(operand, context) for operand in event.operands[: _involved(error)])
    reason = _reason(event, context)
    unless = error.unless if isinstance(error, ClassesLast) else ()
    pairs = [(context.qualified(one), context.qualified(two), one, two) for one, two in unless]
    condition = combined(
        "or",
        [
            Condition(
                f"{in_backticks(a)} != {in_backticks(b)}",
                comparison(context.expression(one), "!=", context.expression(two)),
            )
            for a, b, one, two in pairs
        ],
    )
    yield rule.diagnostic(
        event.place.span,
        f"`{loss_code(event)}` gets {given}: {reason}",
        condition=condition,
        error=torch_error(event, context),
        evidence=[
            *call_trace(event),
            *made_at(event.layer),
            *(step for operand in event.operands[:2] for step in shape_trace(operand.tensor, context)),
            Evidence(
                event.place.span, f"{named(event, 0)} and {named(event, 1)} are compared here: {reason}"
            ),
        ],
        fixes=_fixes(event, context),
    )


def _involved(error: ShapeError) -> int:
    """Return how many operands the message shows."""
    numbers = [getattr(error, "operand", 0), getattr(error, "other", 0) or 0, 1]
    return max(numbers) + 1


def _reason(event: OpRejected, context: CheckContext) -> str:
    error = event.error
    one = event.operands[0].layout
    if isinstance(error, ClassesLast):
        return "the classes must be dimension 1, not the last one"
    if is_by_class(event.function) and one is not None and one.rank > 1:
        return f"class ids for these scores must have shape {context.shape(wanted_ids(one.sizes))}"
    if isinstance(error, WrongRank):
        wanted = " or ".join(map(str, error.want))
        plural = "" if error.have == 1 else "s"
        return f"{named(event, error.operand)} has {error.have} dimension{plural}, not {wanted}"
    if isinstance(error, SizeMismatch):
        have, want = context.text(error.have), context.text(error.want)
        return f"sizes {have} and {want} in dimension {error.dim} differ"
    return "their sizes do not match"


def _fixes(event: OpRejected, context: CheckContext) -> Iterator[Fix]:
    error = event.error
    module = event.place.module
    prediction, target = (operand.layout for operand in event.operands[:2])
    if prediction is None or target is None or len(event.operands) > 2:
        return
    scores, ids = code_of(event, 0), code_of(event, 1)
    if isinstance(error, ClassesLast):
        method = "transpose(1, 2)" if prediction.rank == 3 else "movedim(-1, 1)"
        if scores is not None:
            yield Fix(
                Applicability.UNSAFE if error.unless else Applicability.SAFE,
                "move the classes to dimension 1",
                (rewrites.method_called(module, scores, method),),
            )
        return
    wanted = prediction.sizes
    if is_by_class(event.function):
        if prediction.rank < 2:
            return
        if prediction.sizes[1].value == 1:
            yield Fix(Applicability.DISPLAY, "one score for each sample: use a binary cross entropy", ())
            return
        wanted = wanted_ids(prediction.sizes)
    if ids is not None and target.rank == len(wanted) + 1:
        dim = _extra(target.sizes, wanted)
        if dim is not None:
            yield _reshaped(event, ids, f"squeeze({dim})")
            return
        if is_by_class(event.function) and all(map(_equal, target.sizes, prediction.sizes)):
            text = "`.argmax(1)` of a one-hot target, or binary cross entropy if several classes may be true"
            yield Fix(Applicability.DISPLAY, text, ())
            return
    if ids is not None and target.rank == len(wanted) - 1 and not is_by_class(event.function):
        dim = _extra(wanted, target.sizes)
        if dim is not None:
            yield _reshaped(event, ids, f"unsqueeze({dim})")
            return
    cut = [number for number in (0, 1) if _is_cut(event.operands[number].tensor)]
    if len(cut) == 1 and isinstance(error, SizeMismatch):
        both = f"only {named(event, cut[0])} was sliced, {named(event, 1 - cut[0])} was not: slice both"
        yield Fix(Applicability.DISPLAY, both, ())


def _reshaped(event: OpRejected, node: cst.BaseExpression, method: str) -> Fix:
    edit = rewrites.method_called(event.place.module, node, method)
    dtype = event.operands[1].tensor.dtype
    # Class ids must be integers as well: the dimension is not all that is wrong with the target.
    others = is_by_class(event.function) and dtype is not None and is_floating(dtype)
    safety = Applicability.UNSAFE if others else Applicability.SAFE
    return Fix(safety, f"give the target the dimensions of the prediction: `.{method}`", (edit,))


def _equal(one: Size, two: Size) -> bool:
    return same(one, two) is True


def _extra(longer: tuple[Size, ...], shorter: tuple[Size, ...]) -> int | None:
    """Return the dimension of size 1 missing in shorter."""
    found = extra_dimension(longer, shorter)
    if found is None and longer and longer[0].value == 1 and all(map(_equal, longer[1:], shorter)):
        return 0
    return found


def _is_cut(tensor: TensorValue) -> bool:
    """Whether a tensor was sliced before."""
    step: LayoutStep | None = tensor.origin
    for _ in range(6):
        if step is None:
            return False
        if step.op is Op.SLICE:
            return True
        step = step.source
    return False
