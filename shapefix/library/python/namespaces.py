"""Objects with names only: `SimpleNamespace(width=64)`, often a configuration."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.library.registry import declare, function, method

NAMESPACES = ("types.SimpleNamespace", "argparse.Namespace")

for kind in NAMESPACES:
    declare(kind)


@function(*NAMESPACES)
def namespace(call: Call) -> Value:
    given = call.value(0)
    fields = dict(given.fields) if isinstance(given, DictValue) else {}
    return LibraryObject(call.name, place=call.place, fields={**fields, **call.arguments.keywords})


@method(NAMESPACES[0], "@__dict__")
@method(NAMESPACES[1], "@__dict__")
def fields_of(call: Call) -> Value:
    assert isinstance(call.receiver, LibraryObject)
    # The same dictionary: `cfg.__dict__.update(...)` changes the names of cfg.
    return DictValue(call.receiver.fields, closed=False)
