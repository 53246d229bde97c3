"""Events of tensor operations: views, writes, broadcasts."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.gradients import is_leaf
from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event, OperationEvent
from shapefix.interpreter.tensor_values import TensorValue, is_same_device
from shapefix.interpreter.values import Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import Size
from shapefix.tensors.verdicts import ViewVerdict


@dataclass(frozen=True, eq=False, slots=True)
class InPlaceWrite(Event):
    """A write into the memory of a tensor: `x += 1`, `x[mask] = 0`, `x.add_(1)`.

    layout is the tensor's at that moment, subject is its expression in the code. shared is the
    first dimension along which several written elements share one address, None if there is no
    such dimension; refused is whether torch raises then, or the write changes all of them.
    """

    tensor: TensorValue
    layout: Layout | None
    subject: cst.CSTNode | None
    shared: int | None = None
    refused: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Viewed(Event):
    """`.view`, `.view_as` or `.reshape` of a tensor of known rank, and the verdict of torch on it.

    layout is the tensor's at that moment; target holds the requested sizes, the -1 already resolved, and
    stated counts the sizes in the code. function is the running one; undecided is whether the call is in a
    branch of it that may never be taken. free is True for `torch.reshape(x, …)`.
    """

    call: cst.CSTNode
    method: str
    tensor: TensorValue
    layout: Layout
    target: tuple[Size, ...]
    verdict: ViewVerdict
    result: TensorValue
    function: cst.CSTNode | None
    undecided: bool
    stated: int
    free: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Broadcast(OperationEvent):
    """Loss of two tensors of the same sizes, except for one dimension of size 1 in only one of them.

    Each is repeated along a dimension of the other, which is never meant for predictions and targets. longer
    is the number of the operand with the additional dimension dim. With is_repeated, both have it, and
    longer is the number of the operand with size 1.
    """

    longer: int
    dim: int
    result: TensorValue | None
    is_repeated: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ReducedToScalar(Event):
    """Sum or mean of all elements of a tensor computed by elementwise operations."""

    tensor: TensorValue


@hooks.set_attribute
def _set_data(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    """Apply `x.data = y`: x gets the layout of y."""
    if name == "data" and isinstance(owner, TensorValue):
        ev.journal.write(owner, "layout", value.layout if isinstance(value, TensorValue) else None)
        owner.clear_sizes()


@dataclass(frozen=True, eq=False, slots=True)
class Discarded(Event):
    """Expression statement with an unused result: the call, its qualified function, receiver and result.

    name is the variable at the start of the chain of methods, `y` of `y.permute(0, 2, 1).contiguous()`; None
    for any other start. held is the tensor in that variable, leaf is whether it was certainly made a leaf, so
    that gradients flow to it, and no further. alike is whether the result has the sizes, dtype and device of
    that tensor.
    """

    call: cst.Call
    function: str
    receiver: Value
    result: Value
    name: str | None
    held: TensorValue | None
    leaf: bool
    alike: bool


@hooks.discard
def _note_discarded(
    ev: Evaluator,
    node: cst.Expr,
    call: cst.Call,
    function: str,
    receiver: Value,
    result: Value,
    name: str | None,
    held: TensorValue | None,
) -> None:
    leaf = held is not None and is_leaf(ev, held)
    alike = held is not None and isinstance(result, TensorValue) and _are_alike(held, result)
    ev.emit(Discarded(ev.place(node), ev.calls, call, function, receiver, result, name, held, leaf, alike))


def _are_alike(one: TensorValue, other: TensorValue) -> bool:
    """Whether two tensors have the same known sizes and dtype, and are not on two devices."""
    if one.layout is None or other.layout is None or one.dtype is None or one.dtype != other.dtype:
        return False
    on_same = one.device is other.device or is_same_device(one.device, other.device)
    return on_same and one.layout.sizes == other.layout.sizes
