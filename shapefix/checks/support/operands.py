"""What a finding says of the tensors that torch refuses: their code, their sizes, the way they came."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.layout.view_across_stride_gap import short
from shapefix.checks.support.describe import SHORT
from shapefix.checks.support.evidence import LONGEST, calls
from shapefix.checks.support.rewrites import argument
from shapefix.diagnostics import Evidence
from shapefix.interpreter.events import Broadcast, DeviceMismatch, Operand, OpRejected
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.tensors.errors import ShapeError, WrongNumberOfElements
from shapefix.tensors.polynomials import Size


def is_unlikely(event: OpRejected) -> bool:
    """Whether the call stands in a branch that looks at what it was handed, or gets an empty tensor.

    The tensor came in from outside, through this call; whether the branch is taken in this call nobody knows,
    and people do ask for sizes before they use them. What is empty was mostly never meant to come here.
    """
    found_empty = any(is_empty(operand) for operand in event.operands)
    return event.undecided or found_empty or _asks_for_nothing(event.error)


def is_empty(operand: Operand) -> bool:
    """Whether an operand is known to have no elements."""
    return operand.layout is not None and any(size.value == 0 for size in operand.layout.sizes)


def _asks_for_nothing(error: ShapeError) -> bool:
    return isinstance(error, WrongNumberOfElements) and any(size.value == 0 for size in error.target)


def code_of(event: OpRejected | Broadcast | DeviceMismatch, operand: int) -> cst.BaseExpression | None:
    """The expression that the code has for an operand; None where there is none of its own."""
    node = event.place.node
    if isinstance(node, cst.BinaryOperation):
        return (node.left, node.right)[operand] if operand < 2 else None
    if isinstance(node, cst.AugAssign):
        return (node.target, node.value)[operand] if operand < 2 else None
    if isinstance(node, cst.Comparison) and operand < 2:
        return (node.left, node.comparisons[0].comparator)[operand]
    if isinstance(node, cst.Subscript):
        return None if operand else node.value
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


def made_inside(event: OpRejected | Broadcast | DeviceMismatch, operand: int) -> bool:
    """Whether the very call that refuses an operand made it: a library's model runs its layers one by one."""
    origin = event.operands[operand].tensor.origin
    return origin is not None and origin.place.node is event.place.node


def _position(event: OpRejected | Broadcast | DeviceMismatch, name: str) -> int:
    """Where the parameter of this name stands in a call."""
    names = list(dict.fromkeys(operand.name for operand in event.operands))
    given = list(event.given) if event.given else names
    return given.index(name) if name in given else 99


def named(event: OpRejected | Broadcast | DeviceMismatch, operand: int) -> str:
    """What the code calls an operand, between backticks; "the input" where it has no words of its own."""
    node = code_of(event, operand)
    return "the input" if node is None else f"`{short(event.place.module.code(node))}`"


def shown(operand: Operand, run: CheckContext) -> str:
    """A tensor as `f32[256, 20, 4000]`, with ? for an unknown dtype; `f32[..., 128]` for an unknown rank."""
    dtype = SHORT.get(operand.tensor.dtype or "", operand.tensor.dtype or "")
    if operand.layout is not None:
        return f"{dtype}[{', '.join(map(run.text, operand.layout.sizes))}]"
    last = operand.tensor.known_size(-1)
    return f"{dtype}[..., {run.text(last)}]" if last is not None else f"{dtype}[...]"


def way(tensor: TensorValue, run: CheckContext) -> list[Evidence]:
    """How the tensor came to its sizes: the last steps at which they changed, from the first of them on."""
    steps: list[LayoutStep] = []
    step = tensor.origin
    while step is not None and len(steps) < 40:
        steps.append(step)
        step = step.source
    found: list[Evidence] = []
    before: object = None
    for step in reversed(steps):
        sizes = None if step.layout is None else step.layout.sizes
        if sizes is not None and sizes != before:
            producer = f" by `{layer_code(step.producer)}`" if layer_code(step.producer) else ""
            found.append(Evidence(step.place.span, f"{step.text}{producer} here: {run.shape(sizes)}"))
        before = sizes
    return found[-LONGEST:]


def approach(event: OpRejected, run: CheckContext) -> list[Evidence]:
    """The calls that lead to a layer, where it is made, and how its input came to its sizes."""
    came = way(event.operands[0].tensor, run) if event.operands else []
    return [*calls(event), *made_at(event.layer), *came]


def layer_code(layer: Value | None) -> str:
    """The code that made a layer, `nn.Linear(271, 256)`; empty where it is not known."""
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return ""
    return short(layer.place.code)


def made_at(layer: Value | None) -> Iterator[Evidence]:
    """Where a layer is made."""
    if isinstance(layer, LibraryObject) and layer.place is not None:
        yield Evidence(layer.place.span, f"`{short(layer.place.code)}` is made here")


def product_text(sizes: tuple[Size, ...], run: CheckContext) -> str:
    """`64 * 7 * 7` for the sizes that a flatten merges."""
    return " * ".join(run.text(size) if len(size.terms) == 1 else f"({run.text(size)})" for size in sizes)
