"""Code actions beyond findings: the page of a rule, a probe of a script, and guards of a function."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from lsprotocol import types

from shapefix.rulebook.pages import page_of
from shapefix.server.open_files import OpenFile
from shapefix.sources.relevance import mentions_library, mentions_training

EXPLAIN, PROBE = "shapefix.explain", "shapefix.probe"
"""The commands of the server."""
PROBE_KIND = f"{types.CodeActionKind.Source.value}.probe.shapefix"
GUARD_KIND = f"{types.CodeActionKind.RefactorRewrite.value}.guard.shapefix"


def explain_action(shown: types.Diagnostic) -> types.CodeAction | None:
    """Return the action to show the page of the rule of a diagnostic."""
    page = page_of(str(shown.code))
    if page is None:
        return None
    title = f"Explain {page.code} ({page.name})"
    command = types.Command(title, EXPLAIN, arguments=[page.code])
    return types.CodeAction(title, types.CodeActionKind.QuickFix, diagnostics=[shown], command=command)


def probe_action(file: OpenFile) -> types.CodeAction | None:
    """Return the action to probe a saved training or evaluation script; None for another file."""
    if not (mentions_library(file.data) and mentions_training(file.data) and os.path.isfile(file.path)):  # noqa: PTH113
        return None
    title = "Probe this script: run one training step"
    return types.CodeAction(title, PROBE_KIND, command=types.Command(title, PROBE, arguments=[file.path]))


def guard_action(file: OpenFile, rows: range) -> types.CodeAction | None:
    """Return the action to guard the function or module defined in some rows; its edit comes later."""
    name = _defined_in(file.data, rows) if mentions_library(file.data) else None
    if name is None:
        return None
    title = f"Assert the sizes that {name}() needs"
    return types.CodeAction(title, GUARD_KIND, data={"path": file.path, "guard": name})


def _defined_in(data: bytes, rows: range) -> str | None:
    """Return the name of the first class, method or function with its head in some rows."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return next(
        (name for name, head in _heads(tree) if head.start < rows.stop and rows.start < head.stop), None
    )


def _heads(tree: ast.Module) -> Iterator[tuple[str, range]]:
    """Yield the classes, methods and functions of a module, with the rows of their heads."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, range(node.lineno, node.body[0].lineno)
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef) and isinstance(node, ast.ClassDef):
                yield f"{node.name}.{method.name}", range(method.lineno, method.body[0].lineno)
