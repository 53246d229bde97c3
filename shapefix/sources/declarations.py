"""Read the notation of declared sizes: `x: f[B, T, D], mask: bool[B, T] -> f[B, T, D]`."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TypeAlias

from shapefix.light_dataclasses import dataclass

DTYPES = {
    "f": None,
    "i": None,
    "bool": "bool",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
}
"""The dtypes by their names in the notation; `f` and `i` are any float and any integer."""

EXAMPLE = '"x: f[B, T, D] -> f[B, T, D]"'
_LONGEST = 500
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


class InvalidDeclaration(ValueError):
    """A text outside of the notation; the message is the reason."""


@dataclass(frozen=True)
class DeclaredTensor:
    """A tensor: its dtype, None if any, and the expressions of its sizes."""

    text: str
    dtype: str | None
    sizes: tuple[ast.expr, ...]


DeclaredValue: TypeAlias = "DeclaredTensor | tuple[DeclaredValue, ...] | None"
"""A tensor, a tuple, or None for a value about which nothing is declared: `_`."""


@dataclass(frozen=True)
class Declaration:
    """The declared parameters of a function, without `self`, and its result."""

    text: str
    parameters: tuple[tuple[str, DeclaredValue], ...]
    result: DeclaredValue


@lru_cache(maxsize=1_000)
def declaration(text: str) -> Declaration:
    """Read a declaration. Raises InvalidDeclaration."""
    parameters, arrow, result = text.partition("->")
    # `f32[]` is a tensor without dimensions, but not valid Python.
    code = f"def f({parameters}) -> {result.strip()}: pass"
    code = re.sub(r"\[\s*\]", "[()]", code)
    try:
        if not arrow or len(text) > _LONGEST or "\n" in text:
            raise SyntaxError
        (function,) = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidDeclaration(f"cannot be read; write it like {EXAMPLE}") from None
    if not isinstance(function, ast.FunctionDef) or function.returns is None:
        raise InvalidDeclaration(f"cannot be read; write it like {EXAMPLE}")
    given = function.args
    if given.vararg or given.kwarg or given.defaults or any(given.kw_defaults) or given.posonlyargs:
        raise InvalidDeclaration("has a default or a star; name the parameters only")
    return Declaration(
        text,
        tuple((each.arg, _value(each.annotation)) for each in (*given.args, *given.kwonlyargs)),
        _value(function.returns),
    )


def _value(node: ast.expr | None) -> DeclaredValue:
    if node is None or (isinstance(node, ast.Name) and node.id == "_"):
        return None
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if node.value.id not in DTYPES:
            known = ", ".join(DTYPES)
            raise InvalidDeclaration(f"has the unknown dtype {node.value.id!r}; known are {known}")
        sizes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for size in sizes:
            _check_size(size)
        return DeclaredTensor(ast.unparse(node).replace("[()]", "[]"), DTYPES[node.value.id], tuple(sizes))
    raise InvalidDeclaration(f"has {ast.unparse(node)!r}, which is not a tensor like f32[B, 3], a tuple or _")


def _check_size(node: ast.expr) -> None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        _check_size(node.left)
        _check_size(node.right)
    elif not isinstance(node, ast.Name) and not (
        isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0
    ):
        raise InvalidDeclaration(
            f"has the size {ast.unparse(node)!r}; write numbers, names and + - * // such as 2*H"
        )
