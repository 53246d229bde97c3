"""Fixes for the size in a layer's constructor, from the layer's input size in a run."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.runtime.observations import RaisedException, span
from shapefix.runtime.protocol import DescribedValue, ModuleDetails
from shapefix.sources.text import Unreadable, read_source

ReadText = Callable[[str], str | None]
"""Returns the text of a file by its path, None if it cannot be read."""


def read_text(path: str) -> str | None:
    """The current text of a file, if it can be read."""
    try:
        return read_source(path).text
    except Unreadable:
        return None


@dataclass(frozen=True)
class _Argument:
    """An argument of a layer's constructor, its position, and its value measured by a run."""

    name: str
    position: int
    measured: Callable[[int, ModuleDetails], int | None]


def constructor_fixes(failure: RaisedException, read: ReadText) -> tuple[Fix, ...]:
    """The fix to match a failing layer to its input, if its size is a number in the constructor call.

    There is no fix if the layer's size is that of another dimension of the input: then the layer is right,
    and the input is permuted.
    """
    module = failure.details.get("module")
    constructed_at = span(module["constructed_at"]) if module else None
    # With another size, the layer would not fit the first batch.
    if module is None or constructed_at is None or failure.extra_batch is not None:
        return ()
    argument = next((each for start, each in _ARGUMENTS.items() if module["type"].startswith(start)), None)
    current = None if argument is None else _current_value(module, argument.name)
    if argument is None or current is None:
        return ()
    needed = argument.measured(current, module)
    text = read(constructed_at.path)
    if needed is None or needed == current or text is None:
        return ()
    place = next(_numbers(text, constructed_at, module["type"], argument, current), None)
    place = place or _passed_number(module, constructed_at, argument, current, read)
    if place is None:
        return ()
    message = f"construct the layer with {argument.name}={needed}, the measured size"
    if argument.measured is _rows:
        message = f"construct the embedding with {needed} rows, enough for the largest index in this batch"
    return (Fix(Applicability.UNSAFE, message, (Edit(place, str(needed)),)),)


def _current_value(module: ModuleDetails, name: str) -> int | None:
    """The current size of a layer; for a LayerNorm the size of its weight."""
    current = module["attributes"].get(name)
    if current is None and name == "normalized_shape":
        size = module["parameters"].get("weight", DescribedValue()).get("size", [])
        current = size[0] if len(size) == 1 else None
    return current if isinstance(current, int) else None


def _last(current: int, module: ModuleDetails) -> int | None:
    size = _size(module)
    # If the layer fits several last dimensions together, a flatten is missing before it.
    flat = [math.prod(size[start:]) for start in range(1, len(size) - 1)]
    if not size or current in size[1:-1] or current in flat:
        return None
    return size[-1]


def _second(current: int, module: ModuleDetails) -> int | None:
    size = _size(module)
    return size[1] if len(size) > 2 and current not in size[2:] else None


def _channels(current: int, module: ModuleDetails) -> int | None:
    size, kind = _size(module), module["type"]
    dimensions = next((int(each) for each in "123" if f"{each}d" in kind), 0)
    if len(size) not in (dimensions + 1, dimensions + 2):
        return None
    return None if current in size[-dimensions:] else size[-1 - dimensions]


def _features(current: int, module: ModuleDetails) -> int | None:
    size = _size(module)
    return size[1] if len(size) == 2 else _second(current, module)


def _rows(current: int, module: ModuleDetails) -> int | None:
    numbers = next((each for each in module["integer_ranges"] if each), None)
    return None if numbers is None or numbers[0] < 0 else numbers[1] + 1


_ARGUMENTS = {
    "Linear": _Argument("in_features", 0, _last),
    "Conv": _Argument("in_channels", 0, _channels),
    "BatchNorm": _Argument("num_features", 0, _features),
    "InstanceNorm": _Argument("num_features", 0, _second),
    "LayerNorm": _Argument("normalized_shape", 0, _last),
    "GroupNorm": _Argument("num_channels", 1, _features),
    "Embedding": _Argument("num_embeddings", 0, _rows),
}
"""The argument by the first part of the layer's class name."""


def _size(module: ModuleDetails) -> list[int]:
    given = [*module["input"]["args"], *module["input"]["kwargs"].values()]
    return next((each["size"] for each in given if each["kind"] == "tensor"), [])


def _numbers(text: str, constructed_at: Span, kind: str, argument: _Argument, current: int) -> Iterator[Span]:
    """The places of a layer's size in the constructor call in a text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    rows = text.encode().splitlines(keepends=True)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name(node.func) != kind:
            continue
        if _span(constructed_at.path, node, rows) != constructed_at:
            continue
        given = [each.value for each in node.keywords if each.arg == argument.name]
        positional = node.args[: argument.position + 1]
        if len(positional) > argument.position and not any(isinstance(e, ast.Starred) for e in positional):
            given.append(positional[-1])
        for value in given:
            if _value(value) == current:
                yield _span(constructed_at.path, value, rows)


def _passed_number(
    module: ModuleDetails, constructed_at: Span, argument: _Argument, current: int, read: ReadText
) -> Span | None:
    """The place of a layer's size in a call of the constructor around the layer."""
    name, position, inner = argument.name, argument.position, constructed_at
    for caller in map(span, module["constructed_through"]):
        here = _calls(inner, read)
        passed = next((_passed(call, name, position) for call, _, _ in here), None)
        parameters = next((each for _, each, _ in here if each is not None), None)
        if not isinstance(passed, ast.Name) or caller is None or parameters is None:
            return None
        if passed.id not in parameters:
            return None
        name, position, inner = passed.id, parameters.index(passed.id), caller
        for call, _, rows in _calls(caller, read):
            value = _passed(call, name, position)
            if value is not None and _value(value) == current:
                return _span(caller.path, value, rows)
    return None


def _calls(place: Span, read: ReadText) -> list[tuple[ast.Call, list[str] | None, list[bytes]]]:
    """The call at a place, the parameters around it without `self`, and the rows of its file."""
    text = read(place.path)
    try:
        tree = ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError):
        return []
    rows = (text or "").encode().splitlines(keepends=True)
    found: list[tuple[ast.Call, list[str] | None, list[bytes]]] = []

    def visit(node: ast.AST, parameters: list[str] | None) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            parameters = names[1:] if names[:1] == ["self"] else names
        if isinstance(node, ast.Call) and _span(place.path, node, rows) == place:
            found.append((node, parameters, rows))
        for each in ast.iter_child_nodes(node):
            visit(each, parameters)

    visit(tree, None)
    return found


def _passed(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """The argument of a call by its name or its position."""
    if any(isinstance(each, ast.Starred) for each in call.args[: position + 1]):
        return None
    keywords = {each.arg: each.value for each in call.keywords}
    return call.args[position] if position < len(call.args) else keywords.get(name)


def _span(path: str, node: ast.expr, rows: list[bytes]) -> Span:
    def column(row: int, offset: int) -> int:
        return len(rows[row - 1][:offset].decode("utf-8", "ignore")) + 1

    end_row, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Span(path, node.lineno, column(node.lineno, node.col_offset), end_row, column(end_row, end))


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def _value(node: ast.expr) -> int | None:
    """The value of an arithmetic expression of numbers, None for any other."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
        operation = _OPERATIONS.get(type(node.op))
        return None if operation is None else operation(left, right)
    return None


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
