"""Compile the user's modules with a call of the probe at the start of each `except`.

The files do not change, rows and columns stay the same, and code that catches nothing runs at full speed.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Any

from ..protocol import UserPlace
from . import frames

_NAME = "__shapefix_caught__"
_REPORTING = ("print", "print_exc", "write", "warn", "warning", "error", "exception", "info", "debug", "log")


def install(
    caught: Callable[[BaseException, UserPlace, bool], None], loaded: Callable[[str, bytes], None]
) -> None:
    """Have each handler in the user's modules call caught.

    caught gets the exception, the place of the `except`, and whether the handler only reports the exception.
    loaded gets the path and the source of each module.
    """

    def call(silent: bool) -> None:
        error, frame = sys.exc_info()[1], sys._getframe(1)
        if error is not None:
            caught(error, frames.place(frame.f_code, frame.f_lasti, frame.f_lineno), silent)

    setattr(builtins, _NAME, call)
    sys.meta_path.insert(0, _Finder(loaded))


def compile_with_hooks(source: bytes, path: str, flags: int = 0) -> CodeType:
    """Compile a file of the user's; flags and exceptions as for compile()."""
    try:
        tree = compile(source, path, "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True)
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
                node.body.insert(0, _call(node))
        code: CodeType = compile(tree, path, "exec", flags, dont_inherit=True)
    except (RecursionError, MemoryError):
        code = compile(source, path, "exec", flags, dont_inherit=True)
    return code


def _call(handler: ast.ExceptHandler) -> ast.stmt:
    """The first statement of a handler, at the place of its `except`."""
    silent = all(_only_reports(each) for each in handler.body)
    call = ast.Call(ast.Name(_NAME, ast.Load()), [ast.Constant(silent)], [])
    statement = ast.Expr(call)
    for node in (statement, call, call.func, call.args[0]):
        node.lineno = node.end_lineno = handler.lineno
        node.col_offset, node.end_col_offset = handler.col_offset, handler.col_offset + len("except")
    return statement


def _only_reports(statement: ast.stmt) -> bool:
    """Whether a statement does no more than print, log, count, go on or give up."""
    if isinstance(statement, ast.If):
        return all(map(_only_reports, [*statement.body, *statement.orelse]))
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    if isinstance(statement, ast.Expr):
        return not calls or (isinstance(statement.value, ast.Call) and _name(statement.value) in _REPORTING)
    simple = (ast.Pass, ast.Continue, ast.Break, ast.Import, ast.ImportFrom)
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)):
        return not calls
    return isinstance(statement, simple)


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules in the user's files; leaves all others to the finders after it."""

    def __init__(self, loaded: Callable[[str, bytes], None]) -> None:
        self._loaded = loaded

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if (
            spec is None
            or spec.origin is None
            or type(spec.loader) is not importlib.machinery.SourceFileLoader
        ):
            return None
        if not frames.is_users(spec.origin):
            return None
        spec.loader = _Loader(fullname, spec.origin, self._loaded)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles from source even if byte code exists."""

    def __init__(self, fullname: str, path: str, loaded: Callable[[str, bytes], None]) -> None:
        super().__init__(fullname, path)
        self._loaded = loaded

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        data = self.get_data(path)
        self._loaded(path, data)
        return compile_with_hooks(data, path)
