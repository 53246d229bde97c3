"""Arguments by parameter name: those of a call, or of a constructor, under a signature."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from typing import Any

from shapefix.interpreter.calls import Arguments, Call
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, Unknown, Value, as_size, as_tensor
from shapefix.library.library_signatures import library_signature
from shapefix.library.torch_signatures import signature
from shapefix.tensors.polynomials import Size


@cache
def parameters(signature: str) -> tuple[tuple[str, Value | None], ...]:
    """Parameters of a signature such as `kernel_size, stride=None`; None for one without a default."""
    node = _parsed(signature)
    positional = [parameter.arg for parameter in (*node.posonlyargs, *node.args)]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.defaults))
    pairs = list(zip(positional, [*defaults, *node.defaults], strict=True))
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
    positional, unnamed = arguments.positional[: _positional(signature)], _only_by_position(signature)
    for position, (name, default) in enumerate(parameters(signature)):
        if position < len(positional):
            values[name] = positional[position]
        elif name in arguments.keywords and name not in unnamed:
            values[name] = arguments.keywords[name]
        else:
            values[name] = Unknown(name) if default is None or arguments.open else default
    return values


def arguments_of(call: Call) -> BoundArguments:
    """Arguments of a tensor method, or of a function after its tensor, by parameter name."""
    positions = bound_names(call.name, call.receiver is not None)
    given = call.arguments
    if not given.keywords.keys().isdisjoint(_NUMPY_NAMES):
        keywords = {_NUMPY_NAMES.get(name, name): value for name, value in given.keywords.items()}
        given = Arguments(given.positional, keywords, given.open)
    return BoundArguments(bound(positions, given))


def arguments_under(call: Call, name: str) -> BoundArguments:
    """Arguments of a call by parameter name, under the signature of the function of this name."""
    known = signature(name) if name.startswith("torch.") else library_signature(name)
    return BoundArguments(bound(known, call.arguments))


_NUMPY_NAMES = {"axis": "dim", "axes": "dims", "keepdims": "keepdim"}
"""numpy's names of parameters, also accepted by torch."""


@cache
def bound_names(name: str, has_receiver: bool) -> str:
    """Signature of a function or tensor method without its tensor."""
    text = signature(name)
    is_function = not name.startswith("torch.Tensor.")
    return text.partition(", ")[2] if has_receiver and is_function else text


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
