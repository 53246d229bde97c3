"""Assignments: binding values to targets."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.callback_writes import weakened
from shapefix.interpreter.calls import Arguments, Call, call_library, call_method, call_value
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import (
    CONTENTS,
    Contents,
    DictValue,
    ListValue,
    Shape,
    Sizes,
    TupleValue,
    elements,
)
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import AttributeSet, WrongCountUnpacked
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.joins import join, join_contents, without_length
from shapefix.interpreter.names import resolved, scope_of
from shapefix.interpreter.refinement import name_size, refine_rank, reject_sizes, target_name
from shapefix.interpreter.subscripts import evaluate_index
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.truth import equal
from shapefix.interpreter.values import (
    TRUE,
    WRITTEN,
    Binding,
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    ModuleValue,
    Reference,
    Slice,
    Unknown,
    Value,
    integer,
    is_whole,
    present,
)
from shapefix.tensors.errors import WrongRank
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import UNBOUNDED

PARTS = "parts"
"""Operand name of an unpacking of the parts of a tensor."""
ROWS = "rows"
"""Operand name of an unpacking of a tensor itself, along its first dimension."""
_CUT = frozenset({Op.SPLIT, Op.UNBIND})


def bind(ev: Evaluator, target: cst.CSTNode, value: Value) -> None:
    """Assign value to target."""
    if type(target) is cst.Name:
        if isinstance(value, Unknown) and not value.hint:
            value.hint = target.value
        scope = ev.frames[-1].scope.home(target.value)
        ev.journal.write(scope.names, target.value, weakened(ev, target.value, value, is_attribute=False))
    elif type(target) is cst.Attribute:
        owner, name = present(ev.evaluate(target.value)), target.attr.value
        if isinstance(owner, InstanceValue):
            value = weakened(ev, name, value, is_attribute=True)
        _set_attribute(ev, owner, name, value, target)
    elif type(target) is cst.Tuple or type(target) is cst.List:
        _unpack(ev, target, value)
    elif type(target) is cst.Subscript:
        _set_item(ev, target, value)
    elif type(target) is cst.StarredElement:
        bind(ev, target.value, value)


def _size_named(target: cst.CSTNode) -> Size | None:
    name = target_name(target)
    return Size.symbol(name) if name else None


def _unpack(ev: Evaluator, target: cst.Tuple | cst.List, value: Value) -> None:
    entries = target.elements
    stars = [i for i, entry in enumerate(entries) if isinstance(entry, cst.StarredElement)]
    if isinstance(value, Shape) and not stars:
        sizes = refine_rank(
            ev,
            value.tensor,
            [_size_named(entry.value) or value.new_size(dim) for dim, entry in enumerate(entries)],
        )
        if len(sizes) == len(entries):
            for entry, size in zip(entries, sizes, strict=True):
                bind(ev, entry.value, integer(size))
            return
    items = elements(iterate(ev, value, target) if isinstance(value, (TensorValue, LibraryObject)) else value)
    if items is not None and not stars and len(items) == len(entries):
        for entry, item in zip(entries, items, strict=True):
            name_size(ev, item, target_name(entry.value))
            bind(ev, entry.value, resolved(ev, item))
        return
    if isinstance(value, Sizes) and not stars:
        _refuse_unpacking(ev, target, "self", value.tensor, len(value.items))
    elif items is not None and not stars and (part := _part(items)) is not None:
        _refuse_unpacking(ev, target, PARTS, part, len(items))
    elif isinstance(value, TensorValue) and not stars and (rows := _rows(value)) is not None:
        if rows != len(entries):
            _refuse_unpacking(ev, target, ROWS, value, rows)
    elif isinstance(value, (TupleValue, ListValue)) and not stars and _is_certain(value):
        _refuse_values(ev, target, value)
    if items is not None and len(stars) == 1 and len(items) >= len(entries) - 1:
        star = stars[0]
        behind = len(entries) - star - 1
        for entry, item in zip(entries[:star], items[:star], strict=True):
            bind(ev, entry.value, item)
        bind(ev, entries[star].value, ListValue(items[star : len(items) - behind]))
        if behind:
            for entry, item in zip(entries[-behind:], items[-behind:], strict=True):
                bind(ev, entry.value, item)
        return
    for position, entry in enumerate(entries):
        if isinstance(entry, cst.StarredElement):
            bind(ev, entry.value, ListValue(None))
        elif isinstance(value, TensorValue):
            bind(ev, entry.value, each(ev, value))
        elif isinstance(value, Unknown):
            bind(ev, entry.value, value.item(position) if not stars else Unknown())
        else:
            bind(ev, entry.value, Unknown())


def _part(items: tuple[Value, ...]) -> TensorValue | None:
    """First of several tensors cut out of one by a call; None for other values."""
    tensors = [item for item in items if isinstance(item, TensorValue) and item.origin is not None]
    nodes = {tensor.origin.place.node for tensor in tensors if tensor.origin is not None}
    if len(tensors) < len(items) or len(nodes) != 1 or not isinstance(nodes.pop(), cst.Call):
        return None
    ops = {tensor.origin.op for tensor in tensors if tensor.origin is not None}
    # A tensor of unknown sizes may have fewer parts than requested.
    return tensors[0] if ops <= _CUT and tensors[0].layout is not None else None


def _rows(tensor: TensorValue) -> int | None:
    """Size of the first dimension of a tensor, if it is a known number."""
    return tensor.layout.sizes[0].value if tensor.layout is not None and tensor.layout.rank else None


def _is_certain(value: TupleValue | ListValue) -> bool:
    """Check for values of a known number, without names: a model's output iterates over its keys."""
    if isinstance(value, TupleValue):
        return not value.names
    return value.items is not None and not value.either


def _is_of_torch(value: Value) -> bool:
    is_object = isinstance(value, LibraryObject) and value.kind.startswith("torch.")
    return is_object or isinstance(value, TensorValue)


def _refuse_values(ev: Evaluator, target: cst.Tuple | cst.List, value: TupleValue | ListValue) -> None:
    """Report `x, y = batch` of three values, one of them a tensor or an object of torch."""
    items = value.items or ()
    first = next((item for item in items if _is_of_torch(item)), None)
    if first is not None:
        made_in = first.origin.function if isinstance(first, TensorValue) and first.origin else None
        undecided = ev.may_not_reach(made_in)
        place = ev.place(target)
        ev.emit(WrongCountUnpacked(place, ev.calls, items, len(target.elements), ev.function, undecided))


def _refuse_unpacking(
    ev: Evaluator, target: cst.Tuple | cst.List, name: str, tensor: TensorValue, count: int
) -> None:
    """Report `B, T = x.shape` of a tensor of three dimensions, or `q, k, v = x.chunk(2)`."""
    error = WrongRank(f"{count} into {len(target.elements)} names", count, (len(target.elements),))
    reject_sizes(ev, target, "unpacking", name, tensor, error)


def _set_attribute(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    if isinstance(owner, InstanceValue):
        declared = member(owner.cls, name)
        if isinstance(declared, FunctionValue) and declared.binding in (Binding.PROPERTY, Binding.UNKNOWN):
            if declared.setter is not None:
                call_value(ev, declared.setter, Arguments([owner, value]), node)
            return
    for hook in hooks.set_attribute:
        hook(ev, owner, name, value, node)
    if isinstance(owner, (InstanceValue, ClassValue)):
        if isinstance(value, Unknown) and not value.hint:
            value.hint = f"self.{name}"
        ev.journal.write(owner.fields, name, value)
    elif isinstance(owner, LibraryObject):
        ev.journal.write(owner.fields, name, value)
        ev.emit(AttributeSet(ev.place(node), ev.calls, owner, name, value))
    elif isinstance(owner, ModuleValue):
        # `from module import name` may have imported the previous value, or may import this one.
        ev.journal.write(scope_of(ev, owner.module).names, name, Unknown(name))
    elif isinstance(owner, Reference):
        ev.replaced.add(f"{owner.name}.{name}")
    elif isinstance(owner, Unknown):
        ev.journal.write(owner.attributes, name, value)


def _set_item(ev: Evaluator, target: cst.Subscript, value: Value) -> None:
    owner = present(ev.evaluate(target.value))
    index = evaluate_index(ev, target)
    if isinstance(owner, TensorValue):
        call_library(ev, "operator.setitem", Arguments([owner, index, value]), target)
    elif isinstance(owner, DictValue):
        if isinstance(index, Constant):
            ev.journal.write(owner.fields, index.value, value)
            owner.written[index.value] = ev.place(target)
        else:
            for key, held in list(owner.fields.items()):
                ev.journal.write(owner.fields, key, _perhaps_replaced(held, value))
            owner.rest = further_entry(owner, value)
            owner.closed = False
            owner.absent = None
    elif isinstance(owner, ListValue):
        after = _with_item(owner.contents, index, value)
        for hook in hooks.set_item:
            after = hook(ev, target, owner, index, value, after)
        set_contents(ev, owner, after)
    elif isinstance(owner, InstanceValue):
        call_method(ev, owner, "__setitem__", Arguments([index, value]), target)
    elif isinstance(owner, LibraryObject):
        method = ev.library.method(owner.kind, "__setitem__")
        if method is not None:
            name = f"{owner.kind}.__setitem__"
            method(Call(ev, name, ev.place(target), Arguments([index, value]), owner))
        elif isinstance(index, Constant):
            ev.journal.write(owner.fields, index.value, value)
    elif isinstance(owner, Unknown) and isinstance(index, Constant):
        ev.journal.write(owner.attributes, f"[{index.value!r}]", value)
        ev.journal.write(owner.attributes, WRITTEN, TRUE)


def _perhaps_replaced(held: Value, value: Value) -> Value:
    """Entry of a dictionary after a write to an unknown key: a whole number stays one."""
    if is_whole(held) and is_whole(value):
        return Integer(Size.symbol("n", UNBOUNDED))
    joined: Value = join(held, value)
    return joined


def further_entry(owner: DictValue, value: Value) -> Value | None:
    """Join the values of unknown keys of a dictionary of layers or whole numbers; None for others."""
    if is_whole(value) and (owner.closed or is_whole(owner.rest)):
        return Integer(Size.symbol("n", UNBOUNDED))
    if not isinstance(value, (LibraryObject, InstanceValue)):
        return None
    if owner.closed:
        return value
    if owner.rest is None:
        return None
    if _is_made_alike(owner.rest, value):
        return value
    joined: Value = join(owner.rest, value)
    return joined


def _is_made_alike(first: Value, second: Value) -> bool:
    """Whether two objects were made by one call in several passes, with equal arguments."""
    return (
        isinstance(first, LibraryObject)
        and isinstance(second, LibraryObject)
        and first.place is not None
        and second.place is not None
        and first.place.node is second.place.node
        and first.arguments.keys() == second.arguments.keys()
        and all(
            value is second.arguments[name] or equal(value, second.arguments[name])
            for name, value in first.arguments.items()
        )
    )


def set_contents(ev: Evaluator, owner: ListValue, contents: Contents) -> None:
    """Change the contents of a list and of all its candidates after a branch."""
    ev.journal.write(owner.fields, CONTENTS, contents)
    # Branches in a row share candidates: the paths to them grow exponentially, their number does not.
    waiting, reached = list(owner.either), {id(owner)}
    while waiting:
        candidate = waiting.pop()
        if id(candidate) not in reached:
            reached.add(id(candidate))
            ev.journal.write(candidate.fields, CONTENTS, Contents(None, None, None, candidate.axes))
            waiting += candidate.either


def _with_item(before: Contents, index: Value, value: Value) -> Contents:
    """Contents of a list after `x[index] = value`."""
    items = before.items
    at = index.value if isinstance(index, Constant) and isinstance(index.value, int) else None
    if isinstance(index, Slice):
        # It may grow or shrink.
        added = value.contents if isinstance(value, ListValue) else Contents(None)
        return Contents(None, without_length(join_contents(before, added)).element, None, before.axes)
    if items is not None and at is not None:
        if not -len(items) <= at < len(items):
            return before
        return Contents((*items[: at % len(items)], value, *items[at % len(items) + 1 :]))
    either = join_contents(before, Contents(None, value))
    return Contents(None, either.element, before.length, before.axes)


def delete(ev: Evaluator, target: cst.CSTNode) -> None:
    """Run `del target`."""
    if isinstance(target, cst.Subscript):
        owner = ev.evaluate(target.value)
        index = evaluate_index(ev, target)
        if isinstance(owner, DictValue) and isinstance(index, Constant):
            ev.journal.delete(owner.fields, index.value)
        elif isinstance(owner, ListValue):
            set_contents(ev, owner, without_length(owner.contents))
        elif isinstance(owner, LibraryObject):
            method = ev.library.method(owner.kind, "__delitem__")
            if method is not None:
                method(Call(ev, f"{owner.kind}.__delitem__", ev.place(target), Arguments([index]), owner))
    elif isinstance(target, (cst.Tuple, cst.List)):
        for entry in target.elements:
            delete(ev, entry.value)
