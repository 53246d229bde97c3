"""Handlers of RuntimeError around calls of models: they do not catch the AssertionError of a guard."""

from __future__ import annotations

import ast
import re

from shapefix.guards.memory.names import last_name
from shapefix.sources.text import Unreadable, source_of

_MEMORY = re.compile(r"memory|\boom\b", re.IGNORECASE)
_HARMLESS = frozenset(
    {"load_state_dict", "load", "save", "cuda", "to", "empty_cache", "compile", "set_start_method", "print"}
    | {
        "init_process_group",
        "barrier",
        "import_module",
        "manual_seed",
        "get_device_properties",
        "item",
        "exit",
    }
    | {"int", "float", "str", "len", "open", "range", "format", "join", "append", "info", "warning", "debug"}
    | {
        "backward",
        "zero_grad",
        "step",
        "update",
        "log",
        "write",
        "read",
        "close",
        "send",
        "recv",
        "start",
        "put",
    }
)
"""Functions and methods without a call of a module's forward."""


def first_handler(path: str, data: bytes) -> int | None:
    """Return the row of the first handler of RuntimeError with a model's call in its `try`.

    Those that look for an exhausted memory, or raise the exception again, treat other errors alike.
    """
    if b"RuntimeError" not in data or b"except" not in data:
        return None
    try:
        tree = ast.parse(source_of(path, data).text)
    except (Unreadable, SyntaxError, ValueError, RecursionError):
        return None
    libraries = _libraries(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Try, ast.TryStar)):
            handler = next((each for each in node.handlers if _catches(each)), None)
            calls = [each for part in node.body for each in ast.walk(part) if isinstance(each, ast.Call)]
            if handler is not None and any(_may_run_model(call, libraries) for call in calls):
                return handler.lineno
    return None


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {ast.unparse(each).rpartition(".")[2] for each in kinds if each is not None}
    if "RuntimeError" not in names or not names.isdisjoint({"AssertionError", "Exception", "BaseException"}):
        return False
    if isinstance(handler.body[-1], ast.Raise):
        return False
    text = "\n".join(ast.unparse(each) for each in handler.body)
    return not (_MEMORY.search(text) and "raise" in text)


def _may_run_model(call: ast.Call, libraries: set[str]) -> bool:
    func = call.func
    name = last_name(func)
    root: ast.expr = func
    while isinstance(root, ast.Attribute):
        root = root.value
    is_library = isinstance(root, ast.Name) and root.id in libraries
    return name not in _HARMLESS and not (is_library and name != "checkpoint")


def _libraries(tree: ast.Module) -> set[str]:
    """Return the names of torch and of the standard library's modules in a file."""
    found = {
        "os",
        "sys",
        "torch",
        "np",
        "numpy",
        "time",
        "logging",
        "logger",
        "json",
        "F",
        "dist",
        "mp",
        "plt",
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            found |= {alias.asname or alias.name for alias in node.names}
    return found
