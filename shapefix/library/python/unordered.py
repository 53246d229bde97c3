"""Iterables other than sequences: views of dictionaries, sets and generators."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter.calls import Call
from shapefix.interpreter.dictionaries import Entries
from shapefix.interpreter.values import LibraryObject

ONE_OBJECT = "numpy.<one object>"
"""Kind of an array without dimensions that holds such an iterable as its only item."""
KIND = "kind"
_VIEWS = frozenset({"keys", "values", "items"})


def class_of_items(call: Call) -> str | None:
    """Name the class of the first argument in the code, if torch and NumPy do not iterate over it."""
    node = call.place.node
    given = node.args[0] if isinstance(node, cst.Call) and node.args else None
    if given is None or given.star:
        return None
    if isinstance(given.value, cst.GeneratorExp):
        return "generator"
    if isinstance(given.value, (cst.Set, cst.SetComp)):
        return "set"
    func = given.value.func if isinstance(given.value, cst.Call) and not given.value.args else None
    if isinstance(func, cst.Attribute) and func.attr.value in _VIEWS and isinstance(call.value(0), Entries):
        return f"dict_{func.attr.value}"
    return None


def array_of_one(call: Call) -> LibraryObject | None:
    """Array of one object, made by `np.array(names.values())`."""
    kind = class_of_items(call)
    return LibraryObject(ONE_OBJECT, {}, call.place, {KIND: kind}) if kind is not None else None
