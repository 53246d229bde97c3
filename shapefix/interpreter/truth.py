"""Truth values of conditions: true, false or unknown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from types import NoneType

from shapefix.interpreter.classes import is_closed, member, outside_bases
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    BoundMethod,
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    ModuleValue,
    Number,
    Reference,
    Text,
    TypeOf,
    Value,
)
from shapefix.tensors.bounds import same


def truth(value: Value) -> bool | None:
    """Result of `bool(value)`; None if unknown."""
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, TupleValue):
        return bool(value.items)
    if isinstance(value, ListValue):
        return None if value.items is None else bool(value.items)
    if isinstance(value, DictValue):
        return True if value.fields else (False if value.closed else None)
    if isinstance(value, (FunctionValue, BoundMethod, ClassValue, ModuleValue)):
        return True
    if isinstance(value, InstanceValue):
        return True if _is_always_true(value.cls) and not value.open else None
    if isinstance(value, LibraryObject):
        return True if value.kind.startswith(_TRUE_OBJECTS) and value.kind not in WITH_LENGTH else None
    return None


_TRUE_OBJECTS = ("torch.nn.", "torch.optim.", "torchvision.transforms.", "PIL.Image.")
"""Names of packages with objects that are true: no class defines a length, or a truth value, but for some."""
WITH_LENGTH = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Sequential",
        "ModuleList",
        "ModuleDict",
        "ParameterList",
        "ParameterDict",
        "Parameter",
        "Buffer",
    )
)
"""Classes of these packages with a length or a truth value."""
_ALWAYS_TRUE = frozenset({"builtins.object", "torch.nn.Module", "torch.nn.modules.module.Module", "abc.ABC"})


def _is_always_true(cls: ClassValue) -> bool:
    """Check whether objects of a class are true: no base defines a length, or a truth value."""
    if not is_closed(cls) or not _ALWAYS_TRUE.issuperset(outside_bases(cls)):
        return False
    return all(member(cls, name) is None for name in ("__bool__", "__len__"))


def is_none(value: Value) -> bool | None:
    """Check whether value is None; None if unknown."""
    if isinstance(value, Constant):
        return value.value is None
    if isinstance(
        value,
        (
            TensorValue,
            Integer,
            Number,
            Text,
            TupleValue,
            ListValue,
            DictValue,
            FunctionValue,
            BoundMethod,
            ClassValue,
            InstanceValue,
            LibraryObject,
            ModuleValue,
        ),
    ):
        return False
    # An attribute of a library may be None if an optional package is missing.
    return None


MOST_COMPARED = 5_000
"""Maximum number of items compared for one `==`: tuples may share their parts, and nest."""


def equal(left: Value, right: Value) -> bool | None:
    """Check whether left == right; None if unknown."""
    return _equal(left, right, count(1))


def _equal(left: Value, right: Value, compared: Iterator[int]) -> bool | None:
    if next(compared) > MOST_COMPARED:
        return None
    if isinstance(left, Constant) and isinstance(right, Constant):
        return bool(left.value == right.value)
    if isinstance(left, Integer) and isinstance(right, (Integer, Constant)):
        return _same_size(left, right)
    if isinstance(right, Integer) and isinstance(left, Constant):
        return _same_size(right, left)
    if isinstance(left, TupleValue) and isinstance(right, TupleValue):
        if len(left.items) != len(right.items):
            return False
        verdict: bool | None = True
        for one, other in zip(left.items, right.items, strict=True):
            known = _equal(one, other, compared)
            if known is False:
                return False
            verdict = verdict and known
        return verdict
    if isinstance(left, Reference) and isinstance(right, Reference) and left.name == right.name:
        return True
    if _is_collection_and_scalar(left, right) or _is_collection_and_scalar(right, left):
        # `self.backbone = backbone,` is a tuple.
        return False
    if isinstance(left, TypeOf):
        return _is_type(left.value, right)
    return _is_type(right.value, left) if isinstance(right, TypeOf) else None


def _is_collection_and_scalar(left: Value, right: Value) -> bool:
    """Check for a tuple, list or dictionary beside a text, a number, True, False or None."""
    return (
        isinstance(left, (TupleValue, ListValue, DictValue))
        and isinstance(right, Constant)
        and isinstance(right.value, (str, bytes, int, float, complex, NoneType))
    )


def _is_type(value: Value, kind: Value) -> bool | None:
    """Check whether the type of a value is exactly kind; None if unknown."""
    name = kind.name if isinstance(kind, Reference) else ""
    if isinstance(kind, ClassValue) or name.startswith("builtins."):
        if isinstance(value, TensorValue) and value.certain:
            return False
        if isinstance(value, Constant):
            return name == f"builtins.{type(value.value).__name__}"
    if isinstance(value, LibraryObject) and value.kind == name and name.startswith("torch."):
        return True
    if isinstance(kind, ClassValue) and isinstance(value, InstanceValue):
        # An object of unknown origin may be of a derived class.
        return value.cls is kind if not value.open else None
    return None


def _same_size(left: Integer, right: Integer | Constant) -> bool | None:
    if isinstance(right, Integer):
        return same(left.size, right.size)
    if isinstance(right.value, int):
        # Sizes are taken to be at least 1, but an int that is only used like one may still be 0 or -1.
        return same(left.size, right.value) if right.value > 0 else None
    return False if right.value is None or isinstance(right.value, str) else None
