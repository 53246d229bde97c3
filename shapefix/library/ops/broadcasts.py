"""Telling the checks that predictions and targets are broadcast against each other."""

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
"""Elementwise operations that tell how far predictions are from targets."""
_MOST_STEPS = 6
"""How many operations stand between a comparison and the sum of it, at most."""


def note_broadcast(
    call: Call,
    function: str,
    operands: Mapping[str, Value],
    *,
    layer: Value | None = None,
    result: TensorValue | None = None,
) -> None:
    """Tell the checks where one of two operands has a dimension of size 1 that the other one lacks."""
    found = operands_in(operands)
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
    """Tell the checks that all of a tensor is summed up which a comparison went before."""
    step = tensor.origin
    for _ in range(_MOST_STEPS):
        if step is None:
            return
        if step.op in COMPARING:
            call.ev.emit(ReducedToScalar(call.place, call.ev.calls, tensor))
            return
        step = step.source
