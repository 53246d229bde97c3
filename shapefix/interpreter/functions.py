"""Running a project function: binding parameters, following the body, collecting what it returns."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from shapefix.interpreter.annotations import annotated_value
from shapefix.interpreter.attempts import StepKind
from shapefix.interpreter.containers import CONTENTS, DictValue, ListValue, TupleValue
from shapefix.interpreter.devices import OF_MODULE, is_forward
from shapefix.interpreter.evaluator import Evaluator, Flow, Frame
from shapefix.interpreter.joins import join, without_length
from shapefix.interpreter.names import peek, resolved
from shapefix.interpreter.scopes import Scope
from shapefix.interpreter.tensor_values import as_tensor
from shapefix.interpreter.values import (
    NONE,
    NUMBER,
    BoundMethod,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Unknown,
    Value,
)

DEEPEST = 12
"""Calls inside calls are followed this far."""
_WITH_METHODS = (InstanceValue, LibraryObject, BoundMethod, FunctionValue)
"""What unknown code can make do something of its own."""


def run_function(
    ev: Evaluator,
    function: FunctionValue,
    positional: list[Value],
    keywords: dict[str, Value],
    open_arguments: bool,
    node: cst.CSTNode,
    receiver: Value | None = None,
) -> Value:
    """What the function returns for these arguments, the call standing at node.

    Recursion is not followed, nor are calls beyond the bounds: their result is Unknown.
    """
    if function.node in ev.running:
        ev.unfollowed += 1
        ev.note(StepKind.AGAIN, node)
        invalidate(ev, (*positional, *keywords.values()))
        return Unknown()
    if len(ev.calls) >= DEEPEST or ev.steps > ev.allowance:
        ev.bounded += 1
        ev.unfollowed += 1
        invalidate(ev, (*positional, *keywords.values()))
        return Unknown()
    place = ev.place(node)
    frame = Frame(function.module, Scope(function.closure), function.owner, function=function.node)
    if receiver is not None or (function.owner is not None and positional):
        frame.receiver = receiver or positional[0]
    ev.frames.append(frame)
    ev.running.append(function.node)
    calls = ev.calls
    ev.calls = (*calls, place)
    try:
        bind_parameters(ev, function, positional, keywords, open_arguments)
        return run_body(ev, function, frame)
    finally:
        ev.calls = calls
        ev.running.pop()
        ev.frames.pop()


def run_uncalled(ev: Evaluator, function: FunctionValue, receiver: Value | None) -> Value:
    """Run a function that nobody called, with unknown arguments."""
    frame = Frame(function.module, Scope(function.closure), function.owner, receiver, function=function.node)
    ev.frames.append(frame)
    ev.running.append(function.node)
    calls, ev.calls = ev.calls, ()
    root, gradients = ev.root, ev.gradients
    ev.root = ev.roots = ev.roots + 1
    # Whoever calls it may do so under no_grad.
    ev.gradients = None
    try:
        bind_unknown(ev, function.node.params, receiver)
        if is_forward(ev, function.node, receiver):
            for value in frame.scope.names.values():
                tensor = as_tensor(value)
                if tensor is not None:
                    tensor.device = OF_MODULE
        return run_body(ev, function, frame)
    finally:
        ev.root, ev.gradients = root, gradients
        ev.calls = calls
        ev.running.pop()
        ev.frames.pop()


def run_body(ev: Evaluator, function: FunctionValue, frame: Frame) -> Value:
    """Run a function whose frame has been entered and whose parameters have been bound."""
    first = id(function.node) not in ev.visited
    ev.visited.add(id(function.node))
    if isinstance(function.node, cst.Lambda):
        return ev.evaluate(function.node.body)
    gradients = ev.gradients
    if function.gradients is not None:
        ev.gradients = ev.library.records_gradients(function.gradients, gradients)
    ev.casting += function.casting
    frame.depth = ev.journal.depth
    ev.journal.begin()
    end = ev.run(function.node.body)
    if function.gradients is not None:
        ev.gradients = gradients
    ev.casting -= function.casting
    if not frame.exits:
        ev.journal.keep(frame.scope.names)
    else:
        # It may have returned before what stands behind the return was done.
        if end == Flow.FALLS_THROUGH:
            frame.exits.append(ev.journal.since(frame.depth))
        ev.journal.undo()
        ev.journal.apply(frame.exits)
    if first:
        # Inner functions are mostly handed to somebody else's code: map, Trainer, a hook. What they close
        # over is only there now.
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
    if end == Flow.FALLS_THROUGH:
        results.append(NONE)
    if not results:
        return Unknown()
    result = results[0]
    for value in results[1:]:
        result = join(result, value)
    return result


def bind_parameters(
    ev: Evaluator,
    function: FunctionValue,
    positional: list[Value],
    keywords: dict[str, Value],
    open_arguments: bool,
) -> None:
    """Bind arguments to parameters in the current frame; what is not given gets its default."""
    params = function.node.params
    # Nobody else sees the new scope yet: there is nothing to undo.
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
    """The defaults of a function that is being defined; literals may as well be evaluated at the call."""
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
    """What unknown code was handed, it may have changed: lists lose what was known of their length,
    objects the fields that are meant to be changed.
    """
    for value in arguments:
        if isinstance(value, _WITH_METHODS):
            ev.unfollowed += 1
            if isinstance(value, (InstanceValue, LibraryObject)):
                # It may have been switched to training, or to evaluation.
                ev.journal.write(ev.training, value, Unknown())
        if isinstance(value, (InstanceValue, LibraryObject, DictValue)):
            ev.library.moved_by_others(ev, value)
        if isinstance(value, ListValue) and value.length is not None:
            ev.journal.write(value.fields, CONTENTS, without_length(value.contents))
        elif isinstance(value, LibraryObject):
            for name in ev.library.changeable(value.kind):
                ev.journal.write(value.fields, name, Unknown(name))


def _refined(ev: Evaluator, param: cst.Param, value: Value) -> Value:
    """What the annotation adds to an argument about which nothing is known."""
    if isinstance(value, Unknown) and value.tensor is None and param.annotation is not None:
        return annotated_value(ev, param.annotation, param.name.value) or value
    return value


def _unsigned(node: cst.CSTNode | None) -> cst.CSTNode | None:
    return node.expression if isinstance(node, cst.UnaryOperation) else node


def bind_unknown(ev: Evaluator, params: cst.Parameters, receiver: Value | None) -> None:
    """Bind every parameter to what its annotation says, or to an Unknown of its own name."""
    names = ev.frame.scope.names
    ordered = [*params.posonly_params, *params.params]
    if receiver is not None and ordered:
        names[ordered.pop(0).name.value] = receiver
    for param in (*ordered, *params.kwonly_params):
        name = param.name.value
        value = annotated_value(ev, param.annotation, name)
        if value is None or (isinstance(param.default, cst.Name) and param.default.value == "None"):
            # What is 0.5 by default is hardly ever a number of elements.
            is_float = isinstance(_unsigned(param.default), cst.Float)
            value = NUMBER if is_float else Unknown(name, tensor=getattr(value, "tensor", None))
        names[name] = value
    if isinstance(params.star_arg, cst.Param):
        names[params.star_arg.name.value] = ListValue(None)
    if params.star_kwarg is not None:
        names[params.star_kwarg.name.value] = DictValue({}, closed=False)
