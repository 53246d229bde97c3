"""Runs of project functions: binding parameters, following the body, collecting results."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.annotations import annotated_result, annotated_value, note_dimensions
from shapefix.interpreter.containers import CONTENTS, DictValue, ListValue, TupleValue
from shapefix.interpreter.escapes import may_lead_on
from shapefix.interpreter.evaluator import Evaluator, Flow, Frame
from shapefix.interpreter.joins import join, join_paths, without_length
from shapefix.interpreter.modules import Place
from shapefix.interpreter.names import peek, resolved
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.truth import is_none
from shapefix.interpreter.values import (
    FLOAT,
    NONE,
    BoundMethod,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Lost,
    ModulePart,
    PerhapsNone,
    Scope,
    Unknown,
    Value,
    is_array,
    present,
    unfollowed,
)

DEEPEST = 20
"""Maximum depth of followed calls."""
_WITH_METHODS = (InstanceValue, LibraryObject, BoundMethod, FunctionValue)
"""Values with methods that unknown code can call."""


def run_function(
    ev: Evaluator,
    function: FunctionValue,
    positional: list[Value],
    keywords: dict[str, Value],
    open_arguments: bool,
    node: cst.CSTNode,
    receiver: Value | None = None,
) -> Value:
    """Run a function for these arguments, called at node, and return its result.

    Recursion is not followed, nor are calls beyond the bounds: their result is Unknown.
    """
    if function.node in ev.running:
        ev.unfollowed += 1
        ev.unlimited += 1
        for hook in hooks.recursion:
            hook(ev, node)
        invalidate(ev, (*positional, *keywords.values()))
        return unfollowed(ev.place(node))
    if len(ev.calls) >= DEEPEST or ev.steps > ev.allowance:
        ev.reach_limit(node)
        ev.unfollowed += 1
        ev.unlimited += 1
        invalidate(ev, (*positional, *keywords.values()))
        return unfollowed(ev.place(node))
    place = ev.place(node)
    frame = Frame(
        function.module, Scope(function.closure), function.owner, function=function.node, called_at=place
    )
    if receiver is not None or (function.owner is not None and positional):
        frame.receiver = owner = receiver or positional[0]
        if function.name == "forward" and isinstance(owner, InstanceValue):
            ev.forwarded.add(owner)
    ev.frames.append(frame)
    ev.running.append(function.node)
    calls = ev.calls
    ev.calls = (*calls, place)
    ev.entered_files.add((function.module.path, function.qualified))
    try:
        bind_parameters(ev, function, positional, keywords, open_arguments)
        # The body may bind its parameters again.
        given = dict(frame.scope.names) if ev.library.signatures else {}
        result = run_body(ev, function, frame)
        if type(result) is Unknown and result.tensor is None and isinstance(function.node, cst.FunctionDef):
            result = annotated_result(ev, function.node.returns) or result
    finally:
        ev.calls = calls
        ev.running.pop()
        ev.frames.pop()
    for declare in hooks.returned:
        result = declare(ev, function, given, result, place)
    return result


def run_uncalled(ev: Evaluator, function: FunctionValue, receiver: Value | None) -> Value:
    """Run a function without known callers, with unknown arguments."""
    frame = Frame(function.module, Scope(function.closure), function.owner, receiver, function=function.node)
    ev.frames.append(frame)
    ev.running.append(function.node)
    calls, ev.calls = ev.calls, ()
    around = ev.entry_point
    ev.entry_point = ev.entry_points = ev.entry_points + 1
    exits = _exits(hook(ev) for hook in hooks.begin_entry_point)
    try:
        bind_unknown(ev, function.node.params, receiver)
        for hook in hooks.bind_entry_point:
            hook(ev, frame)
        return run_body(ev, function, frame)
    finally:
        ev.entry_point = around
        for leave in exits:
            leave()
        ev.calls = calls
        ev.running.pop()
        ev.frames.pop()


def _exits(found: Iterable[hooks.Exit | None]) -> list[hooks.Exit]:
    return [leave for leave in found if leave is not None]


def enter(ev: Evaluator, context: Value) -> list[hooks.Exit]:
    """Enter a context of a `with` statement or of a decorator; return the function to call at its end."""
    return _exits(hook(ev, context) for hook in hooks.enter_context)


def run_body(ev: Evaluator, function: FunctionValue, frame: Frame) -> Value:
    """Run a function with its frame entered and its parameters bound."""
    first = id(function.node) not in ev.visited
    ev.visited.add(id(function.node))
    ev.entered[function.node] = ev.steps
    if isinstance(function.node, cst.Lambda):
        return ev.evaluate(function.node.body)
    exits = [leave for context in function.contexts for leave in enter(ev, context)]
    frame.depth = ev.journal.depth
    ev.journal.begin()
    end = ev.run(function.node.body)
    for leave in reversed(exits):
        leave()
    if not frame.exits:
        ev.journal.keep(frame.scope.names)
    else:
        # It may have returned before the statements after the return ran.
        if end is Flow.FALLS_THROUGH:
            frame.exits.append(ev.journal.since(frame.depth))
        ev.journal.undo()
        ev.journal.apply(frame.exits)
    if first:
        # Inner functions are mostly passed to other code: map, Trainer, a hook. Their closures
        # only exist now.
        for inner in list(frame.scope.names.values()):
            if isinstance(inner, FunctionValue) and inner.closure is frame.scope:
                if id(inner.node) not in ev.visited and inner.node not in ev.running:
                    ev.journal.begin()
                    run_uncalled(ev, inner, None)
                    ev.journal.undo()
    if frame.generator:
        element: Value | None = None
        for value in frame.yields:
            element = value if element is None else join(element, value)
        return ListValue(None, element)
    if function.node.asynchronous is not None:
        return Unknown()
    results = list(frame.returns)
    if end is Flow.FALLS_THROUGH:
        results.append(NONE)
    if not results:
        return Unknown()
    empty: list[cst.CSTNode] = [*frame.empty_returns]
    if end is Flow.FALLS_THROUGH:
        empty.append(function.node)
    return _joined(results, [ev.place(node) for node in dict.fromkeys(empty)])


def _joined(results: list[Value], exits: list[Place]) -> Value:
    """Join the results of a function's paths; the exits are those without a value."""
    result: Value = reduce(join_paths, results)
    if exits and (type(result) is Unknown or isinstance(result, PerhapsNone)):
        values = [value for value in results if not is_none(value)]
        if values:
            return PerhapsNone(present(reduce(join_paths, values)), tuple(exits))
    return result


def bind_parameters(
    ev: Evaluator,
    function: FunctionValue,
    positional: list[Value],
    keywords: dict[str, Value],
    open_arguments: bool,
) -> None:
    """Bind arguments to parameters in the current frame; missing ones get their defaults."""
    params = function.node.params
    # No other code sees the new scope yet: there is nothing to undo.
    names = ev.frame.scope.names
    ordered = (*params.posonly_params, *params.params)
    taken: set[str] = set()
    for position, param in enumerate(ordered):
        name = param.name.value
        if position < len(positional):
            value = positional[position]
            if isinstance(value, Unknown) and not value.hint:
                value.hint = name
        elif name in keywords:
            value = keywords[name]
        else:
            value = _missing(ev, function, param, open_arguments)
        taken.add(name)
        names[name] = _refined(ev, param, value)
    for param in params.kwonly_params:
        name = param.name.value
        taken.add(name)
        value = keywords[name] if name in keywords else _missing(ev, function, param, open_arguments)
        names[name] = _refined(ev, param, value)
    if isinstance(params.star_arg, cst.Param):
        rest = tuple(positional[len(ordered) :])
        value = ListValue(None) if open_arguments else TupleValue(rest)
        names[params.star_arg.name.value] = value
    if params.star_kwarg is not None:
        others: dict[object, Value] = {k: v for k, v in keywords.items() if k not in taken}
        names[params.star_kwarg.name.value] = DictValue(others, closed=not open_arguments)


def _missing(ev: Evaluator, function: FunctionValue, param: cst.Param, open_arguments: bool) -> Value:
    name = param.name.value
    if param.default is None or open_arguments:
        return annotated_value(ev, param.annotation, name) or Unknown(name)
    if name in function.defaults:
        return resolved(ev, function.defaults[name])
    return ev.evaluate(param.default)


def default_values(ev: Evaluator, params: cst.Parameters) -> dict[str, Value]:
    """Defaults of a function definition; literals may as well be evaluated at the call."""
    return {
        param.name.value: peek(ev, param.default)
        for param in (*params.posonly_params, *params.params, *params.kwonly_params)
        if param.default is not None and not _is_literal(param.default)
    }


def _is_literal(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float, cst.SimpleString, cst.UnaryOperation)) or (
        isinstance(node, cst.Name) and node.value in ("True", "False", "None")
    )


def invalidate(ev: Evaluator, arguments: Iterable[Value]) -> None:
    """Invalidate arguments of unknown code: lengths of lists, and fields of objects, may change."""
    for value in arguments:
        if isinstance(value, _WITH_METHODS) and not is_array(value):
            ev.unfollowed += 1
        if may_lead_on(value):
            ev.escaped.append(value)
        if isinstance(value, ListValue):
            if value.length is not None:
                ev.journal.write(value.fields, CONTENTS, without_length(value.contents))
        elif isinstance(value, (InstanceValue, LibraryObject, DictValue, ModulePart)):
            for hook in hooks.escape:
                hook(ev, value)


def _refined(ev: Evaluator, param: cst.Param, value: Value) -> Value:
    """Add the facts of the annotation to an unknown argument."""
    if isinstance(value, Unknown) and value.tensor is None and param.annotation is not None:
        return annotated_value(ev, param.annotation, param.name.value) or value
    if isinstance(value, TensorValue) and param.annotation is not None:
        note_dimensions(ev, param.annotation, value)
    return value


def _unsigned(node: cst.CSTNode | None) -> cst.CSTNode | None:
    return node.expression if isinstance(node, cst.UnaryOperation) else node


def bind_unknown(ev: Evaluator, params: cst.Parameters, receiver: Value | None) -> None:
    """Bind every parameter to a value from its annotation, or to an Unknown of its own name."""
    names = ev.frame.scope.names
    ordered = [*params.posonly_params, *params.params]
    if receiver is not None and ordered:
        names[ordered.pop(0).name.value] = receiver
    # A test gets its arguments from fixtures, and `device` may be the CPU.
    function = ev.frame.function
    is_test = isinstance(function, cst.FunctionDef) and function.name.value.startswith("test")
    unknown = Lost if is_test else Unknown
    for param in (*ordered, *params.kwonly_params):
        name = param.name.value
        value = annotated_value(ev, param.annotation, name)
        if value is None or (isinstance(param.default, cst.Name) and param.default.value == "None"):
            # A parameter with a float default, such as 0.5, is rarely a number of elements.
            is_float = isinstance(_unsigned(param.default), cst.Float)
            value = FLOAT if is_float else unknown(name, tensor=getattr(value, "tensor", None))
        names[name] = value
    if isinstance(params.star_arg, cst.Param):
        names[params.star_arg.name.value] = ListValue(None)
    if params.star_kwarg is not None:
        names[params.star_kwarg.name.value] = DictValue({}, closed=False)
