"""Writes into leaves of the graph: parameters, and other tensors with requires_grad.

torch rejects them while gradients are recorded; the methods were executed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from shapefix.domains.gradients import Gradients, LeafWritten, is_leaf
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import (
    Parameter,
    ParameterAttribute,
    Unknown,
    Value,
)
from shapefix.library.nn.changed_weights import LayerWeights
from shapefix.library.nn.module import modules_in
from shapefix.library.nn.training import has_trained_weights
from shapefix.tensors.ops import Op

PARAMETER_WRITES = frozenset(
    {
        "add_",
        "addcdiv_",
        "addcmul_",
        "clamp_",
        "clamp_max_",
        "clamp_min_",
        "copy_",
        "div_",
        "fill_",
        "lerp_",
        "mul_",
        "normal_",
        "random_",
        "sub_",
        "uniform_",
        "zero_",
    }
)
"""Methods that write into a parameter, and are rejected for it."""
_SEVERAL_VIEWS = frozenset({Op.SPLIT, Op.UNBIND})
"""Operations whose views torch rejects with other words."""


def note_leaf_write(
    call: Call, tensor: TensorValue, subject: cst.CSTNode | None, given: Iterable[Value]
) -> None:
    """Report a write into a certain leaf, or a view of one."""
    ev = call.ev
    if not ev.state[Gradients].recording or not tensor.certain or call.name.startswith("torch.nn.init."):
        return
    leaf = _base(tensor)
    if leaf is None or not is_leaf(ev, leaf) or not requires_grad(leaf) or not requires_grad(tensor):
        return
    if (leaf.own or leaf in ev.state[LayerWeights].layers) and ev.state[Gradients].frozen:
        return
    _emit(ev, call.place, subject, given)


def note_parameter_write(call: Call, parameter: Parameter, subject: cst.CSTNode | None) -> None:
    """Report an augmented assignment to each parameter of a module."""
    _note_parameters(call.ev, call.place, parameter.modules, subject)


@hooks.call_unknown
def _note_method(ev: Evaluator, function: Value, node: cst.CSTNode) -> None:
    """Report `p.clamp_(…)` for each parameter of a module."""
    if not isinstance(function, ParameterAttribute) or function.name not in PARAMETER_WRITES:
        return
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        _note_parameters(ev, ev.place(node), function.modules, node.func.value)


def _note_parameters(
    ev: Evaluator, place: Place, modules: frozenset[Value], subject: cst.CSTNode | None
) -> None:
    if not ev.state[Gradients].recording or ev.state[Gradients].frozen:
        return
    if all(any(has_trained_weights(ev, each) for each in modules_in(module)) for module in modules):
        _emit(ev, place, subject, ())


def _emit(ev: Evaluator, place: Place, subject: cst.CSTNode | None, given: Iterable[Value]) -> None:
    tensors = [value.tensor if isinstance(value, Unknown) else value for value in given]
    differentiated = any(isinstance(each, TensorValue) and requires_grad(each) for each in tensors)
    ev.emit(LeafWritten(place, ev.calls, subject, differentiated))


def _base(tensor: TensorValue) -> TensorValue | None:
    """Return the tensor below a view, or the tensor itself; None for one view of several."""
    while len(tensor.sources) == 1 and tensor.sources[0].storage is tensor.storage:
        if tensor.origin is not None and tensor.origin.op in _SEVERAL_VIEWS:
            return None
        tensor = tensor.sources[0]
    return None if tensor.sources else tensor
