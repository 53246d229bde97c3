"""Calls: evaluate arguments, and run a project function or class or a library handler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.alternatives import ChosenBy, call_choices, chosen_by, rehearse_choices
from shapefix.interpreter.classes import is_closed, member, outside_bases
from shapefix.interpreter.containers import (
    MOST_CELLS,
    DictValue,
    EitherTuple,
    ListValue,
    TupleValue,
    cells,
    elements,
)
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.expected_errors import skip_expected
from shapefix.interpreter.functions import invalidate, run_function
from shapefix.interpreter.joins import join_positions
from shapefix.interpreter.modules import Place
from shapefix.interpreter.names import resolved, resolved_deep
from shapefix.interpreter.records import Field, bound_fields, fields_of_record, is_named_tuple
from shapefix.interpreter.refused_calls import is_refused, note_refused, refuses_method
from shapefix.interpreter.state import Hooks
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NONE,
    Binding,
    BoundMethod,
    ClassValue,
    Constant,
    FunctionValue,
    Imported,
    InstanceValue,
    Integer,
    Isolation,
    LibraryObject,
    Lost,
    MethodOfEach,
    Number,
    OneOf,
    OneOfItems,
    PerhapsNone,
    Reference,
    Slice,
    Text,
    Unknown,
    Value,
    is_array,
    present,
    unfollowed,
)
from shapefix.light_dataclasses import dataclass

CONTAINERS = (TupleValue, ListValue, DictValue)
_WITH_IMPORTS = (Imported, TupleValue)
"""Values that resolved_deep may change."""
CELLS_A_STEP = 4
"""How many values in a container take a library function as long as one step."""
FEW_CELLS = 100
"""Containers of up to this number of values are never too large."""
_WITH_PARAMETERS = (FunctionValue, BoundMethod, ClassValue, InstanceValue, Imported)
"""Values with parameters that the project states."""


_REFUSES_NONE = frozenset(
    f"builtins.{name}"
    for name in ("len", "list", "tuple", "set", "sum", "max", "min", "sorted", "zip", "enumerate", "reversed")
)
"""Functions that raise for None as their first argument, as those of torch do."""


@dataclass(eq=False, slots=True)
class Arguments:
    """Evaluated arguments of a call; open if `*args` or `**kwargs` may add unknown ones.

    starred is the list of unknown length that `*args` adds, None if nothing is known of it.
    """

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    open: bool = False
    starred: ListValue | None = None
    unpacked: tuple[DictValue, ...] = ()
    """Dictionaries unpacked by `**batch` into keywords."""

    @property
    def everything(self) -> tuple[Value, ...]:
        """All known arguments."""
        return (*self.positional, *self.keywords.values())

    def after(self, receiver: Value) -> Arguments:
        """The same arguments after a receiver in front."""
        return Arguments([receiver, *self.positional], self.keywords, self.open, self.starred, self.unpacked)


@dataclass(eq=False, slots=True)
class Call:
    """One call of a library function: its qualified name, place and arguments.

    receiver is the object of a method. Positions count without it.
    """

    ev: Evaluator
    name: str
    place: Place
    arguments: Arguments
    receiver: Value | None = None

    def value(self, position: int, keyword: str = "") -> Value | None:
        """Argument at this position or of this name; None if missing."""
        if 0 <= position < len(self.arguments.positional):
            return self.arguments.positional[position]
        return self.arguments.keywords.get(keyword)

    def constant(self, position: int, keyword: str = "", default: object = None) -> object:
        """Argument as a plain Python value; default if missing, None if unknown."""
        value = self.value(position, keyword)
        if value is None:
            return None if self.arguments.open else default
        return value.value if isinstance(value, Constant) else None


before_call: Hooks[Callable[[Call], None]] = Hooks()
"""A function or method of a library is about to be called."""

inherited_init: Hooks[Callable[[Call], None]] = Hooks()
"""An object of a project class is made by the `__init__` of its library's base."""

call_outside: Hooks[Callable[[Evaluator, str, Arguments, cst.CSTNode], None]] = Hooks()
"""A function or class outside of the project is about to be called, known or not, by its qualified name."""

after_call: Hooks[Callable[[Call, Value], None]] = Hooks()
"""A function or method of a library, or a property of a tensor, returned a value."""


def evaluate_call(ev: Evaluator, node: cst.Call, function: Value) -> Value:
    """Evaluate a call expression of this function."""
    arguments = evaluate_arguments(ev, node)
    if isinstance(function, (Unknown, Reference)):
        skip_expected(ev, node)
    elif isinstance(function, _WITH_PARAMETERS) and _refuses(ev, function, arguments, node):
        return Unknown()
    return call_value(ev, function, arguments, node)


def _refuses(ev: Evaluator, function: Value, arguments: Arguments, node: cst.Call) -> bool:
    """Check for a call with a TypeError, and note it."""
    if any(argument.star for argument in node.args):
        return False
    if not is_refused(resolved(ev, function), arguments.positional, arguments.keywords):
        return False
    note_refused(ev, node, function.receiver if isinstance(function, BoundMethod) else function)
    return True


def evaluate_arguments(ev: Evaluator, node: cst.Call) -> Arguments:
    """Evaluate the arguments of a call, with known `*args` and `**kwargs` unpacked."""
    arguments = Arguments()
    for argument in node.args:
        value = ev.evaluate(argument.value)
        if argument.star == "*":
            value = _iterated(ev, value, node)
            items = join_positions(value) if isinstance(value, EitherTuple) else elements(value)
            if items is None:
                arguments.open = True
                arguments.starred = value if isinstance(value, ListValue) else None
            else:
                arguments.positional.extend(items)
        elif argument.star == "**":
            if isinstance(value, DictValue):
                arguments.unpacked = (*arguments.unpacked, value)
                for key, item in value.fields.items():
                    if ev.journal.is_maybe_unbound(value.fields, key):
                        arguments.open = True
                    elif isinstance(key, str):
                        arguments.keywords[key] = item
                arguments.open = arguments.open or not value.closed
            else:
                arguments.open = True
        elif argument.keyword is not None:
            arguments.keywords[argument.keyword.value] = value
        elif arguments.open:
            # After an unknown *args no position is certain.
            continue
        else:
            arguments.positional.append(value)
    return arguments


def _iterated(ev: Evaluator, value: Value, node: cst.CSTNode) -> Value:
    """Items of an object of a library, such as a ModuleList; other values are returned as they are."""
    if not isinstance(value, LibraryObject):
        return value
    method = ev.library.method(value.kind, "__iter__")
    if method is None:
        return value
    return method(Call(ev, f"{value.kind}.__iter__", ev.place(node), Arguments(), value))


def call_value(ev: Evaluator, function: Value, arguments: Arguments, node: cst.CSTNode) -> Value:
    """Call a value with these arguments, and return the result."""
    function = present(resolved(ev, function))
    if isinstance(function, FunctionValue):
        if function.binding is Binding.UNKNOWN:
            return _decorated(ev, function, arguments, node)
        return run_function(ev, function, arguments.positional, arguments.keywords, arguments.open, node)
    if isinstance(function, BoundMethod):
        if isinstance(function.function, FunctionValue):
            return call_value(ev, function.function, arguments.after(function.receiver), node)
        return call_library(ev, function.function.name, arguments, node, function.receiver)
    if isinstance(function, Reference):
        return call_library(ev, function.name, arguments, node)
    if isinstance(function, ClassValue):
        return instantiate(ev, function, arguments, node)
    if isinstance(function, InstanceValue):
        return call_method(ev, function, "__call__", arguments, node)
    if isinstance(function, LibraryObject):
        method = ev.library.method(function.kind, "__call__")
        if method is not None:
            name = f"{function.kind}.__call__"
            _limit_size(ev, arguments, node)
            value = method(Call(ev, name, ev.place(node), arguments, function))
            if ev.notes_operations:
                _note_operation(ev, name, arguments, node, function, value)
            if isinstance(node, cst.Call):
                # Inner calls of the object share this place: record the outer one.
                ev.last_call = (node, name, function)
            return value
    if isinstance(function, OneOf):
        known = _call_one_of(ev, function, arguments, node)
        if known is not None:
            return known
    if isinstance(function, OneOfItems):
        known = _call_any_item(ev, function, arguments, node)
        if known is not None:
            return known
    if isinstance(function, MethodOfEach):
        for each in function.methods:
            call_value(ev, each, _copied(arguments), node)
        return function.owner
    for hook in hooks.call_unknown:
        hook(ev, function, node)
    isolation = _isolation_after(function, arguments)
    if isolation is None:
        ev.unfollowed += _may_do_anything(ev, function, node)
        if isinstance(node, cst.Call) and _is_method_of_receiver(node) and ev.frame.receiver is not None:
            # A method of an unknown base.
            ev.escaped.append(ev.frame.receiver)
    invalidate(ev, arguments.everything)
    result = _unfollowed(ev, function, node)
    result.isolation = isolation
    return result


def _call_one_of(ev: Evaluator, function: OneOf, arguments: Arguments, node: cst.CSTNode) -> Value | None:
    """Call each of several models or classes; None if none of them can be followed."""

    def call(choice: Value) -> Value | None:
        choice = resolved(ev, choice)
        given = arguments.positional, arguments.keywords
        if not arguments.open:
            if is_refused(choice, *given):
                return None
            if isinstance(choice, InstanceValue) and refuses_method(choice, "forward", *given):
                return None
        return call_value(ev, choice, _copied(arguments), node)

    return call_choices(ev, function, call, node)


def _call_any_item(
    ev: Evaluator, function: OneOfItems, arguments: Arguments, node: cst.CSTNode
) -> Value | None:
    """Join the results of the layers in a list; None if one of them cannot be followed."""
    return rehearse_choices(
        ev, function, lambda choice: call_value(ev, choice, _copied(arguments), node), arguments.everything
    )


def _copied(given: Arguments) -> Arguments:
    return Arguments(list(given.positional), dict(given.keywords), given.open, given.starred, given.unpacked)


def _isolation_after(function: Value, arguments: Arguments) -> Isolation | None:
    """Isolation of the object of an unknown method once it has these arguments; None if it may have more."""
    isolation = function.isolation if isinstance(function, Unknown) else None
    if isolation is None or isolation.is_broken:
        return None
    if _refers_to_objects(arguments):
        isolation.is_broken = True
        return None
    return isolation


_PLAIN = (Constant, Integer, Number, Text, TensorValue, Reference, Slice)
"""Values without references to objects of the code."""


def _refers_to_objects(arguments: Arguments) -> bool:
    """Check for a model, an optimizer or a function of the code among the arguments, or inside of one."""
    return arguments.open or not all(map(_is_plain, arguments.everything))


def _is_plain(value: Value) -> bool:
    if isinstance(value, (TupleValue, ListValue)):
        parts = elements(value)
        return parts is not None and len(parts) <= FEW_CELLS and all(map(_is_plain, parts))
    return isinstance(value, _PLAIN) or type(value) in (Unknown, Lost) or is_array(value)


def _unfollowed(ev: Evaluator, function: Value, node: cst.CSTNode) -> Unknown:
    """Result of an unknown function; that of a method has the origin of its object."""
    origin = function.origin if isinstance(function, Unknown) else None
    return unfollowed(origin or ev.place(node))


def _may_do_anything(ev: Evaluator, function: Value, node: cst.CSTNode) -> bool:
    """Check whether an unknown call may change objects of the code.

    A call with arguments only changes these; a method of the same name as a tensor's changes nothing else. A
    method of an object of the project changes the object.
    """
    if not isinstance(node, cst.Call) or (
        isinstance(function, Unknown) and function.hint.startswith("self.")
    ):
        return True
    if node.args:
        return False
    called = node.func
    return not isinstance(called, cst.Attribute) or (
        ev.library.method("torch.Tensor", called.attr.value) is None
    )


def _is_method_of_receiver(node: cst.Call) -> bool:
    """Check for a call of `self.method()` or `super().method()`."""
    owner = node.func.value if isinstance(node.func, cst.Attribute) else None
    owner = owner.func if isinstance(owner, cst.Call) else owner
    return isinstance(owner, cst.Name) and owner.value in ("self", "super", "cls")


def _decorated(ev: Evaluator, function: FunctionValue, arguments: Arguments, node: cst.CSTNode) -> Value:
    """Call a function with an unknown decorator: the result is Unknown.

    The decorator may have replaced the function. The function is still followed if it gets no arguments that
    a decorator might change.
    """
    if not arguments.everything:
        run_function(ev, function, [], {}, arguments.open, node)
    ev.unfollowed += 1
    ev.unlimited += 1
    invalidate(ev, arguments.everything)
    return unfollowed(ev.place(node))


def call_library(
    ev: Evaluator, name: str, arguments: Arguments, node: cst.CSTNode, receiver: Value | None = None
) -> Value:
    """Call a library function of this qualified name; a receiver makes it a method."""
    function = ev.library.function(name)
    if name in ev.replaced:
        invalidate(ev, arguments.everything)
        return Unknown()
    for hook in call_outside:
        hook(ev, name, arguments, node)
    if function is None:
        invalidate(ev, arguments.everything)
        if ev.library.is_class(name):
            return LibraryObject(name, dict(arguments.keywords), ev.place(node))
        result = unfollowed(ev.place(node))
        if receiver is None and not _refers_to_objects(arguments):
            result.isolation = Isolation()
        return result
    _limit_size(ev, arguments, node)
    for position, value in enumerate(arguments.positional):
        if isinstance(value, _WITH_IMPORTS):
            arguments.positional[position] = resolved_deep(ev, value)
    for key, value in arguments.keywords.items():
        if isinstance(value, _WITH_IMPORTS):
            arguments.keywords[key] = resolved_deep(ev, value)
    if arguments.positional and isinstance(arguments.positional[0], PerhapsNone):
        if name.startswith("torch.") or name in _REFUSES_NONE:
            arguments.positional[0] = present(arguments.positional[0])
    call = Call(ev, name, ev.place(node), arguments, receiver)
    for before in before_call:
        before(call)
    value = function(call)
    for after in after_call:
        after(call, value)
    if ev.notes_operations:
        _note_operation(ev, name, arguments, node, receiver, value)
    if isinstance(node, cst.Call):
        ev.last_call = (node, name, receiver or (arguments.positional[0] if arguments.positional else NONE))
    return value


def _limit_size(ev: Evaluator, arguments: Arguments, node: cst.CSTNode) -> None:
    """Count the values in containers as work; too many of them are not passed on, but forgotten."""
    for position, value in enumerate(arguments.positional):
        if isinstance(value, CONTAINERS) and _is_too_large(ev, value, node):
            arguments.positional[position] = Unknown()
    for name, value in arguments.keywords.items():
        if isinstance(value, CONTAINERS) and _is_too_large(ev, value, node):
            arguments.keywords[name] = Unknown()


def _is_too_large(ev: Evaluator, value: Value, node: cst.CSTNode) -> bool:
    size = cells((value,))
    ev.steps += size // CELLS_A_STEP
    if size > MOST_CELLS or (size > FEW_CELLS and ev.steps > ev.allowance):
        ev.reach_limit(node)
        return True
    return False


def _note_operation(
    ev: Evaluator, name: str, arguments: Arguments, node: cst.CSTNode, receiver: Value | None, value: Value
) -> None:
    positional, keywords = tuple(arguments.positional), dict(arguments.keywords)
    ev.emit(OperationCalled(ev.place(node), ev.calls, name, receiver, positional, keywords, value))


def call_method(
    ev: Evaluator, instance: InstanceValue, name: str, arguments: Arguments, node: cst.CSTNode
) -> Value:
    """Call a method of an object of a project class, its own or a library base's."""
    own = instance.fields.get(name) or member(instance.cls, name)
    if isinstance(own, FunctionValue) and own.binding is not Binding.UNKNOWN:
        is_static = own.binding is Binding.STATIC_METHOD
        given = arguments.positional if is_static else [instance, *arguments.positional]
        return run_function(ev, own, given, arguments.keywords, arguments.open, node, instance)
    if own is None and is_closed(instance.cls):
        for base in outside_bases(instance.cls):
            method = ev.library.method(base, name)
            if method is not None:
                return method(Call(ev, f"{base}.{name}", ev.place(node), arguments, instance))
    # Code out of sight may change the object and all below it.
    invalidate(ev, (instance, *arguments.everything))
    return unfollowed(ev.place(node))


def _is_constructor(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.FunctionDef) and node.name.value == "__init__"


def instantiate(ev: Evaluator, cls: ClassValue, arguments: Arguments, node: cst.CSTNode) -> Value:
    """Create an object of a project class and run its __init__."""
    if len(ev.frames) > 60:
        return Unknown()
    fields = fields_of_record(cls)
    if fields is not None and is_named_tuple(cls):
        return _named_tuple(ev, fields, arguments)
    instance = InstanceValue(cls, open=not is_closed(cls))
    ev.cycles.append(instance.fields)
    is_model = not any(map(_is_constructor, ev.running)) and member(cls, "forward") is not None
    refusals = ev.refusals
    # Records of two paths are joined field by field.
    if fields is None and (chosen := chosen_by(ev)) is not None:
        instance.facts[ChosenBy] = chosen
    init = member(cls, "__init__")
    if fields is not None:
        _fill(ev, instance, fields, arguments, node)
    elif isinstance(init, FunctionValue):
        run_function(
            ev, init, [instance, *arguments.positional], arguments.keywords, arguments.open, node, instance
        )
    else:
        outside = outside_bases(cls)
        if init is None and len(outside) == 1 and is_closed(cls) and member(cls, "__new__") is None:
            for hook in call_outside:
                hook(ev, outside[0], arguments, node)
        instance.open = instance.open or not all(
            base == "builtins.object" or ev.library.is_class(base) for base in outside_bases(cls)
        )
        if len(outside) == 1 and not instance.open:
            call = Call(ev, f"{outside[0]}.__init__", ev.place(node), arguments, instance)
            for initialized in inherited_init:
                initialized(call)
        if instance.open:
            # An unknown base may keep its arguments in attributes of their names.
            instance.fields.update((name, Unknown(name)) for name in arguments.keywords if member(cls, name))
    if is_model and not (ev.silenced or ev.caught) and ev.refusals == refusals:
        ev.models.append(instance)
    return instance


def _fill(
    ev: Evaluator, instance: InstanceValue, fields: tuple[Field, ...], arguments: Arguments, node: cst.CSTNode
) -> None:
    """Set the fields of a dataclass as its `__init__` does, and run `__post_init__`."""
    given = bound_fields(fields, arguments.positional, arguments.keywords)
    handed_on: list[Value] = []
    for field_ in fields:
        if field_.name in given:
            value = given[field_.name]
        elif field_.given and arguments.open:
            value = Unknown(field_.name)
        elif field_.factory is not None:
            value = call_value(ev, field_.factory, Arguments(), node)
        else:
            value = Unknown(field_.name) if field_.default is None else resolved(ev, field_.default)
        if not field_.kept:
            handed_on.append(value)
        elif field_.name in given or field_.given or field_.default is not None or field_.factory is not None:
            instance.fields[field_.name] = value
    after = member(instance.cls, "__post_init__")
    if isinstance(after, FunctionValue):
        run_function(ev, after, [instance, *handed_on], {}, False, node, instance)


def _named_tuple(ev: Evaluator, fields: tuple[Field, ...], arguments: Arguments) -> Value:
    given = bound_fields(fields, arguments.positional, arguments.keywords)
    values = (
        given.get(field_.name)
        or (None if arguments.open or field_.default is None else resolved(ev, field_.default))
        or Unknown(field_.name)
        for field_ in fields
    )
    return TupleValue(tuple(values), tuple(field_.name for field_ in fields))
