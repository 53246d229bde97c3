"""Objects within the reach of unknown code: those passed to it, and their parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import libcst as cst

from shapefix.interpreter.containers import DictValue, EitherTuple, ListValue, TupleValue
from shapefix.interpreter.modules import nodes
from shapefix.interpreter.values import (
    BoundMethod,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    ModulePart,
    ModuleValue,
    OneOf,
    PerhapsNone,
    Scope,
    Unknown,
    Value,
    is_array,
)
from shapefix.light_dataclasses import dataclass

_MOST = 10_000
"""Maximum number of values searched for an object; beyond it, the object may be among the rest."""


@dataclass(frozen=True, eq=False, slots=True)
class Escapes:
    """Calls of unknown code up to a moment: the objects passed to it, and whether it may reach any object."""

    objects: list[Value] = field(default_factory=list)
    """Shared with later moments: only the first ones were passed before this one."""
    number: int = 0
    may_be_any: bool = False

    def reach(self, target: Value) -> bool:
        """Check whether unknown code may have changed an object of a library, such as a layer."""
        return self.may_be_any or _leads_to(self.objects[: self.number], target)


NO_ESCAPES = Escapes()
_LEADING = (
    InstanceValue, LibraryObject, BoundMethod, FunctionValue, DictValue, ListValue, TupleValue, ModulePart,
    ModuleValue,
)  # fmt: skip


def may_lead_on(value: Value) -> bool:
    """Check whether code may get another object from a value."""
    return isinstance(value, _LEADING) or (isinstance(value, Unknown) and value.has_parts)


def _leads_to(starts: list[Value], target: Value) -> bool:
    pending, seen = list(starts), {id(start) for start in starts}
    while pending:
        value = pending.pop()
        if value is target or len(seen) > _MOST:
            return True
        if isinstance(value, ModuleValue):
            # Each name of the file.
            return True
        for part in _parts(value):
            if isinstance(part, Value) and id(part) not in seen:
                seen.add(id(part))
                pending.append(part)
    return False


def _parts(value: Value) -> Iterator[object]:
    """Yield the objects within the reach of an object."""
    if isinstance(value, InstanceValue):
        yield from value.fields.values()
        yield from (each for each in value.cls.fields.values() if not isinstance(each, FunctionValue))
    elif isinstance(value, LibraryObject):
        if not is_array(value) and not value.kind.startswith("torch.optim."):
            yield from value.fields.values()
            yield from value.arguments.values()
    elif isinstance(value, DictValue):
        yield from value.fields.values()
        yield value.rest
    elif isinstance(value, ListValue):
        yield from value.contents.items or ()
        yield value.contents.element
        yield from value.either
    elif isinstance(value, TupleValue):
        yield from value.items
    elif isinstance(value, FunctionValue):
        yield from value.defaults.values()
        yield from _free_values(value)
    elif isinstance(value, BoundMethod):
        yield value.receiver
        yield value.function
    elif isinstance(value, Unknown):
        yield from _parts_of_unknown(value)


def _parts_of_unknown(value: Unknown) -> Iterator[object]:
    if isinstance(value, OneOf):
        yield from value.choices
    if isinstance(value, ModulePart):
        yield from value.modules
    if isinstance(value, EitherTuple):
        yield from value.alternatives
    if isinstance(value, PerhapsNone):
        yield value.value
    if value.has_parts:
        yield from value.attributes.values()
    yield value.used_as


def _free_values(function: FunctionValue) -> Iterator[Value]:
    """Yield the values of the names used by a function, of the scopes around it."""
    for name in function.module.once(function.node, _names):
        scope: Scope | None = function.closure
        while scope is not None and name not in scope.names:
            scope = scope.outer
        if scope is not None:
            yield scope.names[name]


def _names(function: cst.CSTNode) -> frozenset[str]:
    """Collect the names in a function, without its parameters."""
    found = {node.value for node in nodes(function) if isinstance(node, cst.Name)}
    own = {node.name.value for node in nodes(function) if isinstance(node, cst.Param)}
    return frozenset(found - own)
