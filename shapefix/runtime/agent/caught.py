"""Which `except` of the user's code has caught what: each begins with a call of ours, once compiled.

The files stay as they are, rows and columns stay theirs, and what is not caught costs nothing.
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

from . import frames

_NAME = "__shapefix_caught__"
_TELLING = ("print", "print_exc", "write", "warn", "warning", "error", "exception", "info", "debug", "log")


def install(
    caught: Callable[[BaseException, frames.Place, bool], None], loaded: Callable[[str, bytes], None]
) -> None:
    """Have the user's modules compiled so that caught is called by each handler.

    It gets the exception, the place of the `except`, and whether the handler makes up for nothing. loaded is
    told the path and the source of each module.
    """

    def call(silent: bool) -> None:
        error, frame = sys.exc_info()[1], sys._getframe(1)
        if error is not None:
            caught(error, frames.place(frame.f_code, frame.f_lasti, frame.f_lineno), silent)

    setattr(builtins, _NAME, call)
    sys.meta_path.insert(0, _Finder(loaded))


def compiled(source: bytes, path: str, flags: int = 0) -> CodeType:
    """The code of a file of the user's; flags as for compile. Raises what compile does of a wrong source."""
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
    """The statement that a handler begins with, at the place of its `except`."""
    silent = all(_only_tells(each) for each in handler.body)
    call = ast.Call(ast.Name(_NAME, ast.Load()), [ast.Constant(silent)], [])
    statement = ast.Expr(call)
    for node in (statement, call, call.func, call.args[0]):
        node.lineno = node.end_lineno = handler.lineno
        node.col_offset, node.end_col_offset = handler.col_offset, handler.col_offset + len("except")
    return statement


def _only_tells(statement: ast.stmt) -> bool:
    """Whether a statement makes up for nothing: it prints, logs, counts, goes on or gives up."""
    if isinstance(statement, ast.If):
        return all(map(_only_tells, [*statement.body, *statement.orelse]))
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    if isinstance(statement, ast.Expr):
        return not calls or (isinstance(statement.value, ast.Call) and _name(statement.value) in _TELLING)
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
    """Finds the modules that are files of the user's, and leaves all others to the finders behind it."""

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
    """Compiles from the source, whatever byte code there is."""

    def __init__(self, fullname: str, path: str, loaded: Callable[[str, bytes], None]) -> None:
        super().__init__(fullname, path)
        self._loaded = loaded

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        data = self.get_data(path)
        self._loaded(path, data)
        return compiled(data, path)
