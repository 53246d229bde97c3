"""Python's own errors over the sizes of a tensor: `x.shape[3]`, `B, T = x.shape`."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Operand, OpRejected
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.errors import ShapeError


def refuse_sizes(
    ev: Evaluator, node: cst.CSTNode, function: str, name: str, tensor: TensorValue, error: ShapeError
) -> None:
    """Tell the checks that the code at node raises over the sizes of a tensor, its operand of this name."""
    made_in = None if tensor.origin is None else tensor.origin.function
    operand = Operand(name, tensor, tensor.layout)
    event = OpRejected(
        ev.place(node),
        ev.calls,
        function,
        None,
        {},
        (name,),
        (operand,),
        error,
        ev.function,
        ev.may_not_reach(made_in),
    )
    ev.emit(event)
