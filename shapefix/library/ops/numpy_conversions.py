"""Conversions of tensors to NumPy: rejected for a tensor with a gradient, or on a GPU.

The lists were executed with torch 2.13 and numpy 2; tests repeat it.
"""

from __future__ import annotations

import libcst as cst

from shapefix.domains.devices import NumpyOfGpu
from shapefix.domains.gradients import Gradients, NumpyOfGradient
from shapefix.interpreter.calls import Arguments, Call, before_call, call_outside
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import FALSE, Value
from shapefix.library.ops.devices import asks_for_device

OF_TENSORS = frozenset(
    f"numpy.{name}"
    for name in (
        "abs",
        "argmax",
        "argsort",
        "array",
        "asanyarray",
        "asarray",
        "ascontiguousarray",
        "average",
        "cumsum",
        "exp",
        "expand_dims",
        "isnan",
        "linalg.norm",
        "log",
        "median",
        "percentile",
        "round",
        "hstack",
        "sqrt",
        "stack",
        "transpose",
        "unique",
        "vstack",
    )
)
"""Functions that convert a tensor; they convert the tensors in a list, too."""
OF_LISTS = OF_TENSORS | {
    f"numpy.{name}"
    for name in (
        "amax",
        "amin",
        "concatenate",
        "max",
        "mean",
        "min",
        "squeeze",
        "std",
        "sum",
        "var",
    )
}
"""Functions that convert the tensors in a list."""


@before_call
def _note_method(call: Call) -> None:
    """Report `x.numpy()` of a tensor with a gradient; with force=True it detaches the tensor."""
    if call.name == "torch.Tensor.numpy" and isinstance(call.place.node, cst.Call):
        is_plain = call.value(0, "force") in (None, FALSE) and not call.arguments.open
        node = call.place.node.func
        if is_plain and isinstance(node, cst.Attribute):
            _note(call.ev, call.place.node, "torch.Tensor.numpy", node.value, call.receiver)


@call_outside
def _note_function(ev: Evaluator, name: str, arguments: Arguments, node: cst.CSTNode) -> None:
    """Report a function of NumPy with a tensor with a gradient as argument, or a list of such tensors."""
    if name not in OF_LISTS or not isinstance(node, cst.Call) or not arguments.positional:
        return
    if not node.args or node.args[0].star or node.args[0].keyword is not None:
        return
    given = arguments.positional[0]
    if isinstance(given, (ListValue, TupleValue)) or name in OF_TENSORS:
        _note(ev, node, name, node.args[0].value, given)


def _note(
    ev: Evaluator, node: cst.Call, function: str, subject: cst.BaseExpression, given: Value | None
) -> None:
    is_list = isinstance(given, (ListValue, TupleValue))
    tensor = _item(given) if is_list else given
    if not isinstance(tensor, TensorValue) or not tensor.certain:
        return
    place, device = ev.place(node), tensor.device
    is_on_gpu = device is not None and device.may_be_gpu
    # torch raises for a gradient only where gradients are recorded.
    if ev.state[Gradients].recording is not False and requires_grad(tensor):
        ev.emit(NumpyOfGradient(place, ev.calls, function, subject, tensor, is_list, is_on_gpu))
    elif device is not None and is_on_gpu and not asks_for_device(ev):
        ev.emit(NumpyOfGpu(place, ev.calls, function, subject, tensor, device, is_list))


def _item(given: Value | None) -> Value | None:
    """Return an item of a list; None for an empty or unknown one."""
    items = elements(given)
    if items:
        return items[0]
    return given.element if isinstance(given, ListValue) and items is None else None
