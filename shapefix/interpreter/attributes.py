"""Attribute access: `value.name`."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Arguments, Call, after_call, call_value
from shapefix.interpreter.classes import member, outside_bases
from shapefix.interpreter.containers import DictValue, ListValue, Shape, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.names import is_bound, module_name, resolve, resolved
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    Binding,
    BoundMethod,
    ClassValue,
    Constant,
    FunctionValue,
    Imported,
    InstanceValue,
    Integer,
    Isolation,
    LibraryObject,
    MethodOfEach,
    ModuleValue,
    Number,
    OneOf,
    ReadNumber,
    Reference,
    Unknown,
    Value,
    as_tensor,
    is_text,
    is_written,
    present,
)

TENSOR = "torch.Tensor"
NUMBER_OR_NONE = "builtins.int"
"""Class name for looking up methods that numbers and None lack."""
MOVES = frozenset({"to", "cuda"})
"""Methods for moving a tensor to a device."""
_SAME_FOR_ARRAYS = frozenset({"shape", "ndim", "T"})
_OTHER_FOR_ARRAYS = frozenset({"dot"})
"""Methods of tensors with another meaning for arrays, which `.shape` does not tell apart."""
_WITHOUT_OTHERS = ("torch.", "pathlib.")
"""Packages whose objects change no model or optimizer in methods that shapefix does not know."""


def attribute(ev: Evaluator, owner: Value, name: str, node: cst.CSTNode) -> Value:
    """Read owner.name at node."""
    owner = present(resolved(ev, owner))
    if isinstance(owner, TensorValue):
        # Torch makes tensors of known dtypes; one known by its use alone has none.
        may_be_array = name in _OTHER_FOR_ARRAYS and owner.dtype is None
        return (None if may_be_array else of_library(ev, TENSOR, owner, name, node)) or Unknown(name)
    if isinstance(owner, InstanceValue):
        return _of_instance(ev, owner, name, node)
    if isinstance(owner, Unknown):
        return _of_unknown(ev, owner, name, node)
    if isinstance(owner, Reference):
        read = f"{owner.name}.{name}"
        for note in hooks.read_name:
            note(ev, read, node)
        return Reference(ev.library.public_name(read))
    if isinstance(owner, ModuleValue):
        return _of_module(ev, owner, name)
    if isinstance(owner, LibraryObject):
        if owner.kind == "builtins.super":
            return _of_super(ev, owner, name, node)
        if name in owner.fields:
            field = owner.fields[name]
            return field if isinstance(field, Value) else Unknown(name)
        found = of_library(ev, owner.kind, owner, name, node)
        if found is None:
            for missing in hooks.missing_attribute:
                missing(ev, owner, name, node)
            found = owner.fields[name] = Unknown(name)
            if owner.kind.startswith(_WITHOUT_OTHERS):
                found.isolation = Isolation(of_parts=False)
            for hook in hooks.read_unknown:
                hook(ev, owner, name)
        return found
    if isinstance(owner, ClassValue):
        return _of_class(ev, owner, name, node)
    if isinstance(owner, ListValue):
        return BoundMethod(owner, Reference(f"builtins.list.{name}"))
    if isinstance(owner, DictValue):
        if owner.kind != "builtins.dict":
            found = of_library(ev, owner.kind, owner, name, node)
            if found is not None:
                return found
        return BoundMethod(owner, Reference(f"builtins.dict.{name}"))
    if isinstance(owner, TupleValue):
        if name in owner.names:
            return owner.items[owner.names.index(name)]
        return BoundMethod(owner, Reference(f"builtins.tuple.{name}"))
    if isinstance(owner, Shape):
        return BoundMethod(owner, Reference(f"torch.Size.{name}"))
    if is_text(owner):
        return BoundMethod(owner, Reference(f"builtins.str.{name}"))
    if name in MOVES and isinstance(owner, (Constant, Integer, Number)):
        # For other attributes the owner may be a member of an enumeration.
        return BoundMethod(owner, Reference(f"{NUMBER_OR_NONE}.{name}"))
    if name == "backward" and isinstance(owner, ReadNumber):
        return BoundMethod(owner, Reference(f"{NUMBER_OR_NONE}.{name}"))
    return Unknown(name)


def of_library(ev: Evaluator, kind: str, owner: Value, name: str, node: cst.CSTNode) -> Value | None:
    """Property or bound method of a library class; None for an unknown name."""
    prop = ev.library.method(kind, f"@{name}")
    if prop is not None:
        call = Call(ev, f"{kind}.{name}", ev.place(node), Arguments(), owner)
        value = prop(call)
        if kind == TENSOR:
            for after in after_call:
                after(call, value)
        return value
    if ev.library.method(kind, name) is not None:
        return BoundMethod(owner, Reference(f"{kind}.{name}"))
    return None


def _of_instance(ev: Evaluator, owner: InstanceValue, name: str, node: cst.CSTNode) -> Value:
    found = owner.fields.get(name)
    own = member(owner.cls, name)
    if found is not None and not (is_written(found) and member(owner.cls, "__getattr__") is not None):
        return found
    if own is not None:
        return bound(ev, own, owner, node)
    if name == "__class__":
        return owner.cls
    if name == "__dict__":
        return DictValue(owner.fields, closed=not owner.open)
    for base in outside_bases(owner.cls):
        found = of_library(ev, base, owner, name, node)
        if found is not None:
            return found
    for find in hooks.absent_attribute:
        if (supplied := find(ev, owner, name)) is not None:
            return supplied
    unknown = owner.fields[name] = Unknown(f"self.{name}")
    # The object may not have it: another path may read it after `hasattr`.
    ev.journal.doubt(owner.fields, name)
    for hook in hooks.read_unknown:
        hook(ev, owner, name)
    return unknown


def bound(ev: Evaluator, own: Value, owner: InstanceValue, node: cst.CSTNode) -> Value:
    """Value of a class member read through an object."""
    if isinstance(own, FunctionValue):
        match own.binding:
            case Binding.PROPERTY:
                return call_value(ev, own, Arguments([owner]), node)
            case Binding.STATIC_METHOD:
                return own
            case Binding.CLASS_METHOD:
                return BoundMethod(owner.cls, own)
            case Binding.UNKNOWN:
                return Unknown(f"self.{own.name}")
        return BoundMethod(owner, own)
    return own


def _of_super(ev: Evaluator, owner: LibraryObject, name: str, node: cst.CSTNode) -> Value:
    after, receiver = owner.arguments["owner"], owner.arguments["receiver"]
    cls = receiver.cls if isinstance(receiver, InstanceValue) else receiver
    if not isinstance(cls, ClassValue) or not isinstance(after, ClassValue):
        return Unknown(name)
    own = member(cls, name, after)
    if own is not None:
        return bound(ev, own, receiver, node) if isinstance(receiver, InstanceValue) else own
    for base in outside_bases(cls):
        found = of_library(ev, base, receiver, name, node)
        if found is not None:
            return found
    return Unknown(name)


def _of_class(ev: Evaluator, owner: ClassValue, name: str, node: cst.CSTNode) -> Value:
    own = member(owner, name)
    if isinstance(own, FunctionValue) and own.binding is Binding.CLASS_METHOD:
        return BoundMethod(owner, own)
    if own is not None:
        return own
    if name == "__name__":
        return Constant(owner.name)
    for base in outside_bases(owner):
        found = of_library(ev, base, owner, name, node)
        if found is not None:
            return found
    return Unknown(name)


def _of_module(ev: Evaluator, owner: ModuleValue, name: str) -> Value:
    found = module_name(ev, owner.module, name)
    if found is not None:
        return found
    path = ev.files.locate(owner.module, name, 1) if owner.module.path.endswith("__init__.py") else None
    return resolve(ev, Imported(path, None)) if path is not None else Unknown(name)


_RETURNS_ITSELF = frozenset({"to", "cuda", "cpu", "train", "eval", "float", "double", "half", "bfloat16"})
"""Methods of a model that change it, and return it."""


def _of_choices(ev: Evaluator, owner: OneOf, name: str, node: cst.CSTNode) -> Value | None:
    """Return a method of all of several models; None for other attributes."""
    methods: list[BoundMethod] = []
    unknown: list[Value] = []
    for choice in owner.choices:
        if type(choice) is Unknown:
            unknown.append(attribute(ev, choice, name, node))
            continue
        method = _method(ev, choice, name, node)
        if method is None:
            return None
        methods.append(method)
    if name in _RETURNS_ITSELF and all(isinstance(each.function, Reference) for each in methods):
        return MethodOfEach(owner, tuple(methods))
    return OneOf((*methods, *unknown), owner.modules)


def _method(ev: Evaluator, owner: Value, name: str, node: cst.CSTNode) -> BoundMethod | None:
    """Return a bound method of an object, without any note of reading it; None for other attributes."""
    if not isinstance(owner, (InstanceValue, LibraryObject)) or name in owner.fields:
        return None
    if isinstance(owner, LibraryObject):
        kinds: tuple[str, ...] = (owner.kind,)
    elif (own := member(owner.cls, name)) is not None:
        if isinstance(own, FunctionValue) and own.binding is Binding.PLAIN:
            return BoundMethod(owner, own)
        return None
    else:
        kinds = tuple(outside_bases(owner.cls))
    for kind in kinds:
        if ev.library.method(kind, f"@{name}") is None and ev.library.method(kind, name) is not None:
            return BoundMethod(owner, Reference(f"{kind}.{name}"))
    return None


def _may_be_module(ev: Evaluator, node: cst.CSTNode) -> bool:
    """Whether a name without a binding is read: `from fastai.vision import *` may bind `F` of `F.softmax`."""
    owner = node.value if isinstance(node, cst.Attribute) else None
    return isinstance(owner, cst.Name) and not is_bound(ev, owner.value)


def _of_unknown(ev: Evaluator, owner: Unknown, name: str, node: cst.CSTNode) -> Value:
    found = owner.attributes.get(name)
    if found is not None and not is_written(found):
        return found
    if isinstance(owner, OneOf) and (methods := _of_choices(ev, owner, name, node)) is not None:
        return methods
    owner.used_as = ev.library.object_with(name)
    if owner.used_as is not None:
        return attribute(ev, owner.used_as, name, node)
    for hook in hooks.read_unknown:
        hook(ev, owner, name)
    used_as_tensor = name in _SAME_FOR_ARRAYS or (
        ev.library.mostly_of_tensors(name) and not _may_be_module(ev, node)
    )
    tensor = as_tensor(owner) if used_as_tensor else owner.tensor
    if tensor is not None and ev.library.only_of_tensors(name):
        tensor.certain = True
    has_sizes = tensor is not None and tensor.layout is not None and name not in _OTHER_FOR_ARRAYS
    if tensor is not None and (used_as_tensor or tensor.certain or has_sizes):
        found = of_library(ev, TENSOR, tensor, name, node)
        if isinstance(found, TensorValue) and not tensor.certain:
            # The transposition of an array is one, too.
            return Unknown(f"{owner.hint}.{name}" if owner.hint else name, found)
        if found is not None:
            return found
    return owner.attribute(name)
