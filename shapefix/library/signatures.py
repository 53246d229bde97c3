"""Arguments by parameter name: those of a call, or of a constructor, under a signature."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from shapefix.interpreter.calls import Arguments, Call
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NONE,
    Constant,
    Integer,
    LibraryObject,
    Unknown,
    Value,
    as_size,
    as_tensor,
    is_whole,
)
from shapefix.library.library_signatures import library_signature
from shapefix.library.tensors import size_list
from shapefix.library.torch_signatures import overloads
from shapefix.tensors.polynomials import Size


@cache
def parameters(signature: str) -> tuple[tuple[str, Value | None], ...]:
    """Parameters of a signature such as `kernel_size, stride=None`; None for one without a default.

    `*size` is a parameter, too: its arguments come one by one, or as one tuple or list.
    """
    node = _parsed(signature)
    positional = [parameter.arg for parameter in (*node.posonlyargs, *node.args)]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.defaults))
    pairs = list(zip(positional, [*defaults, *node.defaults], strict=True))
    if node.vararg is not None:
        pairs.append((node.vararg.arg, None))
    pairs += zip((p.arg for p in node.kwonlyargs), node.kw_defaults, strict=True)
    return tuple(
        (name, None if default is None else _constant(ast.literal_eval(default))) for name, default in pairs
    )


@cache
def _parsed(signature: str) -> ast.arguments:
    node = ast.parse(f"lambda {signature}: 0", mode="eval").body
    assert isinstance(node, ast.Lambda)
    return node.args


@cache
def _positional(signature: str) -> int:
    """Number of parameters before the `*` of a signature."""
    node = _parsed(signature)
    return len(node.posonlyargs) + len(node.args)


@cache
def _only_by_position(signature: str) -> frozenset[str]:
    """Parameters before the `/` of a signature."""
    return frozenset(parameter.arg for parameter in _parsed(signature).posonlyargs)


@cache
def _variadic(signature: str) -> str:
    """Name of the parameter `*size` of a signature; empty without one."""
    _, star, after = signature.partition("*")
    return after.partition(",")[0].strip() if star else ""


def numbers(value: Value | None) -> list[int] | None:
    """Ints of an int, a tuple or a list; None if one of them is unknown."""
    if isinstance(value, Constant):
        return [value.value] if isinstance(value.value, int) else None
    items = elements(value)
    if items is None:
        return None
    found = [item.value for item in items if isinstance(item, Constant) and isinstance(item.value, int)]
    return found if len(found) == len(items) else None


def _constant(value: Any) -> Value:
    return TupleValue(tuple(map(_constant, value))) if isinstance(value, tuple) else Constant(value)


def bound(signature: str, arguments: Arguments) -> dict[str, Value]:
    """Bind each parameter of signature to its argument or its default; Unknown if neither is known."""
    values: dict[str, Value] = {}
    count, variadic = _positional(signature), _variadic(signature)
    positional, rest = arguments.positional[:count], arguments.positional[count:]
    unnamed = _only_by_position(signature)
    for position, (name, default) in enumerate(parameters(signature)):
        if position < len(positional):
            values[name] = positional[position]
        elif name in arguments.keywords and name not in unnamed:
            values[name] = arguments.keywords[name]
        elif name == variadic and not arguments.open:
            values[name] = _one_or_all(rest)
        else:
            values[name] = Unknown(name) if default is None or arguments.open else default
    return values


def _one_or_all(given: list[Value]) -> Value:
    """Arguments of `*size`: `f(2, 3)` is the same as `f((2, 3))`, a single one is left as it is."""
    if not given:
        return NONE
    return given[0] if len(given) == 1 else TupleValue(tuple(given))


def arguments_of(call: Call) -> BoundArguments:
    """Arguments of a tensor method, or of a function (after its tensor, if so registered), by name."""
    signatures = bound_names(call.name, call.receiver is not None)
    given = call.arguments
    if not given.keywords.keys().isdisjoint(_NUMPY_NAMES):
        keywords = {_NUMPY_NAMES.get(name, name): value for name, value in given.keywords.items()}
        given = Arguments(given.positional, keywords, given.open)
    return fitted(signatures, given)


def fitted(signatures: tuple[str, ...], given: Arguments) -> BoundArguments:
    """Arguments by parameter name, under the first fitting signature."""
    if len(signatures) == 1:
        return BoundArguments(bound(signatures[0], given))
    if given.open:
        return BoundArguments(given.keywords)
    fitting = (each for each in signatures if _fits(each, given, signatures))
    return BoundArguments(bound(next(fitting, signatures[-1]), given))


def _fits(signature: str, given: Arguments, signatures: tuple[str, ...]) -> bool:
    """Check the number of arguments and their names; names unknown to all overloads fit any of them."""
    known = dict(parameters(signature))
    others = {name for each in signatures for name, _ in parameters(each)}
    if len(given.positional) > _positional(signature) or not others.isdisjoint(given.keywords.keys() - known):
        return False
    count = len(given.positional)
    if any(name in given.keywords for name in list(known)[:count]):
        return False
    return lacks_nothing(signature, given)


def most_positional(signature: str) -> float:
    """Largest number of positional arguments; infinite for `*size`."""
    return math.inf if _variadic(signature) else _positional(signature)


def lacks_nothing(signature: str, given: Arguments) -> bool:
    """Check whether each parameter without a default has an argument; open arguments may be any."""
    needed = parameters(signature)[len(given.positional) :]
    return given.open or all(default is not None or name in given.keywords for name, default in needed)


def arguments_under(call: Call, name: str) -> BoundArguments:
    """Arguments of a call by parameter name, under the signature of the function of this name."""
    known = overloads(name) if name.startswith("torch.") else (library_signature(name),)
    return fitted(known, call.arguments)


_NUMPY_NAMES = {"axis": "dim", "axes": "dims", "keepdims": "keepdim"}
"""numpy's names of parameters, also accepted by torch."""


@cache
def bound_names(name: str, has_receiver: bool) -> tuple[str, ...]:
    """Overloads of a function or tensor method without its tensor."""
    if not has_receiver or name.startswith("torch.Tensor."):
        return overloads(name)
    return tuple(each.partition(", ")[2] for each in overloads(name))


@cache
def names_of_subject(name: str) -> tuple[str, ...]:
    """Names of a function's first parameter: mostly `input`."""
    try:
        signatures = overloads(name)
    except KeyError:
        return ("input",)
    return ("input", *(each.partition(",")[0].partition("=")[0] for each in signatures))


class BoundArguments:
    """The arguments of a call by parameter name; an absent name reads as unknown."""

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def value(self, name: str) -> Value:
        """The argument itself."""
        value = self.values.get(name)
        return value if isinstance(value, Value) else Unknown(name)

    def tensor(self, name: str) -> TensorValue | None:
        """Argument as a tensor, from now on certainly one; None for the argument None."""
        tensor = as_tensor(self.value(name))
        if tensor is not None:
            tensor.certain = True
        return tensor

    def size(self, name: str) -> Size | None:
        """Number of elements; None for other values than ints."""
        return as_size(self.value(name))

    def number(self, name: str) -> int | None:
        """Known int."""
        value = self.value(name)
        return int(value.value) if isinstance(value, Constant) and isinstance(value.value, int) else None

    def numbers(self, name: str) -> list[int] | None:
        """Ints of an int, a tuple or a list; None if one of them is unknown."""
        return numbers(self.value(name))

    def sizes(self, name: str, rank: int) -> list[Size] | None:
        """One number for each of rank dimensions, given one by one or once for all; None if unknown."""
        value = self.value(name)
        if isinstance(value, Integer) or (isinstance(value, Constant) and type(value.value) is int):
            size = as_size(value)
            return None if size is None else [size] * rank
        items = elements(value)
        if items is None or len(items) not in (1, rank):
            return None
        found = [size for size in map(as_size, items) if size is not None]
        return found * (rank if len(items) == 1 else 1) if len(found) == len(items) else None

    def shape(self, name: str) -> list[Size] | None:
        """Sizes in a tuple, a list or a torch.Size, or a single int; None if their number is unknown.

        An unknown value may be a whole shape.
        """
        value = self.value(name)
        if is_whole(value) or isinstance(value, LibraryObject):
            size = as_size(value)
            return None if size is None else [size]
        return size_list(value)

    def flag(self, name: str) -> bool | None:
        """Truth of an argument; None if unknown."""
        value = self.value(name)
        return bool(value.value) if isinstance(value, Constant) else None

    def text(self, name: str) -> str | None:
        """Known string."""
        value = self.value(name)
        return value.value if isinstance(value, Constant) and isinstance(value.value, str) else None

    def is_none(self, name: str) -> bool | None:
        """Check whether an argument is None; None if unknown."""
        value = self.value(name)
        if isinstance(value, Unknown):
            return None
        return isinstance(value, Constant) and value.value is None
