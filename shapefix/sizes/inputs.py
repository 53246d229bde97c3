"""Parse --input options: `x: f32[8, 3, H, W]`, in the notation of listings."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import field

from shapefix.checks.support.describe import SHORT
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Unknown, Value, integer
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import contiguous
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import floor_divide, modulo

EXAMPLE = '--input "x: f32[8, 3, H, W]"'
_DTYPES = {**{short: name for name, short in SHORT.items()}, **{name: name for name in SHORT}, "bool": "bool"}
_LONGEST = 1_000


class BadInput(ValueError):
    """The input cannot be parsed; the message explains why."""


@dataclass(frozen=True)
class GivenInputs:
    """Factories of the values of named parameters, and the symbols in them."""

    values: dict[str, Callable[[], Value]] = field(default_factory=dict)
    symbols: dict[str, Size] = field(default_factory=dict)


def read_inputs(texts: Sequence[str]) -> GivenInputs:
    """Parse all inputs; equal symbols are the same size. Raises BadInput."""
    read = GivenInputs()
    inputs, symbols = read.values, read.symbols
    for text in texts:
        name, parted, described = text.partition(":")
        name = name.strip()
        if not parted or not name.isidentifier() or not described.strip():
            raise BadInput(f"{text!r} is not NAME: VALUE, for example {EXAMPLE}")
        if name in inputs:
            raise BadInput(f"`{name}` is given twice")
        node = _parsed(described.strip(), text)
        _value(node, symbols)
        inputs[name] = lambda node=node: _value(node, symbols)  # type: ignore[misc]
    return read


def _parsed(described: str, text: str) -> ast.expr:
    # `f32[]` is a tensor without dimensions, but not valid Python.
    described = re.sub(r"\[\s*\]", "[()]", described)
    try:
        if len(described) > _LONGEST:
            raise SyntaxError
        return ast.parse(described, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadInput(f"{text!r} cannot be parsed; write it like {EXAMPLE}") from None


def _value(node: ast.expr, symbols: dict[str, Size]) -> Value:
    if isinstance(node, ast.Subscript):
        return _tensor(node, symbols)
    if isinstance(node, ast.Tuple):
        return TupleValue(tuple(_value(item, symbols) for item in node.elts))
    if isinstance(node, ast.List):
        return ListValue(tuple(_value(item, symbols) for item in node.elts))
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
        return DictValue(dict(zip(keys, (_value(item, symbols) for item in node.values), strict=True)))
    if isinstance(node, ast.Constant):
        return Constant(node.value)
    if isinstance(node, ast.Name) and node.id == "unknown":
        return Unknown()
    return integer(_size(node, symbols))


def _tensor(node: ast.Subscript, symbols: dict[str, Size]) -> TensorValue:
    dtype = _DTYPES.get(ast.unparse(node.value))
    if dtype is None:
        known = ", ".join([*SHORT.values(), "bool"])
        raise BadInput(f"unknown dtype {ast.unparse(node.value)!r}; known are {known}")
    entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    sizes = [_size(entry, symbols) for entry in entries]
    if any(size.value is not None and size.value < 0 for size in sizes):
        raise BadInput(f"a size of {ast.unparse(node)} is negative")
    return TensorValue(contiguous(sizes), dtype=dtype)


def _size(node: ast.expr, symbols: dict[str, Size]) -> Size:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Size.of(node.value)
    if isinstance(node, ast.Name):
        return symbols.setdefault(node.id, Size.symbol(node.id))
    if isinstance(node, ast.BinOp):
        left, right = _size(node.left, symbols), _size(node.right, symbols)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right.value != 0:
            return floor_divide(left, right)
        if isinstance(node.op, ast.Mod) and right.value != 0:
            return modulo(left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return Size.of(0) - _size(node.operand, symbols)
    said = ast.unparse(node)
    raise BadInput(f"{said!r} is not a size; write numbers, names and arithmetic such as 2*H")
