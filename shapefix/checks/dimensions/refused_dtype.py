"""SF512: dtypes rejected by a layer, a loss or a product."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, made_at
from shapefix.checks.support.loss_calls import is_by_class, loss_code
from shapefix.checks.support.operands import code_of, is_unlikely, named, shown
from shapefix.checks.support.syntax import enclosing_function
from shapefix.checks.support.torch_errors import dtype_error
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.domains.gradients import lineage
from shapefix.domains.losses import LossComputed
from shapefix.domains.training import Backward
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import Place, called_name, dotted_name, nodes
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue, requires_grad
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.errors import WrongDtype
from shapefix.tensors.ops import NORMALIZATIONS, PRODUCTS, SOFTMAXES, Op

_CASTS = {
    "float32": "float()",
    "float64": "double()",
    "float16": "half()",
    "bfloat16": "bfloat16()",
    "int64": "long()",
}
_OF_ONE_DTYPE = frozenset({"torch.nn.HuberLoss", "torch.nn.functional.huber_loss"})
"""Losses whose backward needs one dtype for both, unlike their forward."""
_HALVES = frozenset({"float16", "bfloat16"})
_CASTS_OF_ARRAYS = frozenset(
    {Op.FROM_NUMPY, Op.NUMPY_CONVERSION, Op.TENSOR, Op.TO_DTYPE, Op.TO, Op.ONE_HOT, Op.CREATION}
)
_CONVERSIONS = frozenset(
    {"astype", "to", "type", "FloatTensor", "one_hot", *(cast[:-2] for cast in _CASTS.values())}
)
_FARTHEST = 60
_OF_ANOTHER_LOSS = (
    "class ids have one dimension less than the scores; for targets like the scores, use a loss such as "
    "BCEWithLogitsLoss or MSELoss"
)


@rule("SF512", on=OpRejected)
def refused_dtype(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    error = event.error
    if not isinstance(error, WrongDtype) or is_unlikely(event) or error.operand >= len(event.operands):
        return
    operand = event.operands[error.operand]
    if event.function.startswith("torch.Tensor.") and not operand.tensor.certain:
        # An array of numpy has methods of these names, too.
        return
    reason = _reason(event, error)
    given = shown(operand, context)
    if given.startswith("["):
        given = f"{error.have} {given}"
    yield rule.diagnostic(
        event.place.span,
        f"`{loss_code(event)}` gets {given}: {reason}",
        error=dtype_error(event, error),
        evidence=[
            *call_trace(event),
            *made_at(event.layer),
            *_origins(operand.tensor),
            Evidence(event.place.span, f"{named(event, error.operand)} is {error.have} here: {reason}"),
        ],
        fixes=_fixes(event, error),
    )


@rule("SF512", on=Backward, reads=(LossComputed,))
def refused_in_backward(event: Backward, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report a loss of two dtypes, rejected in its backward only."""
    loss = event.loss
    if not isinstance(loss, TensorValue):
        return
    steps = {each.origin.place.node for each in lineage(loss) if each.origin is not None}
    for computed in context.events:
        if not isinstance(computed, LossComputed) or computed.place.node not in steps:
            continue
        scores, target = computed.given.get("input"), computed.given.get("target")
        if computed.function not in _OF_ONE_DTYPE or not isinstance(target, TensorValue):
            continue
        if not isinstance(scores, TensorValue) or (scores.dtype, target.dtype) != ("float32", "float64"):
            continue
        if not requires_grad(scores):
            continue
        name = computed.function.rpartition(".")[2]
        reason = "the prediction is float32, and its gradient would be float64"
        node = computed.place.node
        given = rewrites.argument(node, 1, "target") if isinstance(node, cst.Call) else None
        module = computed.place.module
        fixes = (
            [
                Fix(
                    Applicability.UNSAFE,
                    "convert to float32: `.float()`",
                    (rewrites.method_called(module, given.value, "float()"),),
                )
            ]
            if given is not None
            else []
        )
        yield rule.diagnostic(
            computed.place.span,
            f"`{name}` gets a target that is float64: {reason}",
            error=ExpectedError("RuntimeError", "Found dtype Double but expected Float"),
            evidence=[
                *call_trace(computed),
                *_origins(target),
                Evidence(computed.place.span, f"the target is float64 here: {reason}"),
                Evidence(event.place.span, "torch raises in the backward"),
            ],
            fixes=fixes,
        )


def _reason(event: OpRejected, error: WrongDtype) -> str:
    wanted = error.want[0] if len(error.want) == 1 else "a floating dtype"
    if error.weight:
        return f"its weights are {error.want[0]}" if len(error.want) == 1 else "its weights are floating"
    if error.other is not None and error.other < len(event.operands):
        return f"{named(event, error.other)} is {wanted}, and both must have the same dtype"
    if is_by_class(event.function) and error.operand == 1:
        if "int64" in error.want:
            return f"class ids must be int64, not {error.have}"
        return "it expects class probabilities"
    if "int64" in error.want:
        return f"indices must be int64, not {error.have}"
    return f"it expects {wanted}, not {error.have}"


def _origins(tensor: TensorValue) -> Iterator[Evidence]:
    """Yield the first step of the tensor with its dtype, and the last step."""
    step = tensor.origin
    if step is None:
        return
    for each in dict.fromkeys((_with_dtype(step), step)):
        yield Evidence(each.place.span, f"{each.text} here{_like_its_value(each.place)}")


def _with_dtype(step: LayoutStep) -> LayoutStep:
    """Return the last step with a stated dtype; the first one without any."""
    left = _FARTHEST
    before: LayoutStep | None = step
    while before is not None and left:
        if before.op in _CASTS_OF_ARRAYS and _states_dtype(before.place.node):
            return before
        before, left = before.source, left - 1
    return step.first


def _states_dtype(node: cst.CSTNode) -> bool:
    """Whether a call has an argument `dtype`, or is a conversion: `.astype(...)`, `.float()`."""
    if not isinstance(node, cst.Call):
        return False
    is_stated = any(each.keyword is not None and each.keyword.value == "dtype" for each in node.args)
    return is_stated or called_name(node) in _CONVERSIONS


def _like_its_value(place: Place) -> str:
    """Return why `torch.full(size, 1)` has a dtype of integers; "" for other code."""
    return ": `full` takes the dtype of its fill value" if _fill_value(place) is not None else ""


def _fill_value(place: Place) -> cst.Arg | None:
    """Return the fill value of `torch.full(size, 1)` without a dtype."""
    node = place.node
    if not isinstance(node, cst.Call) or dotted_name(node.func).rpartition(".")[2] != "full":
        return None
    has_dtype = any(each.keyword is not None and each.keyword.value == "dtype" for each in node.args)
    return None if has_dtype else rewrites.argument(node, 1, "fill_value")


def _filled_with_floats(event: OpRejected, operand: cst.BaseExpression) -> Edit | None:
    """Fill with 1.0 instead of 1, for a variable used only as an argument of the refusing function."""
    step, call, module = event.operands[1].tensor.origin, event.place.node, event.place.module
    if step is None or step.first.place.module is not module:
        return None
    made = step.first.place
    given = _fill_value(made)
    if given is None or not isinstance(given.value, cst.Integer) or not isinstance(call, cst.Call):
        return None
    function = enclosing_function(event.place)
    name = next((each.value for each in nodes(operand) if isinstance(each, cst.Name)), "")
    scope = module.tree if function is None else function
    uses = [each for each in nodes(scope) if isinstance(each, cst.Name) and each.value == name]
    inside = {
        id(each)
        for node in nodes(scope)
        if isinstance(node, cst.Call) and module.code(node.func) == module.code(call.func)
        for argument in node.args
        for each in nodes(argument.value)
    }
    assigned = [
        target.target
        for node in nodes(scope)
        if isinstance(node, cst.Assign) and node.value is made.node
        for target in node.targets
    ]
    others = [each for each in uses if id(each) not in inside and not any(each is one for one in assigned)]
    if len(assigned) != 1 or others:
        return None
    return Edit(module.span(given.value), f"{given.value.value}.0")


def _fixes(event: OpRejected, error: WrongDtype) -> Iterator[Fix]:
    node = code_of(event, error.operand)
    origin = event.operands[error.operand].tensor.origin
    if node is None or (origin is not None and origin.place.node is event.place.node):
        return
    wanted = "int64" if "int64" in error.want else "float32" if "float32" in error.want else error.want[0]
    method = _CASTS.get(wanted)
    if method is None:
        return
    edit = rewrites.method_called(event.place.module, node, method)
    halves = {error.have, *error.want[:1]} & _HALVES and len(error.want) == 1
    if halves and is_floating(error.have):
        text = f"`.{method}` here, or `.to(torch.{error.have})` for the other side, or torch.autocast"
        yield Fix(Applicability.DISPLAY, text, (edit,))
    elif error.weight and error.have == "int64":
        text = f"`.{method}` for numbers, or a layer such as nn.Embedding for ids"
        yield Fix(Applicability.DISPLAY, text, (edit,))
    elif wanted == "int64" and _has_size_of_scores(event, error):
        yield Fix(Applicability.DISPLAY, _OF_ANOTHER_LOSS, ())
    elif wanted == "int64" and is_floating(error.have) and _is_measured(event.operands[error.operand].tensor):
        yield Fix(Applicability.DISPLAY, "pass whole numbers; these are the results of a computation", ())
    elif error.have == "bool" and wanted == "int64" and not is_by_class(event.function):
        yield Fix(Applicability.DISPLAY, "pass indices; True and False would be the indices 1 and 0", ())
    else:
        filled = _filled_with_floats(event, node) if wanted == "float32" and error.operand == 1 else None
        if filled is not None:
            yield Fix(Applicability.SAFE, f"fill with a float: `{filled.content}`", (filled,))
            return
        safe = _is_safe(error, wanted)
        yield Fix(
            Applicability.SAFE if safe else Applicability.UNSAFE, f"convert to {wanted}: `.{method}`", (edit,)
        )


_OF_MEASURES = NORMALIZATIONS | PRODUCTS | SOFTMAXES | {Op.DIV, Op.SQRT, Op.LOG, Op.EXP, Op.IMAGE_NORMALIZE}
"""Operations whose results are hardly ever whole."""


def _is_measured(tensor: TensorValue) -> bool:
    """Whether the numbers of a tensor are computed: a cast to integers would lose them."""
    step, left = tensor.origin, _FARTHEST
    while step is not None and left:
        if step.op in _OF_MEASURES:
            return True
        step, left = step.source, left - 1
    return False


def _has_size_of_scores(event: OpRejected, error: WrongDtype) -> bool:
    """Whether the targets of a loss of class ids have a number for each class: no ids in any dtype."""
    if error.operand != 1 or not is_by_class(event.function):
        return False
    scores, targets = (each.tensor.layout for each in event.operands[:2])
    return scores is not None and targets is not None and scores.rank == targets.rank > 1


def _is_safe(error: WrongDtype, wanted: str) -> bool:
    """Whether the cast keeps all values, and is the only plausible repair."""
    if wanted == "int64":
        return not is_floating(error.have)
    return error.operand == 1 and not is_floating(error.have) and not error.weight
