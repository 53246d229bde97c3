"""Texts for tensors rejected by torch: their code and their sizes."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.describe import SHORT
from shapefix.checks.support.rewrites import argument
from shapefix.checks.support.wording import abbreviate
from shapefix.domains.devices import DeviceMismatch
from shapefix.domains.operations import Broadcast
from shapefix.interpreter.events import Operand, OpRejected
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.errors import ShapeError, WrongNumberOfElements
from shapefix.tensors.polynomials import Size


def is_unlikely(event: OpRejected) -> bool:
    """Whether the call is in a branch testing its arguments, or gets an empty tensor.

    The tensor came from outside, through this call. It is unknown if this call takes the branch, and code
    often tests sizes before their use. Empty tensors usually do not reach the call.
    """
    found_empty = any(is_empty(operand) for operand in event.operands)
    return event.undecided or found_empty or _asks_for_nothing(event.error)


def is_empty(operand: Operand) -> bool:
    """Whether an operand is known to have no elements."""
    return operand.layout is not None and any(size.value == 0 for size in operand.layout.sizes)


def is_drawn(tensor: TensorValue) -> bool:
    """Whether the numbers of a tensor are random numbers: its extremes may be among them."""
    return tensor.extremes is not None and tensor.extremes.drawn


def contains(tensor: TensorValue) -> str:
    """Verb for a number of a tensor: certain, or only possible for random numbers."""
    return "may contain" if is_drawn(tensor) else "contains"


def _asks_for_nothing(error: ShapeError) -> bool:
    return isinstance(error, WrongNumberOfElements) and any(size.value == 0 for size in error.target)


def code_of(event: OpRejected | Broadcast | DeviceMismatch, operand: int) -> cst.BaseExpression | None:
    """Return the expression of an operand, or None if it has no code of its own."""
    node = event.place.node
    if isinstance(node, cst.BinaryOperation):
        return (node.left, node.right)[operand] if operand < 2 else None
    if isinstance(node, cst.AugAssign):
        return (node.target, node.value)[operand] if operand < 2 else None
    if isinstance(node, cst.Comparison) and operand < 2:
        return (node.left, node.comparisons[0].comparator)[operand]
    if isinstance(node, cst.Subscript):
        return _index_code(event, node) if operand else node.value
    if not isinstance(node, cst.Call) or operand >= len(event.operands) or made_inside(event, operand):
        return None
    name = event.operands[operand].name
    if isinstance(node, (cst.Tuple, cst.List)):
        return None
    if name == "self":
        if not isinstance(node.func, cst.Attribute):
            return None
        is_method = event.function.startswith("torch.Tensor.")
        return node.func.value if is_method else node.args[0].value if node.args else None
    position = int(name) if name.isdigit() else _position(event, name)
    given = argument(node, position, name)
    if given is None:
        return None
    together = [each for each in event.operands if each.name == name]
    if len(together) > 1:
        items = given.value.elements if isinstance(given.value, (cst.List, cst.Tuple)) else ()
        place = together.index(event.operands[operand])
        return items[place].value if len(items) == len(together) else None
    return given.value


def _index_code(
    event: OpRejected | Broadcast | DeviceMismatch, node: cst.Subscript
) -> cst.BaseExpression | None:
    """Return the index of `x[index]`, if it is a single one."""
    only = node.slice[0].slice if len(node.slice) == 1 else None
    is_index = event.function == "operator.getitem" and isinstance(only, cst.Index)
    return only.value if is_index and isinstance(only, cst.Index) else None


def made_inside(event: OpRejected | Broadcast | DeviceMismatch, operand: int) -> bool:
    """Whether the rejecting call itself computed the operand: a library's model runs its layers in turn."""
    origin = event.operands[operand].tensor.origin
    return origin is not None and origin.place.node is event.place.node


def _position(event: OpRejected | Broadcast | DeviceMismatch, name: str) -> int:
    """Return the position of a parameter in a call."""
    names = list(dict.fromkeys(operand.name for operand in event.operands))
    given = list(event.given) if event.given else names
    return given.index(name) if name in given else 99


def named(event: OpRejected | Broadcast | DeviceMismatch, operand: int) -> str:
    """Return an operand's code in backticks, or "the input" if it has no code of its own."""
    node = code_of(event, operand)
    return "the input" if node is None else f"`{abbreviate(event.place.module.code(node))}`"


def shown(operand: Operand, context: CheckContext) -> str:
    """Return a tensor as `f32[256, 20, 4000]`, with ? for an unknown dtype, and ... for an unknown rank."""
    dtype = SHORT.get(operand.tensor.dtype or "", operand.tensor.dtype or "")
    if operand.layout is not None:
        return f"{dtype}[{', '.join(map(context.concrete, operand.layout.sizes))}]"
    last = operand.tensor.known_size(-1)
    return f"{dtype}[..., {context.text(last)}]" if last is not None else f"{dtype}[...]"


def product_text(sizes: tuple[Size, ...], context: CheckContext) -> str:
    """Return `64 * 7 * 7` for the sizes merged by a flatten."""
    return " * ".join(
        context.text(size) if len(size.terms) == 1 else f"({context.text(size)})" for size in sizes
    )
