"""Fixes that only a run knows: the number that a layer was constructed with, and the size that it got."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.runtime.observations import Failure, span
from shapefix.sources.text import Unreadable, read_source

Read = Callable[[str], str | None]
"""The text of a file by its path, None where it cannot be had."""


def on_disk(path: str) -> str | None:
    """The text that a file has now."""
    try:
        return read_source(path).text
    except Unreadable:
        return None


@dataclass(frozen=True)
class _Argument:
    """An argument of a layer's constructor, where it may stand, and what a run has measured for it."""

    name: str
    position: int
    measured: Callable[[int, Mapping[str, Any]], int | None]


def fixes(failure: Failure, read: Read) -> tuple[Fix, ...]:
    """What makes the layer that has failed fit what it got; nothing where the number stands elsewhere.

    Only a number that is written in the call itself is changed, and not where the layer's size is that of
    another dimension: then the layer is right, and what it gets is turned.
    """
    module = failure.details.get("module")
    born = span(module.get("born")) if module else None
    if module is None or born is None:
        return ()
    argument = next((each for start, each in _ARGUMENTS.items() if module["type"].startswith(start)), None)
    held = None if argument is None else _held(module, argument.name)
    if argument is None or held is None:
        return ()
    needed = argument.measured(held, module)
    text = read(born.path)
    if needed is None or needed == held or text is None:
        return ()
    place = next(_numbers(text, born, module["type"], argument, held), None)
    if place is None:
        return ()
    message = f"make the layer with {argument.name}={needed}, as measured"
    if argument.measured is _rows:
        message = f"make the embedding with {needed} rows, for the largest number of this batch"
    return (Fix(Applicability.UNSAFE, message, (Edit(place, str(needed)),)),)


def _held(module: Mapping[str, Any], name: str) -> int | None:
    """The number that a layer was made with; a LayerNorm keeps it as the size of its weight."""
    held = module["holds"].get(name)
    if held is None and name == "normalized_shape":
        size = module["parameters"].get("weight", {}).get("size", ())
        held = size[0] if len(size) == 1 else None
    return held if isinstance(held, int) else None


def _last(held: int, module: Mapping[str, Any]) -> int | None:
    size = _size(module)
    # A layer that would fit several last dimensions together lacks a flatten before it.
    flat = [math.prod(size[start:]) for start in range(1, len(size) - 1)]
    if not size or held in size[1:-1] or held in flat:
        return None
    return size[-1]


def _second(held: int, module: Mapping[str, Any]) -> int | None:
    size = _size(module)
    return size[1] if len(size) > 2 and held not in size[2:] else None


def _channels(held: int, module: Mapping[str, Any]) -> int | None:
    size, kind = _size(module), module["type"]
    dimensions = next((int(each) for each in "123" if f"{each}d" in kind), 0)
    if len(size) not in (dimensions + 1, dimensions + 2):
        return None
    return None if held in size[-dimensions:] else size[-1 - dimensions]


def _features(held: int, module: Mapping[str, Any]) -> int | None:
    size = _size(module)
    return size[1] if len(size) == 2 else _second(held, module)


def _rows(held: int, module: Mapping[str, Any]) -> int | None:
    numbers = next((each for each in module["numbers"] if each), None)
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
"""By the beginning of the layer's class."""


def _size(module: Mapping[str, Any]) -> list[int]:
    given = [*module["input"]["args"], *module["input"]["kwargs"].values()]
    return next((each["size"] for each in given if each["is"] == "tensor"), [])


def _numbers(text: str, born: Span, kind: str, argument: _Argument, held: int) -> Iterator[Span]:
    """Where the constructor's call in a text has the number that is held as an argument."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    rows = text.encode().splitlines(keepends=True)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name(node.func) != kind:
            continue
        if _span(born.path, node, rows) != born:
            continue
        given = [each.value for each in node.keywords if each.arg == argument.name]
        positional = node.args[: argument.position + 1]
        if len(positional) > argument.position and not any(isinstance(e, ast.Starred) for e in positional):
            given.append(positional[-1])
        for value in given:
            if _value(value) == held:
                yield _span(born.path, value, rows)


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
    """The number that an expression without names is, None for all others."""
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
