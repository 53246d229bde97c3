"""The tables: functions by qualified name, methods by class, classes with their bases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import TypeVar

import libcst as cst

from shapefix.domains.batches import Batches
from shapefix.domains.operations import InPlaceWrite
from shapefix.interpreter.calls import Arguments, Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value, as_tensor
from shapefix.library.data.last_batches import try_last_batch
from shapefix.library.rejections import by_position, reject, trace
from shapefix.library.signatures import names_of_subject
from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous

T = TypeVar("T")
Handler = Callable[[Call], Value]
TensorHandler = Callable[[Call, TensorValue], Value]

TENSOR = "torch.Tensor"

Wrapper = Callable[[Call, Handler], Value]
"""Handler of a call that also gets the wrapped method."""

FUNCTIONS: dict[str, Handler] = {}
METHODS: dict[str, dict[str, Handler]] = {TENSOR: {}}
BASES: dict[str, tuple[str, ...]] = {TENSOR: ()}
_declared = {TENSOR}


class RegisteredTwiceError(Exception):
    """Second handler for one name; it would disable the first one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is registered twice; wrap_method() adds to a method that is registered")


def add(handlers: dict[str, T], name: str, handler: T, kind: str = "") -> None:
    """Register a handler, for a class if kind names one. Raises RegisteredTwiceError."""
    if name in handlers:
        raise RegisteredTwiceError(f"{kind}.{name}" if kind else name)
    handlers[name] = handler


def function(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for calls of these functions or constructors."""

    def register(handler: Handler) -> Handler:
        for name in names:
            add(FUNCTIONS, name, handler)
        return handler

    return register


def declare(kind: str, *bases: str) -> None:
    """Make a library class known, with its bases."""
    if kind in _declared:
        raise RegisteredTwiceError(kind)
    _declared.add(kind)
    BASES[kind] = bases
    METHODS.setdefault(kind, {})


def method(kind: str, *names: str) -> Callable[[Handler], Handler]:
    """Register methods of a library class; an @ at the start of a name marks a property."""
    BASES.setdefault(kind, ())

    def register(handler: Handler) -> Handler:
        for name in names:
            add(METHODS.setdefault(kind, {}), name, handler, kind)
        return handler

    return register


def wrap_method(kind: str, name: str) -> Callable[[Wrapper], Wrapper]:
    """Replace a registered method; the wrapper gets the replaced one as its second argument."""
    wrapped = METHODS[kind][name]

    def register(wrapper: Wrapper) -> Wrapper:
        METHODS[kind][name] = partial(_wrapped, wrapper, wrapped)
        return wrapper

    return register


def wrap_function(*names: str) -> Callable[[Wrapper], Wrapper]:
    """Replace registered functions; the wrapper gets the replaced one as its second argument."""

    def register(wrapper: Wrapper) -> Wrapper:
        for name in names:
            FUNCTIONS[name] = partial(_wrapped, wrapper, FUNCTIONS[name])
        return wrapper

    return register


def _wrapped(wrapper: Wrapper, handler: Handler, call: Call) -> Value:
    return wrapper(call, handler)


def tensor_method(*names: str) -> Callable[[TensorHandler], TensorHandler]:
    """Register methods (or @properties) of tensors; the handler also gets the tensor."""

    def register(handler: TensorHandler) -> TensorHandler:
        for name in names:
            add(METHODS[TENSOR], name, _method(handler), TENSOR)
        return handler

    return register


def operation(
    *names: str, namespaces: tuple[str, ...] = ("torch",)
) -> Callable[[TensorHandler], TensorHandler]:
    """Register an operation available as a method and as a function of the tensor.

    `torch.transpose(x, 1, 2)` and `x.transpose(1, 2)` reach the handler as the same call: positions count
    without the tensor.
    """

    def register(handler: TensorHandler) -> TensorHandler:
        for name in names:
            add(METHODS[TENSOR], name, _method(handler), TENSOR)
            for namespace in namespaces:
                add(FUNCTIONS, f"{namespace}.{name}", _free(handler))
        return handler

    return register


def tensor_function(*names: str) -> Callable[[TensorHandler], TensorHandler]:
    """Register functions with a tensor as first argument; positions count without it."""

    def register(handler: TensorHandler) -> TensorHandler:
        for name in names:
            add(FUNCTIONS, name, _free(handler))
        return handler

    return register


def _method(handler: TensorHandler) -> Handler:
    @wraps(handler)
    def call_method(call: Call) -> Value:
        tensor = as_tensor(call.receiver)
        if tensor is None:
            return TensorValue()
        return _applied(handler, call, tensor, call)

    return call_method


def _free(handler: TensorHandler) -> Handler:
    @wraps(handler)
    def call_function(call: Call) -> Value:
        given = call.arguments
        if given.positional:
            subject, rest = given.positional[0], Arguments(given.positional[1:], given.keywords, given.open)
        else:
            name = next((each for each in names_of_subject(call.name) if each in given.keywords), None)
            if name is None:
                return TensorValue()
            subject = given.keywords[name]
            rest = Arguments([], {k: v for k, v in given.keywords.items() if k != name}, given.open)
        tensor = as_tensor(subject)
        if tensor is None:
            return TensorValue()
        tensor.certain = True
        made = _applied(handler, Call(call.ev, call.name, call.place, rest, subject), tensor, call)
        out = given.keywords.get("out")
        return _written_out(call, out, made) if isinstance(out, TensorValue) else made

    return call_function


def _applied(handler: TensorHandler, call: Call, tensor: TensorValue, written: Call) -> Value:
    """Apply an operation to a tensor; written is the call as the code has it, for rejections."""
    try:
        made = trace(call, handler(call, tensor), tensor)
        _try_last_batch(call, handler)
        if not tensor.certain and isinstance(made, TensorValue):
            made.certain = False
        return made
    except ShapeError as error:
        reject(written, error, by_position(written))
    except IndexError:
        pass
    # torch raises here: there is no result.
    return TensorValue()


def _try_last_batch(call: Call, handler: TensorHandler) -> None:
    if not call.ev.state[Batches].vary:
        return

    def again(values: Mapping[str, Value]) -> None:
        tensor = as_tensor(values["self"])
        if tensor is not None:
            positional = [value for name, value in values.items() if name.isdigit()]
            keywords = {name: values[name] for name in call.arguments.keywords}
            arguments = Arguments(positional, keywords, call.arguments.open)
            handler(Call(call.ev, call.name, call.place, arguments, tensor), tensor)

    try_last_batch(call, by_position(call), again)


def _written_out(call: Call, out: TensorValue, made: Value) -> Value:
    """Copy the result into out, as `torch.add(a, b, out=x)` does; torch resizes out to the result's sizes."""
    node = call.place.node
    arguments = node.args if isinstance(node, cst.Call) else ()
    named = [argument.value for argument in arguments if argument.keyword and argument.keyword.value == "out"]
    shared = expanded_dim(out.layout)
    call.ev.emit(
        InPlaceWrite(
            call.place, call.ev.calls, out, out.layout, named[0] if named else None, shared, refused=True
        )
    )
    out.storage.overwritten = True
    sizes = made.layout.sizes if isinstance(made, TensorValue) and made.layout is not None else None
    if out.layout is not None and (sizes is None or out.layout.sizes != sizes):
        call.ev.journal.write(out, "layout", None if sizes is None else contiguous(sizes))
    return out


def expanded_dim(layout: Layout | None) -> int | None:
    """First dimension with several elements at one address; None if not provable."""
    if layout is None:
        return None
    for dim, (size, stride) in enumerate(zip(layout.sizes, layout.strides, strict=True)):
        if stride.value == 0 and same(size, 1) is not True and at_least(size, 1):
            return dim
    return None


def lookup_method(kind: str, name: str) -> Handler | None:
    """Find a method of a class or of its nearest base with one."""
    found = METHODS.get(kind, {}).get(name)
    if found is not None:
        return found
    for base in BASES.get(kind, ()):
        found = lookup_method(base, name)
        if found is not None:
            return found
    return None


def derives(kind: str, base: str) -> bool:
    """Check whether class kind is base or derives from it."""
    return kind == base or any(derives(parent, base) for parent in BASES.get(kind, ()))
