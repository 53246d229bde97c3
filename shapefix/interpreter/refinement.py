"""Facts of a tensor implied by its use in the code."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Operand, OpRejected
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Integer, Value
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import contiguous, unknown_strides
from shapefix.tensors.polynomials import Size


def refine_rank(ev: Evaluator, tensor: TensorValue, new: Sequence[Size]) -> tuple[Size, ...]:
    """Assume that tensor has as many dimensions as there are new sizes, each used if its own is unknown."""
    if tensor.layout is None:
        rank = len(new)
        sizes = [
            tensor.known_size(dim) or tensor.known_size(dim - rank) or size for dim, size in enumerate(new)
        ]
        layout = contiguous(sizes) if tensor.contiguous else unknown_strides(sizes)
        ev.journal.write(tensor, "layout", layout)
        return tuple(sizes)
    return tensor.layout.sizes


def name_size(ev: Evaluator, value: Value, name: str) -> None:
    """Use the user's name of a size in messages, unless it has one already.

    `slen` for (T - 8) // 8 + 1 names the quotient slen - 1, so that it is found again in other sizes.
    """
    if isinstance(value, Integer) and value.size.value is None and name:
        constant = value.size.terms.get((), 0)
        symbol = (value.size - constant).only_symbol
        if symbol is not None and symbol.name not in ev.frame.scope.names:
            ev.symbol_names.setdefault(symbol, Size.symbol(name) - constant)


def target_name(node: cst.CSTNode) -> str:
    """Name of an assignment target: `B`, or `b` of `self.b`; empty for `_`."""
    if isinstance(node, cst.Name):
        return "" if set(node.value) == {"_"} else node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return ""


def reject_sizes(
    ev: Evaluator, node: cst.CSTNode, function: str, name: str, tensor: TensorValue, error: ShapeError
) -> None:
    """Report that the code at node raises over the sizes of a tensor, its operand of this name."""
    made_in = None if tensor.origin is None else tensor.origin.function
    operand = Operand(name, tensor, tensor.layout)
    event = OpRejected(
        ev.place(node),
        ev.calls,
        function,
        None,
        (name,),
        (operand,),
        ev.function,
        ev.may_not_reach(made_in),
        {},
        error,
    )
    ev.emit(event)
