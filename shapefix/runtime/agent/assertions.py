"""The values in a failed assert, without running code of the user's."""

from __future__ import annotations

import ast
import linecache
import operator
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

import torch

from ..protocol import AssertedValue

_SHOWN, _LENGTH = 6, 60
_MISSING = object()
_PROPERTIES = ("shape", "dtype", "device", "ndim", "requires_grad")
_METHODS = ("size", "dim", "numel", "ndimension")
_SIZED = (list, tuple, dict, set, str, bytes, range, torch.Tensor, torch.nn.ModuleList)
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def asserted_values(frame: FrameType, row: int) -> list[AssertedValue]:
    """The compared expressions of an assert in a row, with their values in a frame."""
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return []
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.lineno <= row <= (node.end_lineno or node.lineno):
            for operand in _operands(node.test):
                text, shown = ast.unparse(operand), _shown(_value(operand, frame))
                if shown not in ("", text):
                    found.setdefault(text, shown)
    return [AssertedValue(text=text, value=value) for text, value in list(found.items())[:_SHOWN]]


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """The sides of the comparisons in a test, or the test itself; constants are left out."""
    if isinstance(node, ast.BoolOp):
        for each in node.values:
            yield from _operands(each)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _operands(node.operand)
    elif isinstance(node, ast.Compare):
        yield from (each for each in (node.left, *node.comparators) if not isinstance(each, ast.Constant))
    elif not isinstance(node, ast.Constant):
        yield node


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The value of an expression; _MISSING if it is not known without a call of the user's code."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return frame.f_locals.get(name, frame.f_globals.get(name, _MISSING))
        case ast.Attribute(value=of, attr=name):
            return _attribute(_value(of, frame), name)
        case ast.Subscript(value=of, slice=index):
            return _item(_value(of, frame), _value(index, frame))
        case ast.Tuple(elts=items) | ast.List(elts=items):
            values = tuple(_value(each, frame) for each in items)
            return _MISSING if any(each is _MISSING for each in values) else values
        case ast.UnaryOp(op=ast.USub(), operand=of):
            number = _value(of, frame)
            return -number if type(number) in (int, float) else _MISSING
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _combined(_OPERATORS[type(sign)], _value(left, frame), _value(right, frame))
        case ast.Call(func=ast.Name(id="len"), args=[of], keywords=[]):
            held = _value(of, frame)
            return len(held) if type(held) in _SIZED or isinstance(held, torch.Tensor) else _MISSING
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=args, keywords=[]) if name in _METHODS:
            return _of_tensor(_value(of, frame), name, [_value(each, frame) for each in args])
    return _MISSING


def _attribute(owner: Any, name: str) -> Any:
    if isinstance(owner, torch.Tensor):
        return getattr(owner, name) if name in _PROPERTIES else _MISSING
    if isinstance(owner, (torch.nn.Module, ModuleType)) or hasattr(type(owner), "__dict__"):
        held = getattr(owner, "__dict__", {})
        for place in (held, held.get("_modules"), held.get("_parameters"), held.get("_buffers")):
            if isinstance(place, dict) and name in place:
                return place[name]
    return _MISSING


def _item(owner: Any, index: Any) -> Any:
    if type(owner) not in (tuple, list, dict, torch.Size) or type(index) not in (int, str):
        return _MISSING
    try:
        return owner[index]
    except (IndexError, KeyError, TypeError):
        return _MISSING


def _combined(sign: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if type(left) is not int or type(right) is not int:
        return _MISSING
    try:
        return sign(left, right)
    except ZeroDivisionError:
        return _MISSING


def _of_tensor(tensor: Any, name: str, given: list[Any]) -> Any:
    if not isinstance(tensor, torch.Tensor) or any(type(each) is not int for each in given):
        return _MISSING
    try:
        return getattr(tensor, name)(*given)
    except (IndexError, TypeError):
        return _MISSING


def _shown(value: Any) -> str:
    """The text of a value; empty if it is not a plain one."""
    if isinstance(value, torch.Size):
        value = tuple(value)
    if type(value) in (tuple, list):
        return repr(value)[:_LENGTH] if all(_is_plain(each) for each in value) else ""
    return repr(value)[:_LENGTH] if _is_plain(value) else ""


def _is_plain(value: Any) -> bool:
    kinds = (int, float, bool, str, type(None), torch.dtype, torch.device)
    return type(value) in kinds
