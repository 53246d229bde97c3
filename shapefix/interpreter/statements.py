"""Handlers of small statements, definitions and imports. Statements with a body are in blocks.py."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import libcst as cst

from shapefix.interpreter import arithmetic, hooks
from shapefix.interpreter.annotations import annotated_value
from shapefix.interpreter.calls import Arguments, call_library
from shapefix.interpreter.containers import Contents, ListValue
from shapefix.interpreter.evaluator import Evaluator, Flow, Frame, statement
from shapefix.interpreter.expected_errors import EXPECTED_FAILURES
from shapefix.interpreter.functions import default_values
from shapefix.interpreter.modules import dotted_name
from shapefix.interpreter.names import peek, resolve
from shapefix.interpreter.narrowing import narrow
from shapefix.interpreter.records import FIELDS, stated_fields
from shapefix.interpreter.targets import bind, delete, set_contents
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.truth import is_none, truth
from shapefix.interpreter.values import (
    NONE,
    Binding,
    ClassValue,
    FunctionValue,
    Imported,
    LibraryObject,
    Parameter,
    PerhapsNone,
    Reference,
    Scope,
    Unknown,
    Value,
)


@statement(cst.Expr)
def expression_statement(ev: Evaluator, node: cst.Expr) -> Flow:
    if type(node.value) is cst.SimpleString:
        return Flow.FALLS_THROUGH
    ev.last_call = None
    result = ev.evaluate(node.value)
    if ev.last_call is not None and ev.last_call[0] is node.value:
        call, function, receiver = ev.last_call
        name, held = _variable(ev, call)
        for hook in hooks.discard:
            hook(ev, node, call, function, receiver, result, name, held)
    elif type(node.value) is cst.Attribute:
        for note in hooks.idle_attribute:
            note(ev, node, node.value, result)
    return Flow.FALLS_THROUGH


def _variable(ev: Evaluator, call: cst.Call) -> tuple[str | None, TensorValue | None]:
    """Variable at the start of a chain of methods, `self.x` of `self.x.view(-1)`, and its value."""
    node: cst.BaseExpression = call
    is_called = dotted_name(call.func) and isinstance(peek(ev, call.func), (Reference, LibraryObject))
    if is_called and call.args:
        # `torch.reshape(x, …)` or `self.relu(x)`
        node = call.args[0].value
    while isinstance(node, cst.Call):
        node = node.func.value if isinstance(node.func, cst.Attribute) else node.func
    name = dotted_name(node)
    # Only names: anything else would be run a second time.
    value = peek(ev, node) if name else None
    if isinstance(value, Unknown):
        return name, value.tensor
    return (name, value) if isinstance(value, TensorValue) else (None, None)


@statement(cst.Assign)
def assign(ev: Evaluator, node: cst.Assign) -> Flow:
    value = ev.evaluate(node.value)
    if type(node.value) is cst.BinaryOperation and ev.frame.loops:
        _note_sum(ev, node, node.value, value)
    for target in node.targets:
        bind(ev, target.target, value)
    return Flow.FALLS_THROUGH


def _scaled(ev: Evaluator, node: cst.BaseExpression, value: Value) -> Value:
    """Unknown value multiplied or divided by node: `loss` of `loss * n`."""
    while isinstance(value, Unknown) and value.tensor is None and type(node) is cst.BinaryOperation:
        if type(node.operator) not in (cst.Multiply, cst.Divide):
            break
        node = node.left
        if dotted_name(node):
            return peek(ev, node)
    return value


def _add_up(
    ev: Evaluator,
    node: cst.CSTNode,
    holder: cst.BaseExpression,
    added: cst.BaseExpression,
    value: Value,
    total: Value,
) -> None:
    for hook in hooks.add_up:
        hook(ev, node, holder, added, value, total)


def _note_sum(ev: Evaluator, node: cst.Assign, made: cst.BinaryOperation, total: Value) -> None:
    """Report `total = total + x`."""
    name = dotted_name(node.targets[0].target)
    if not name or type(made.operator) is not cst.Add:
        return
    for before, added in ((made.left, made.right), (made.right, made.left)):
        if dotted_name(before) != name:
            continue
        if dotted_name(added):
            value = peek(ev, added)
        else:
            # Anything but a name would be run a second time.
            held = peek(ev, before)
            sources = total.sources if isinstance(total, TensorValue) else ()
            value = next((source for source in sources if source is not held), NONE)
        _add_up(ev, node, before, added, value, total)
        return


@statement(cst.AnnAssign)
def annotated_assign(ev: Evaluator, node: cst.AnnAssign) -> Flow:
    if node.value is not None:
        value = ev.evaluate(node.value)
        if isinstance(value, Unknown) and value.tensor is None:
            name = node.target.value if isinstance(node.target, cst.Name) else ""
            value = annotated_value(ev, node.annotation, name) or value
        bind(ev, node.target, value)
    return Flow.FALLS_THROUGH


_IN_PLACE = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo,
    cst.PowerAssign: cst.Power,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
    cst.BitXorAssign: cst.BitXor,
    cst.LeftShiftAssign: cst.LeftShift,
    cst.RightShiftAssign: cst.RightShift,
}


@statement(cst.AugAssign)
def augmented_assign(ev: Evaluator, node: cst.AugAssign) -> Flow:
    before = ev.evaluate(node.target)
    operand = ev.evaluate(node.value)
    kind = _IN_PLACE.get(type(node.operator))
    if isinstance(node.operator, cst.MatrixMultiplyAssign):
        # Tensors have no `@=` of their own.
        bind(ev, node.target, arithmetic.operate(ev, cst.MatrixMultiply, before, operand, node))
        return Flow.FALLS_THROUGH
    if isinstance(before, TensorValue):
        if isinstance(node.target, cst.Subscript):
            # `x[i] += y` ends by assigning the sum to x[i], with the graph of y.
            total: Value = before
            if kind is not None and isinstance(operand, (TensorValue, Unknown)):
                total = arithmetic.operate(ev, kind, before, operand, node)
            bind(ev, node.target, total)
        else:
            call_library(ev, "operator.iadd", Arguments([before, operand]), node)
        if kind is cst.Add:
            _add_up(ev, node, node.target, node.value, operand, before)
        return Flow.FALLS_THROUGH
    if isinstance(before, Parameter):
        call_library(ev, "operator.iadd", Arguments([before, operand]), node)
    if isinstance(before, ListValue) and kind is cst.Add:
        joined = arithmetic.operate(ev, cst.Add, before, operand, node)
        contents = joined.contents if isinstance(joined, ListValue) else Contents(None)
        set_contents(ev, before, contents)
        return Flow.FALLS_THROUGH
    value = arithmetic.operate(ev, kind, before, operand, node) if kind is not None else Unknown()
    if kind is cst.Add and ev.frame.loops:
        _add_up(ev, node, node.target, node.value, _scaled(ev, node.value, operand), value)
    bind(ev, node.target, value)
    return Flow.FALLS_THROUGH


@statement(cst.Return)
def return_(ev: Evaluator, node: cst.Return) -> Flow:
    frame = ev.frame
    value = ev.evaluate(node.value) if node.value is not None else NONE
    frame.returns.append(value)
    if is_none(value) or (isinstance(value, PerhapsNone) and not value.exits):
        frame.empty_returns.append(node)
    if frame.exits or ev.journal.depth > frame.depth + 1:
        frame.exits.append(ev.journal.since(frame.depth))
    return Flow.LEAVES


@statement(cst.Raise)
def raise_(ev: Evaluator, node: cst.Raise) -> Flow:
    if node.exc is not None:
        ev.evaluate(node.exc)
    return Flow.LEAVES


@statement(cst.Break)
def break_(ev: Evaluator, node: cst.Break) -> Flow:
    if ev.frame.loops:
        loop = ev.frame.loops[-1]
        loop.breaks.append(ev.journal.since(loop.depth))
    return Flow.LEAVES


@statement(cst.Continue)
def continue_(ev: Evaluator, node: cst.Continue) -> Flow:
    if ev.frame.loops:
        loop = ev.frame.loops[-1]
        loop.continues.append(ev.journal.since(loop.depth))
    return Flow.LEAVES


@statement(cst.Assert)
def assert_(ev: Evaluator, node: cst.Assert) -> Flow:
    known = truth(ev.evaluate(node.test))
    if known is False:
        # The next statement is never reached.
        return Flow.LEAVES
    if known is None:
        narrow(ev, node.test, True)
    return Flow.FALLS_THROUGH


@statement(cst.Del)
def del_(ev: Evaluator, node: cst.Del) -> Flow:
    delete(ev, node.target)
    return Flow.FALLS_THROUGH


@statement(cst.Global)
def global_(ev: Evaluator, node: cst.Global) -> Flow:
    scope = ev.frame.scope
    top = scope
    while top.outer is not None:
        top = top.outer
    scope.elsewhere = {**(scope.elsewhere or {}), **{item.name.value: top for item in node.names}}
    return Flow.FALLS_THROUGH


@statement(cst.Nonlocal)
def nonlocal_(ev: Evaluator, node: cst.Nonlocal) -> Flow:
    scope = ev.frame.scope
    homes = dict(scope.elsewhere or {})
    for item in node.names:
        outer = scope.outer
        while outer is not None and item.name.value not in outer.names:
            outer = outer.outer
        if outer is not None:
            homes[item.name.value] = outer
    scope.elsewhere = homes
    return Flow.FALLS_THROUGH


@statement(cst.Import)
def import_(ev: Evaluator, node: cst.Import) -> Flow:
    for alias in node.names:
        dotted = dotted_name(alias.name)
        if ev.files.locate(ev.frame.module, dotted, 0) is None:
            for hook in hooks.read_name:
                hook(ev, dotted, alias)
        if alias.asname is not None:
            bind(ev, alias.asname.name, _imported_module(ev, dotted))
        else:
            top = dotted.partition(".")[0]
            bind(ev, cst.Name(top), _imported_module(ev, top))
    return Flow.FALLS_THROUGH


def _imported_module(ev: Evaluator, dotted: str) -> Value:
    path = ev.files.locate(ev.frame.module, dotted, 0)
    return Imported(path, None) if path is not None else Reference(dotted)


@statement(cst.ImportFrom)
def import_from(ev: Evaluator, node: cst.ImportFrom) -> Flow:
    dotted = dotted_name(node.module) if node.module is not None else ""
    level = len(node.relative)
    if isinstance(node.names, cst.ImportStar):
        return Flow.FALLS_THROUGH
    path = ev.files.locate(ev.frame.module, dotted, level)
    for alias in node.names:
        name = dotted_name(alias.name)
        value: Value
        if path is not None:
            value = Imported(path, name)
        elif level == 0:
            for hook in hooks.read_name:
                hook(ev, f"{dotted}.{name}", alias)
            value = Reference(ev.library.public_name(f"{dotted}.{name}"))
        else:
            submodule = ev.files.locate(ev.frame.module, f"{dotted}.{name}" if dotted else name, level)
            value = Imported(submodule, None) if submodule is not None else Unknown(name)
        bind(ev, alias.asname.name if alias.asname is not None else alias.name, value)
    return Flow.FALLS_THROUGH


@statement(cst.FunctionDef)
def define_function(ev: Evaluator, node: cst.FunctionDef) -> Flow:
    defaults = default_values(ev, node.params)
    function = FunctionValue(node.name.value, node, ev.frame.module, ev.frame.scope, defaults=defaults)
    getter = _getter(ev, node)
    if getter is not None:
        getter.setter = function
        return Flow.FALLS_THROUGH
    decorate(ev, function, node.decorators)
    ev.cycles.append(ev.frame.scope.names)
    ev.journal.write(ev.frame.scope.home(function.name).names, function.name, function)
    return Flow.FALLS_THROUGH


def _getter(ev: Evaluator, node: cst.FunctionDef) -> FunctionValue | None:
    """Property extended by `@name.setter` in front of a function of the same name."""
    found = ev.frame.scope.names.get(node.name.value)
    decorators = [dotted_name(decorator.decorator) for decorator in node.decorators]
    is_setter = decorators == [f"{node.name.value}.setter"]
    return (
        found
        if is_setter and isinstance(found, FunctionValue) and found.binding is Binding.PROPERTY
        else None
    )


def decorate(ev: Evaluator, function: FunctionValue, decorators: Sequence[cst.Decorator]) -> None:
    """Apply the decorators of a function to its value."""
    for decorator in decorators:
        target = decorator.decorator
        value = peek(ev, target.func if isinstance(target, cst.Call) else target)
        name = value.name if isinstance(value, Reference) else ""
        if name in EXPECTED_FAILURES:
            ev.visited.add(id(function.node))
        if name in ("builtins.property", "functools.cached_property"):
            function.binding = Binding.PROPERTY
        elif name == "builtins.staticmethod":
            function.binding = Binding.STATIC_METHOD
        elif name == "builtins.classmethod":
            function.binding = Binding.CLASS_METHOD
        elif name and ev.library.is_transparent(name):
            function.contexts = (*function.contexts, value)
        else:
            function.binding = Binding.UNKNOWN
            return


_PLAIN_METACLASSES = frozenset({"builtins.type", "abc.ABCMeta", "enum.EnumMeta", "enum.EnumType"})
"""Metaclasses whose classes make objects by `__new__` and `__init__` alone."""


def _names_metaclass(argument: cst.Arg) -> bool:
    return argument.keyword is not None and argument.keyword.value == "metaclass"


def _is_plain_metaclass(metaclass: Value) -> bool:
    return isinstance(metaclass, Reference) and metaclass.name in _PLAIN_METACLASSES


@statement(cst.ClassDef)
def define_class(ev: Evaluator, node: cst.ClassDef) -> Flow:
    bases = tuple(Unknown() if arg.star else peek(ev, arg.value) for arg in node.bases)
    if not all(_is_plain_metaclass(peek(ev, arg.value)) for arg in node.keywords if _names_metaclass(arg)):
        # Such a metaclass may run code around every constructor, as an unknown base may.
        bases = (*bases, Unknown())
    fields: dict[str, Value] = {}
    cls = ClassValue(node.name.value, node, ev.frame.module, bases, fields, partial(resolve, ev))
    ev.cycles.append(fields)
    body = Scope(ev.frame.scope)
    body.names = fields
    ev.frames.append(Frame(ev.frame.module, body, cls))
    try:
        ev.run(node.body)
    finally:
        ev.frames.pop()
    for value in fields.values():
        if isinstance(value, FunctionValue) and value.closure is body:
            value.owner = cls
            # A method does not see the names of its class.
            value.closure = ev.frame.scope
            if value.setter is not None:
                value.setter.owner = cls
                value.setter.closure = ev.frame.scope
    stated = stated_fields(ev, node, bases, fields)
    if stated is not None:
        fields[FIELDS] = stated
    ev.journal.write(ev.frame.scope.home(cls.name).names, cls.name, cls)
    for hook in hooks.define_class:
        hook(ev, cls)
    return Flow.FALLS_THROUGH
