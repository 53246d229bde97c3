"""Reports of predictions and targets broadcast against each other."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.operations import Broadcast, ReducedToScalar
from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.library.rejections import may_not_reach, operands_in
from shapefix.tensors.losses import extra_dimension
from shapefix.tensors.ops import Op

COMPARING = frozenset({Op.EQ, Op.NE, Op.SUB})
"""Elementwise operations that measure how far predictions are from targets."""
_MOST_STEPS = 6
"""Maximum number of operations between a comparison and its sum."""


def note_broadcast(
    call: Call,
    function: str,
    operands: Mapping[str, Value],
    *,
    layer: Value | None = None,
    result: TensorValue | None = None,
) -> None:
    """Report a dimension of size 1 in one operand, missing in the other one."""
    found = operands_in(operands, 3)
    if len(found) != 2 or not all(operand.tensor.certain for operand in found):
        return
    one, two = (operand.layout for operand in found)
    if one is None or two is None or one.rank == two.rank:
        return
    longer, shorter = (one, two) if one.rank > two.rank else (two, one)
    dim = extra_dimension(longer.sizes, shorter.sizes)
    if dim is None:
        return
    call.ev.emit(
        Broadcast(
            call.place,
            call.ev.calls,
            function,
            layer,
            tuple(operands),
            tuple(found),
            call.ev.function,
            any(may_not_reach(call.ev, operand.tensor) for operand in found),
            0 if longer is one else 1,
            dim,
            result,
        )
    )


def note_whole_reduction(call: Call, tensor: TensorValue) -> None:
    """Report a full reduction of a tensor computed from a comparison."""
    step = tensor.origin
    for _ in range(_MOST_STEPS):
        if step is None:
            return
        if step.op in COMPARING:
            call.ev.emit(ReducedToScalar(call.place, call.ev.calls, tensor))
            return
        step = step.source
