"""Calls of project functions with a certain TypeError, and the dead code after them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from shapefix.interpreter.classes import is_closed, is_made_by_init, member
from shapefix.interpreter.evaluator import Evaluator, Flow
from shapefix.interpreter.events import ArgumentsRefused, KeywordRefused
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.records import fields_of_record
from shapefix.interpreter.values import (
    Binding,
    BoundMethod,
    ClassValue,
    FunctionValue,
    InstanceValue,
    Value,
)

_DEFINITIONS = (cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom)


def is_refused(function: Value, positional: Sequence[Value], keywords: Collection[str]) -> bool:
    """Check for a wrong keyword, a missing argument or an additional one."""
    if isinstance(function, FunctionValue):
        return _cannot_bind(function, len(positional), keywords)
    if isinstance(function, BoundMethod):
        method = function.function
        return isinstance(method, FunctionValue) and _cannot_bind(method, len(positional) + 1, keywords)
    if isinstance(function, InstanceValue):
        return refuses_method(function, "__call__", positional, keywords)
    if isinstance(function, ClassValue):
        init = _own_init(function)
        return init is not None and _cannot_bind(init, len(positional) + 1, keywords)
    return False


def refuses_method(
    instance: InstanceValue, name: str, positional: Sequence[Value], keywords: Collection[str]
) -> bool:
    """Check whether the class's own method of this name cannot be called with these arguments."""
    method = None if name in instance.fields else member(instance.cls, name)
    if not isinstance(method, FunctionValue):
        return False
    own = method.binding is not Binding.STATIC_METHOD
    return _cannot_bind(method, len(positional) + own, keywords)


def note_refused(ev: Evaluator, call: cst.CSTNode, called: Value) -> None:
    """Note a call with a TypeError: the rest of the block is dead, if the error is certain.

    called is the function or class, or the object of a method: a subclass may override its parameters, if the
    object was made without a known caller.
    """
    if ev.frame.scope.comprehension or isinstance(ev.function, cst.Lambda):
        return
    if isinstance(called, InstanceValue) and called.open:
        return
    if isinstance(call, cst.Call) and not any(argument.star for argument in call.args):
        ev.refused = True
        ev.refusals += 1


def report_refused(ev: Evaluator, call: cst.CSTNode, instance: InstanceValue, name: str, given: int) -> None:
    """Report a call of a module of the project with a wrong number of positional arguments."""
    method = member(instance.cls, name)
    if not isinstance(method, FunctionValue) or not isinstance(method.node, cst.FunctionDef):
        return
    if instance.open or not is_closed(instance.cls) or method.binding is not Binding.PLAIN:
        return
    params = method.node.params
    ordered = (*params.posonly_params, *params.params)[1:]
    wanted = tuple(param.name.value for param in ordered if param.default is None)
    if len(wanted) <= given <= len(ordered):
        # A keyword-only parameter is missing.
        return
    report_wrong_count(
        ev,
        ev.place(call),
        instance.cls.node.name.value,
        name,
        wanted,
        len(ordered),
        given,
        Place(method.module, method.node),
    )


def report_wrong_count(
    ev: Evaluator,
    place: Place,
    owner: str,
    function: str,
    wanted: tuple[str, ...],
    most: float,
    given: int,
    defined: Place | None = None,
) -> None:
    """Report a call with a wrong number of positional arguments, unless a handler expects the TypeError."""
    if not isinstance(place.node, cst.Call) or ev.expects("TypeError"):
        return
    undecided = any(frame.undecided for frame in ev.frames)
    ev.emit(ArgumentsRefused(place, ev.calls, owner, function, wanted, most, given, defined, undecided))


def report_wrong_keyword(
    ev: Evaluator, place: Place, owner: str, argument: cst.Arg, accepted: tuple[str, ...]
) -> None:
    """Report a constructor with an unknown keyword, unless a handler expects the TypeError."""
    if not ev.expects("TypeError"):
        undecided = any(frame.undecided for frame in ev.frames)
        ev.emit(KeywordRefused(place, ev.calls, owner, argument, accepted, undecided))


def _own_init(cls: ClassValue) -> FunctionValue | None:
    """`__init__` of a class, if it certainly makes the objects."""
    init = member(cls, "__init__")
    if not isinstance(init, FunctionValue) or fields_of_record(cls) is not None:
        return None
    if cls.node.keywords or not is_made_by_init(cls):
        return None
    return init if is_closed(cls) or cls.fields.get("__init__") is init else None


def _cannot_bind(function: FunctionValue, positional: int, keywords: Collection[str]) -> bool:
    node = function.node
    if function.binding is Binding.UNKNOWN or not isinstance(node, cst.FunctionDef):
        return False
    params = node.params
    ordered = [param.name.value for param in (*params.posonly_params, *params.params)]
    named = {*ordered, *(param.name.value for param in params.kwonly_params)}
    if params.star_kwarg is None and not named.issuperset(keywords):
        return True
    if positional > len(ordered) and not isinstance(params.star_arg, cst.Param):
        return True
    if not set(ordered[:positional]).isdisjoint(keywords):
        return True
    given = {*ordered[:positional], *keywords}
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    return any(param.default is None and param.name.value not in given for param in every)


def run_top_level(ev: Evaluator, module: Module) -> None:
    """Run the top level of a file; after a refused call, only definitions and imports."""
    is_dead = False
    for statement in module.tree.body:
        for part in statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,):
            if is_dead and not isinstance(part, _DEFINITIONS):
                continue
            refused = ev.refusals
            if ev.execute(part) is Flow.LEAVES:
                if ev.refusals == refused:
                    return
                is_dead = True
