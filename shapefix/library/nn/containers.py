"""Containers of modules and parameters: Sequential, ModuleList, ModuleDict, ParameterList and so on.

The children are in the field `_modules`, as in torch: a list, or for the dictionaries a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import libcst as cst

from shapefix.domains.devices import OF_MODULE
from shapefix.domains.gradients import mark_leaf
from shapefix.interpreter import hooks
from shapefix.interpreter.alternatives import MOST_NESTED
from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.classes import outside_bases
from shapefix.interpreter.containers import CONTENTS, DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.joins import join, join_paths
from shapefix.interpreter.refused_calls import note_refused, report_wrong_count
from shapefix.interpreter.silent_runs import rehearsal
from shapefix.interpreter.subscripts import item
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NONE,
    Constant,
    InstanceValue,
    LibraryObject,
    Slice,
    Unknown,
    Value,
    as_tensor,
    integer,
)
from shapefix.library.nn.layers import fields_of
from shapefix.library.nn.module import MODULE, is_own_module
from shapefix.library.registry import declare, function, method
from shapefix.library.tensors import alias_of
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size

SEQUENTIAL, LIST, DICT = "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"
PARAMETERS, PARAMETER_DICT = "torch.nn.ParameterList", "torch.nn.ParameterDict"
_SEQUENCES = (SEQUENTIAL, LIST, PARAMETERS)
for _kind in (*_SEQUENCES, DICT, PARAMETER_DICT):
    declare(_kind, MODULE)


def _children(owner: Value | None) -> ListValue:
    """Children of a sequence, including later assignments to those with names."""
    fields: Mapping[Any, Value] = fields_of(owner)
    held, names = fields.get("_modules"), elements(fields.get("_names"))
    if not isinstance(held, ListValue):
        return ListValue(None)
    if held.items is None or names is None or len(names) > len(held.items):
        return held
    named = tuple(
        fields.get(name.value, child) if isinstance(name, Constant) else child
        for name, child in zip(names, held.items, strict=False)
    )
    return ListValue((*named, *held.items[len(names) :]))


def _filled(call: Call, kind: str) -> dict[str, Value]:
    """Fields of a container created with these arguments."""
    given = call.arguments.positional
    if kind in (PARAMETERS, PARAMETER_DICT):
        _make_parameters(given)
    if kind in (DICT, PARAMETER_DICT):
        held = given[0] if given else call.arguments.keywords.get("modules")
        if isinstance(held, DictValue):
            return {"_modules": DictValue(dict(held.fields), held.closed), **_named(held)}
        return {"_modules": DictValue({}, closed=held is None and not call.arguments.open)}
    if kind == SEQUENTIAL:
        if len(given) == 1 and isinstance(given[0], DictValue):
            held = given[0]
            if not held.closed:
                return {"_modules": ListValue(None), **_named(held)}
            names = TupleValue(tuple(Constant(name) for name in held.fields))
            return {"_modules": ListValue(tuple(held.fields.values())), "_names": names, **_named(held)}
        if call.arguments.open:
            return {
                "_modules": ListValue(
                    None, None if given or call.arguments.starred is None else call.arguments.starred.element
                )
            }
        return {"_modules": ListValue(tuple(given))}
    if not given and not call.arguments.keywords and not call.arguments.open:
        return {"_modules": ListValue(())}
    source = call.value(0, "modules") or call.value(0, "values") or Unknown()
    children = iterate(call.ev, source, call.place.node)
    if isinstance(children, ListValue):
        return {"_modules": ListValue(children.items, children.element)}
    return {"_modules": ListValue(elements(children))}


def _named(held: DictValue) -> dict[str, Value]:
    return {name: child for name, child in held.fields.items() if isinstance(name, str)}


@function(SEQUENTIAL, LIST, DICT, PARAMETERS, PARAMETER_DICT)
def make(call: Call) -> Value:
    return LibraryObject(call.name, {}, call.place, _filled(call, call.name))


@hooks.set_attribute
def _assign_layer(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    """Run a layer assigned as an attribute of a Sequential after those before it."""
    if not _is_sequential(owner) or isinstance(value, (TensorValue, Constant)):
        return
    fields = fields_of(owner)
    held, names = fields.get("_modules"), elements(fields.get("_names")) or ()
    items = held.items if isinstance(held, ListValue) else None
    if items is None or any(isinstance(each, Constant) and each.value == name for each in names):
        return
    if not isinstance(value, (InstanceValue, LibraryObject)):
        # It may be a module or not.
        ev.journal.write(fields, "_modules", ListValue(None))
        return
    labels = (*names, *(Constant(str(number)) for number in range(len(names), len(items))), Constant(name))
    ev.journal.write(fields, "_modules", ListValue((*items, value)))
    ev.journal.write(fields, "_names", TupleValue(labels))


@hooks.read_unknown
def _forget_layers(ev: Evaluator, owner: Value, name: str) -> None:
    """Forget the layers of a Sequential with a method of the code, such as `add`."""
    if isinstance(owner, LibraryObject) and _is_sequential(owner) and "_modules" in owner.fields:
        ev.journal.write(owner.fields, "_modules", ListValue(None))


def _is_sequential(owner: Value) -> bool:
    if isinstance(owner, LibraryObject):
        return owner.kind == SEQUENTIAL
    return isinstance(owner, InstanceValue) and SEQUENTIAL in outside_bases(owner.cls)


def _initialize(call: Call) -> Value:
    kind = call.name.rpartition(".")[0]
    for name, value in _filled(call, kind).items():
        call.ev.journal.write(fields_of(call.receiver), name, value)
    return NONE


for _kind in (*_SEQUENCES, DICT, PARAMETER_DICT):
    method(_kind, "__init__")(_initialize)


STEPS_A_LAYER = 10
"""How many steps of the interpreter take as long as the call of a layer."""


@dataclass
class _Running:
    """Containers with calls in progress, outermost first."""

    modules: list[Value | None] = field(default_factory=list)


@method(SEQUENTIAL, "forward")
def forward(call: Call) -> Value:
    """Run one module after another."""
    given = call.arguments
    if not given.open and (len(given.positional) > 1 or not given.keywords.keys() <= {"input"}):
        # Sequential.forward() takes one argument: TypeError.
        note_refused(call.ev, call.place.node, call.receiver or Unknown())
        if len(given.positional) > 1 and not given.keywords:
            count = len(given.positional)
            report_wrong_count(call.ev, call.place, "Sequential", "forward", ("input",), 1, count)
        return Unknown()
    value = call.value(0, "input") or Unknown()
    children = _children(call.receiver)
    if children.items is not None:
        if not children.items and _is_unwritten(call.receiver):
            return Unknown()
        ev, running = call.ev, call.ev.state[_Running].modules
        if any(each is call.receiver for each in running):
            # A module that holds itself: RecursionError.
            return Unknown()
        running.append(call.receiver)
        try:
            for child in children.items:
                # One module may be the child of several others, on every level.
                ev.steps += STEPS_A_LAYER
                if ev.steps > ev.allowance:
                    ev.reach_limit(call.place.node)
                    return Unknown()
                value = call_value(call.ev, child, Arguments([value]), call.place.node)
        finally:
            running.pop()
        return value
    if children.element is None:
        return Unknown()
    return _repeated(call, children.element, value)


def _repeated(call: Call, child: Value, value: Value) -> Value:
    """Run one or more modules of a kind one after another; changing sizes are unknown."""

    def run(value: Value) -> Value:
        return call_value(call.ev, child, Arguments([value]), call.place.node)

    once = run(value)
    before, after = as_tensor(value), as_tensor(once)
    if before is None or after is None:
        return Unknown()
    if before.layout is not None and before.layout == after.layout:
        return once
    if call.ev.rehearsals > MOST_NESTED:
        return Unknown()
    rejected = call.ev.silent_rejections
    call.ev.journal.begin()
    with rehearsal(call.ev):
        twice = as_tensor(run(once))
    call.ev.journal.undo()
    if twice is None or call.ev.silent_rejections > rejected:
        # A single module, or others between them.
        return Unknown()
    if after.layout is not None and twice.layout is not None:
        joined = join_paths(after, twice)
        return joined if isinstance(joined, TensorValue) and joined.layout is not None else Unknown()
    made = TensorValue(dtype=after.dtype if after.dtype == twice.dtype else None)
    last = after.known_size(-1)
    if last is not None and last == twice.known_size(-1):
        made.set_size(-1, last)
    return made


def _is_unwritten(container: Value | None) -> bool:
    """Check for a template: `nn.Sequential(` with nothing but a comment before `)`."""
    place = container.place if isinstance(container, LibraryObject) else None
    if place is None or not isinstance(place.node, cst.Call) or place.node.args:
        return False
    span = place.span
    rows = place.module.text.split("\n")[span.row - 1 : span.end_row]
    # The end of the last row is not a part of the call.
    return len(rows) > 1 and any("#" in row for row in rows[:-1])


@method(SEQUENTIAL, "__iter__")
@method(LIST, "__iter__")
@method(PARAMETERS, "__iter__")
def iterated(call: Call) -> Value:
    return _children(call.receiver)


@method(SEQUENTIAL, "__len__")
@method(LIST, "__len__")
@method(PARAMETERS, "__len__")
def length(call: Call) -> Value:
    items = _children(call.receiver).items
    return Unknown("len") if items is None else integer(Size.of(len(items)))


@method(SEQUENTIAL, "__getitem__")
@method(LIST, "__getitem__")
@method(PARAMETERS, "__getitem__")
def child_at(call: Call) -> Value:
    index = call.value(0) or Unknown()
    found = item(call.ev, _children(call.receiver), index, call.place.node)
    if isinstance(index, Slice) and isinstance(found, ListValue):
        kind = call.name.rpartition(".")[0]
        return LibraryObject(kind, {}, call.place, {"_modules": found})
    return found


@method(SEQUENTIAL, "__setitem__", "__delitem__")
@method(LIST, "__setitem__", "__delitem__")
@method(PARAMETERS, "__setitem__")
def change(call: Call) -> Value:
    """Replace or delete a child; with an unknown index all children are forgotten."""
    fields, index = fields_of(call.receiver), call.value(0)
    if call.name.startswith(PARAMETERS):
        _make_parameters(call.arguments.positional)
    items = _children(call.receiver).items
    at = index.value if isinstance(index, Constant) and type(index.value) is int else None
    if items is None or at is None or not -len(items) <= at < len(items):
        call.ev.journal.write(fields, "_modules", ListValue(None))
        return NONE
    at %= len(items)
    names = elements(fields.get("_names")) or ()
    child = call.value(1) if call.name.endswith("__setitem__") else None
    between = () if child is None else (child,)
    call.ev.journal.write(fields, "_modules", ListValue((*items[:at], *between, *items[at + 1 :])))
    if at < len(names):
        name = names[at]
        if child is None:
            call.ev.journal.write(fields, "_names", TupleValue((*names[:at], *names[at + 1 :])))
        elif isinstance(name, Constant):
            call.ev.journal.write(fields, name.value, child)
    return NONE


@method(SEQUENTIAL, "append", "extend", "insert", "add_module")
@method(LIST, "append", "extend", "insert", "add_module")
@method(PARAMETERS, "append", "extend")
def grow(call: Call) -> Value:
    """Return the container itself, extended by the added children."""
    fields, name = fields_of(call.receiver), call.name.rpartition(".")[2]
    held = _children(call.receiver)
    if call.name.startswith(PARAMETERS):
        _make_parameters(call.arguments.positional)
    added = call.value(0 if name in ("append", "extend") else 1, "module") or Unknown()
    children: Value | None = None
    if held.items is not None and name == "append":
        children = ListValue((*held.items, added))
    elif held.items is not None and name == "add_module":
        label = call.value(0, "name")
        if isinstance(label, Constant):
            before = fields.get(label.value)
            if any(child is before for child in held.items):
                # A module of the same name replaces the previous one.
                children = ListValue(tuple(added if child is before else child for child in held.items))
            else:
                children = ListValue((*held.items, added))
            call.ev.journal.write(fields, label.value, added)
    elif held.items is not None and name == "extend":
        more = elements(iterate(call.ev, added, call.place.node))
        children = None if more is None else ListValue((*held.items, *more))
    if children is None:
        new = each(call.ev, iterate(call.ev, added, call.place.node)) if name == "extend" else added
        if held.items is None and held.element is None:
            # Nothing is known of the layers before it.
            children = ListValue(None)
        else:
            children = ListValue(None, join(each(call.ev, held), new) if held.items != () else new)
    inner = fields.get("_modules")
    if isinstance(inner, ListValue) and isinstance(children, ListValue):
        # Keep the same list object, so that a loop that fills it sees the items of its iterations.
        call.ev.journal.write(inner.fields, CONTENTS, children.contents)
    else:
        call.ev.journal.write(fields, "_modules", children)
    return call.receiver or Unknown()


def _entries(owner: Value | None) -> DictValue:
    """Children of a dictionary, including later assignments to `container["name"]`."""
    fields = fields_of(owner)
    held = fields.get("_modules")
    if not isinstance(held, DictValue):
        return DictValue({}, closed=False)
    written = {
        name: value
        for name, value in fields.items()
        if name not in held.fields and name != "_modules" and _is_child(value)
    }
    if isinstance(owner, LibraryObject) and owner.kind == PARAMETER_DICT:
        _make_parameters(written.values())
    return DictValue({**held.fields, **written}, held.closed)


def _is_child(value: Value) -> bool:
    return is_own_module(value) or isinstance(value, (LibraryObject, TensorValue))


@method(DICT, "add_module", "register_module", "__setitem__")
def add_named(call: Call) -> Value:
    """Add a child; one of an unknown name makes the dictionary open."""
    name, added = call.value(0, "name"), call.value(1, "module") or Unknown()
    if isinstance(name, Constant) and _is_child(added):
        call.ev.journal.write(fields_of(call.receiver), name.value, added)
    else:
        _open(call)
    return NONE


@method(DICT, "update")
def add_all(call: Call) -> Value:
    """Add the children of a dictionary."""
    given = call.value(0, "modules")
    if isinstance(given, DictValue) and given.closed and all(map(_is_child, given.fields.values())):
        for name, child in given.fields.items():
            call.ev.journal.write(fields_of(call.receiver), name, child)
    else:
        _open(call)
    return NONE


@method(DICT, "pop", "clear", "__delitem__")
def take_out(call: Call) -> Value:
    """Forget the number and the names of the children."""
    _open(call)
    return Unknown()


def _open(call: Call) -> None:
    held = fields_of(call.receiver).get("_modules")
    if isinstance(held, DictValue):
        opened = DictValue(dict(held.fields), closed=False)
        call.ev.journal.write(fields_of(call.receiver), "_modules", opened)


def _make_parameters(values: Iterable[Value]) -> None:
    """Record the plain tensors in a container as parameters, with gradients required.

    Known facts of the tensors are kept, except requires_grad: the original tensors do not require it.
    """
    for value in values:
        inner = value.fields.values() if isinstance(value, DictValue) else elements(value) or (value,)
        for tensor in inner:
            if isinstance(tensor, TensorValue):
                tensor.own = True
                tensor.graph = None if tensor.graph is False else tensor.graph


@method(DICT, "__getitem__")
@method(PARAMETER_DICT, "__getitem__")
def entry(call: Call) -> Value:
    return item(call.ev, _entries(call.receiver), call.value(0) or Unknown(), call.place.node)


@method(DICT, "__iter__", "keys")
@method(PARAMETER_DICT, "__iter__", "keys")
def names(call: Call) -> Value:
    held = _entries(call.receiver)
    return ListValue(tuple(Constant(name) for name in held.fields) if held.closed else None)


@method(DICT, "values")
@method(PARAMETER_DICT, "values")
def children(call: Call) -> Value:
    held = _entries(call.receiver)
    return ListValue(tuple(held.fields.values()) if held.closed else None)


@method(DICT, "items")
@method(PARAMETER_DICT, "items")
def named_children(call: Call) -> Value:
    held = _entries(call.receiver)
    if not held.closed:
        return ListValue(None, TupleValue((Unknown("name"), Unknown("module"))))
    return ListValue(tuple(TupleValue((Constant(name), child)) for name, child in held.fields.items()))


@function(
    "torch.nn.Parameter",
    "torch.nn.parameter.Parameter",
    "torch.nn.Buffer",
    "torch.nn.parameter.Buffer",
)
def parameter(call: Call) -> Value:
    """Return the given tensor as a trained parameter, or as a buffer."""
    data = call.value(0, "data")
    made = alias_of(data) if isinstance(data, TensorValue) else TensorValue()
    asked = call.constant(1, "requires_grad", call.name.endswith("Parameter"))
    made.graph = asked if isinstance(asked, bool) else None
    made.own = True
    if asked is True:
        mark_leaf(call.ev, made)
    # It moves together with its module.
    made.device = OF_MODULE
    return made
