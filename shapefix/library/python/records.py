"""dataclasses and named tuples: fields, copies, and conversions to dictionaries."""

from __future__ import annotations

from shapefix.interpreter.calls import Arguments, Call, instantiate
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.records import FIELD, fields_of_record
from shapefix.interpreter.values import ClassValue, Constant, InstanceValue, LibraryObject, Unknown, Value
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import arguments_under

_NAMED = "collections.namedtuple"
_DEEPEST = 8

declare(FIELD, "builtins.object")
declare(_NAMED, "builtins.object")


@function(
    "dataclasses.field", "attr.ib", "attr.field", "attrs.field", "pydantic.Field", "pydantic.fields.Field"
)
@function("pydantic.dataclasses.Field", "flax.struct.field")
def field(call: Call) -> Value:
    given = dict(call.arguments.keywords)
    if call.arguments.open:
        given["default"] = Unknown("default")
    elif call.arguments.positional and call.name != "dataclasses.field":
        first = call.arguments.positional[0]
        if not (isinstance(first, Constant) and first.value is Ellipsis):
            given["default"] = first
    return LibraryObject(FIELD, {}, call.place, dict(given))


@function("dataclasses.replace", "copy.replace", "attr.evolve", "attrs.evolve")
def replaced(call: Call) -> Value:
    """New object of the same class with replaced fields."""
    one = arguments_under(call, "dataclasses.replace").value("obj")
    fields = fields_of_record(one.cls) if isinstance(one, InstanceValue) else None
    if fields is None or not isinstance(one, InstanceValue):
        return Unknown()
    kept = {field_.name: one.fields[field_.name] for field_ in fields if field_.name in one.fields}
    given = {field_.name for field_ in fields if field_.given}
    keywords = dict(call.arguments.keywords)
    if not call.arguments.open:
        keywords = {name: value for name, value in kept.items() if name in given} | keywords
    return instantiate(call.ev, one.cls, Arguments([], keywords, call.arguments.open), call.place.node)


@function("builtins.tuple._replace")
def replaced_in_tuple(call: Call) -> Value:
    one, changed = call.receiver, call.arguments.keywords
    if not isinstance(one, TupleValue) or not one.names or call.arguments.open:
        return Unknown()
    held = zip(one.names, one.items, strict=True)
    return TupleValue(tuple(changed.get(name, item) for name, item in held), one.names)


@function("dataclasses.asdict", "attr.asdict", "attrs.asdict")
def as_dictionary(call: Call) -> Value:
    return _plain(call, arguments_under(call, "dataclasses.asdict").value("obj"), 0)


def _plain(call: Call, value: Value, depth: int) -> Value:
    """Value with the dataclass objects in it converted to dictionaries."""
    if depth > _DEEPEST:
        return Unknown()
    fields = fields_of_record(value.cls) if isinstance(value, InstanceValue) else None
    if fields is not None and isinstance(value, InstanceValue):
        doubtful = any(call.ev.journal.is_maybe_unbound(value.fields, field_.name) for field_ in fields)
        held = {
            field_.name: _plain(call, value.fields.get(field_.name, Unknown(field_.name)), depth + 1)
            for field_ in fields
            if field_.kept
        }
        return DictValue(dict(held), closed=not doubtful)
    items = elements(value)
    if isinstance(value, ListValue) and items is not None:
        return ListValue(tuple(_plain(call, item, depth + 1) for item in items))
    if isinstance(value, DictValue):
        return DictValue(
            {key: _plain(call, item, depth + 1) for key, item in value.fields.items()}, value.closed
        )
    return value


@function("dataclasses.fields", "attr.fields", "attrs.fields")
def fields_(call: Call) -> Value:
    one = arguments_under(call, "dataclasses.fields").value("class_or_instance")
    cls = one.cls if isinstance(one, InstanceValue) else one
    fields = fields_of_record(cls) if isinstance(cls, ClassValue) else None
    if fields is None:
        return ListValue(None)
    return TupleValue(
        tuple(
            LibraryObject(FIELD, {}, call.place, {"name": Constant(field_.name)})
            for field_ in fields
            if field_.kept
        )
    )


@function(_NAMED)
def named_tuple(call: Call) -> Value:
    given = arguments_under(call, _NAMED)
    names = _names(given.value("field_names"))
    defaults = elements(given.value("defaults")) or ()
    if names is None or call.arguments.open or len(defaults) > len(names):
        return Unknown()
    fields = {
        "_names": TupleValue(tuple(Constant(name) for name in names)),
        "_defaults": TupleValue(defaults),
    }
    return LibraryObject(_NAMED, {}, call.place, dict(fields))


def _names(value: Value | None) -> list[str] | None:
    if isinstance(value, Constant) and isinstance(value.value, str):
        return value.value.replace(",", " ").split()
    items = elements(value)
    names = [item.value for item in items or () if isinstance(item, Constant)]
    return names if items is not None and len(names) == len(items) else None


@method(_NAMED, "__call__")
def make_tuple(call: Call) -> Value:
    made = call.receiver.fields if isinstance(call.receiver, LibraryObject) else {}
    names = _names(made.get("_names"))
    defaults = elements(made.get("_defaults")) or ()
    if names is None:
        return Unknown()
    values = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    if call.arguments.open:
        values = {}
    values.update(zip(names, call.arguments.positional, strict=False))
    values.update((name, value) for name, value in call.arguments.keywords.items() if name in names)
    return TupleValue(tuple(values.get(name) or Unknown(name) for name in names), tuple(names))
