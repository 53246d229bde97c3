"""Arguments of optimizers rejected by torch: empty lists, modules, methods, and tensors with a graph."""

from __future__ import annotations

from shapefix.domains.gradients import is_computed
from shapefix.domains.training import ParametersRejected, RejectedArgument
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import (
    BoundMethod,
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    ModulePart,
    Number,
    Parameter,
    Reference,
    Text,
    Value,
)
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import derives

WEIGHTLESS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "AdaptiveAvgPool2d",
        "AvgPool2d",
        "BCELoss",
        "BCEWithLogitsLoss",
        "CrossEntropyLoss",
        "Dropout",
        "Dropout2d",
        "ELU",
        "Flatten",
        "GELU",
        "Identity",
        "L1Loss",
        "LeakyReLU",
        "LogSoftmax",
        "MSELoss",
        "MaxPool1d",
        "MaxPool2d",
        "ReLU",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Tanh",
    )
)
"""Layers without parameters for all settings."""
_PLAIN = (Constant, Integer, Number, Text, FunctionValue, BoundMethod, ClassValue, Reference)
_BASES = frozenset({MODULE, "torch.nn.modules.Module", "torch.nn.modules.module.Module", "builtins.object"})


def note_rejected(call: Call, given: Value | None) -> None:
    """Report parameters of an optimizer with a certain exception."""
    reason = None if given is None or call.arguments.open else _reason(call.ev, given)
    if reason is None:
        return
    kind, value = reason
    call.ev.emit(ParametersRejected(call.place, call.ev.calls, kind, value))


def _reason(ev: Evaluator, given: Value) -> tuple[RejectedArgument, Value] | None:
    if isinstance(given, BoundMethod):
        return RejectedArgument.METHOD, given
    if isinstance(given, TensorValue):
        return (RejectedArgument.TENSOR, given) if given.certain else None
    if _is_module(given):
        return RejectedArgument.MODULE, given
    if isinstance(given, ListValue) and given.items is None:
        element = given.element
        if type(element) is Parameter and all(_has_no_parameters(ev, each) for each in element.modules):
            return RejectedArgument.NO_PARAMETERS, next(iter(element.modules))
        return None
    if not isinstance(given, (ListValue, TupleValue)) or given.items is None:
        return None
    if not given.items:
        return RejectedArgument.EMPTY, given
    groups = [each for each in given.items if isinstance(each, DictValue)]
    listed = [each.fields.get("params") for each in groups] if groups else [given]
    for group in listed:
        items = group.items if isinstance(group, (ListValue, TupleValue)) else (group,)
        for item in items or ():
            if not groups and isinstance(item, ListValue) and type(item.element) is Parameter:
                return RejectedArgument.GENERATOR, item
            if isinstance(item, TensorValue) and is_computed(ev, item):
                return RejectedArgument.NOT_A_LEAF, item
    return None


def _is_module(value: Value) -> bool:
    if isinstance(value, LibraryObject):
        return derives(value.kind, MODULE) and not value.kind.endswith(("List", "Dict"))
    return isinstance(value, InstanceValue) and not value.open and _derives_from_module(value.cls)


def _derives_from_module(cls: ClassValue) -> bool:
    """Check whether all bases of a class are known, and end in torch.nn.Module."""
    found = False
    for base in cls.bases:
        if isinstance(base, ClassValue):
            found = found or _derives_from_module(base)
            if not _derives_from_module(base):
                return False
        elif isinstance(base, Reference) and base.name in _BASES:
            found = found or base.name != "builtins.object"
        else:
            return False
    return found and "__iter__" not in cls.fields and "__getitem__" not in cls.fields


def _has_no_parameters(ev: Evaluator, module: Value) -> bool:
    """Check whether a module certainly has no parameter, nor any below it."""
    if isinstance(module, LibraryObject):
        return module.kind in WEIGHTLESS
    if not isinstance(module, InstanceValue) or module.open or not _derives_from_module(module.cls):
        return False
    for value in module.fields.values():
        if isinstance(value, (InstanceValue, LibraryObject)):
            if not _has_no_parameters(ev, value):
                return False
        elif isinstance(value, TensorValue):
            is_plain = value.certain and not value.own and value.origin is not None
            if requires_grad(value) is not False and not is_plain:
                return False
        elif not isinstance(value, (*_PLAIN, ListValue, TupleValue, DictValue)) or isinstance(
            value, ModulePart
        ):
            return False
    return True
