"""Places of fixed devices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, search_for
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnostics import Evidence

_GPU = re.compile(r"cuda(:\d+)?$")


@search_for("no-cuda")
def _fixed_devices(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the texts `"cuda"` without a condition, for a failing line without a device of its own."""
    if any(_is_gpu(node) or _moves_to_gpu(node) for _, node in failure.line()):
        return
    for parsed in failure.files("cuda"):
        for node in _unguarded(parsed.tree):
            if isinstance(node, ast.expr) and _is_gpu(node):
                yield parsed.place(node, f"the device is always `{ast.unparse(node)}`")


def _is_gpu(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_GPU.match(node.value))


def _moves_to_gpu(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "cuda"


def _unguarded(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes outside of conditions, comparisons, and the choices of an option."""
    if isinstance(node, (ast.IfExp, ast.Compare, ast.BoolOp)):
        return
    if isinstance(node, ast.If) and "available" in ast.unparse(node.test):
        return
    if isinstance(node, ast.keyword) and node.arg in ("choices", "help"):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _unguarded(child)
