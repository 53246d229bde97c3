"""Steps for clamping a loss or replacing its nan before the backward pass."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support.rewrites import argument, without_statement
from shapefix.checks.support.syntax import enclosing
from shapefix.diagnostics import Applicability, Edit, Fix
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import LayoutStep
from shapefix.tensors.ops import Op

_SAME_NUMBER = frozenset({Op.GRAD_SCALE, Op.MUL, Op.DIV, Op.TO_DTYPE, Op.TO, Op.TENSOR})
"""Steps that only scale one number, or change its dtype."""


_CLAMPS = frozenset({Op.CLAMP, Op.CLAMP_MAX})


def clamping_step(step: LayoutStep | None) -> LayoutStep | None:
    """Return the step clamping the loss before the backward pass, or None."""
    while step is not None:
        if step.op in _CLAMPS or step.op is Op.NAN_TO_NUM:
            return step
        if step.op not in _SAME_NUMBER:
            return None
        step = step.source
    return None


def _position(node: cst.Call) -> int:
    """Return the number of arguments before the bounds: 1 for a function, the tensor itself."""
    return 0 if _receiver(node) is not None else 1


def _receiver(node: cst.Call) -> cst.BaseExpression | None:
    """Return `loss` of `loss.clamp(max=10)`, and None for `torch.clamp(loss, max=10)`."""
    if not isinstance(node.func, cst.Attribute):
        return None
    owner = node.func.value
    return None if isinstance(owner, cst.Name) and owner.value in ("torch", "th") else owner


def has_upper_bound(node: cst.Call, op: Op) -> bool:
    shift = _position(node) + (0 if op is Op.CLAMP_MAX else 1)
    given = argument(node, shift, "max")
    return given is not None and not (isinstance(given.value, cst.Name) and given.value.value == "None")


def without_clamp(place: Place, node: cst.Call) -> Iterator[Fix]:
    """Suggest the loss without its clamp."""
    first = argument(node, 0, "input") if _receiver(node) is None else None
    loss = first.value if first is not None else _receiver(node)
    if loss is None:
        return
    code = place.module.code(loss)
    statement = next(
        (each for each in reversed(enclosing(place.module, node)) if isinstance(each, cst.Assign)), None
    )
    edit: Edit | None = Edit(place.span, code)
    if statement is not None and statement.value is node and len(statement.targets) == 1:
        if place.module.code(statement.targets[0].target) == code:
            # `loss = loss.clamp(max=10)`
            edit = without_statement(Place(place.module, statement))
    if edit is not None:
        yield Fix(Applicability.UNSAFE, "remove the clamp: compute gradients of the loss itself", (edit,))
