"""Names read and set by statements, in the order of their evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


def last_name(node: ast.expr) -> str:
    """Return the last name of a function or of a call: `Linear` for `nn.Linear` and `nn.Linear(4, 2)`."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def occurrences(node: ast.AST) -> Iterator[ast.Name]:
    """Return the names in a statement or expression: those of a value before those of its targets."""
    if isinstance(node, ast.Name):
        yield node
        return
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        parts: list[ast.AST] = [] if node.value is None else [node.value]
        parts += node.targets if isinstance(node, ast.Assign) else [node.target]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        parts = [node.iter, node.target, *node.body, *node.orelse]
    elif isinstance(node, ast.comprehension):
        parts = [node.iter, node.target, *node.ifs]
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield from _comprehension(node, [node.elt])
        return
    elif isinstance(node, ast.DictComp):
        yield from _comprehension(node, [node.key, node.value])
        return
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        yield from occurrences(part)


def _comprehension(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, made: Sequence[ast.expr]
) -> Iterator[ast.Name]:
    """Return the names of a comprehension without those of its own."""
    own = {
        each.id for part in node.generators for each in ast.walk(part.target) if isinstance(each, ast.Name)
    }
    for part in (*node.generators, *made):
        yield from (each for each in occurrences(part) if each.id not in own)


def first_reads(statements: Sequence[ast.stmt]) -> dict[str, int]:
    """Return the names read before they are set, with their rows."""
    found: dict[str, int] = {}
    known: set[str] = set()
    for statement in statements:
        for each in occurrences(statement):
            if isinstance(each.ctx, ast.Load) and each.id not in known:
                found.setdefault(each.id, each.lineno)
            known.add(each.id)
    return found


def loads(statements: Sequence[ast.AST]) -> set[str]:
    """Return the names read by statements."""
    return {
        each.id
        for statement in statements
        for each in occurrences(statement)
        if isinstance(each.ctx, ast.Load)
    }


def stores(statements: Sequence[ast.stmt]) -> dict[str, int]:
    """Return the names set by statements, with their rows, in this order."""
    found: dict[str, int] = {}
    for statement in statements:
        for each in occurrences(statement):
            if isinstance(each.ctx, ast.Store):
                found.setdefault(each.id, each.lineno)
    return found
