"""Reports of predictions and targets broadcast against each other."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.operations import Broadcast, ReducedToScalar
from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.library.rejections import may_not_reach, operands_in
from shapefix.tensors.losses import extra_dimension, repeated_dimension
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
    """Report a dimension of size 1 in one operand, missing in the other one.

    For a loss, without a result, report also an operand repeated along such a dimension.
    """
    found = operands_in(operands, 3)
    if len(found) != 2 or not all(operand.tensor.certain for operand in found):
        return
    one, two = (operand.layout for operand in found)
    if one is None or two is None or (one.rank == two.rank and result is not None):
        return
    repeated = repeated_dimension(one.sizes, two.sizes)
    if repeated is not None:
        number, dim = repeated
    else:
        number = 0 if one.rank > two.rank else 1
        longer, shorter = (one, two) if number == 0 else (two, one)
        extra = extra_dimension(longer.sizes, shorter.sizes)
        if extra is None:
            return
        dim = extra
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
            number,
            dim,
            result,
            is_repeated=repeated is not None,
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
