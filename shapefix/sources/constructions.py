"""Find out whether the code around a constructor call may move the object to a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MOVES = frozenset({"to", "cuda", "xpu", "to_empty", "_apply", "apply"})
_RETURNING = frozenset({"eval", "train", "float", "requires_grad_"})
"""Methods that return the module itself."""


def may_move(text: str, name: str, *, is_own: bool) -> bool | None:
    """Check whether code may move an object of the class of this name; None if it constructs none.

    is_own is whether the code is that of the class's file. An object stays where it is if the code assigns it
    to a variable that it calls, and whose attributes it reads, and does nothing else with it. Code without a
    syntax tree may do anything.
    """
    if name not in text:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return True
    if not is_own and any(isinstance(node, ast.ClassDef) and node.name == name for node in ast.walk(tree)):
        # Another class of the same name.
        return None
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last(node.func) == name]
    if any(_is_taken(node, name, parents) for node in ast.walk(tree)):
        return True
    if not calls:
        return None
    variables = [_variable(call, parents) for call in calls]
    return any(variable is None or _leaves(tree, variable, parents) for variable in variables)


def _last(node: ast.AST) -> str:
    """Last part of a name; a class of torch may have the name of one of the project."""
    if isinstance(node, ast.Attribute):
        return "" if _last(node.value) == "nn" else node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_taken(node: ast.AST, name: str, parents: dict[ast.AST, ast.AST]) -> bool:
    """Check for the class as a value: the base of another one, or an argument."""
    if (
        not isinstance(node, ast.expr)
        or _last(node) != name
        or isinstance(getattr(node, "ctx", None), ast.Store)
    ):
        return False
    around = parents.get(node)
    if isinstance(around, ast.Call) and around.func is node:
        return False
    # `super(Name, self)` in the class itself.
    return not (isinstance(around, ast.Call) and _last(around.func) in ("super", "isinstance"))


def _variable(call: ast.Call, parents: dict[ast.AST, ast.AST]) -> str | None:
    """Return the variable of the constructed object; None if it goes elsewhere."""
    node: ast.AST = call
    around = parents.get(node)
    while isinstance(around, ast.Attribute) and around.attr in _RETURNING:
        outer = parents.get(around)
        if not isinstance(outer, ast.Call):
            return None
        node, around = outer, parents.get(outer)
    if (
        isinstance(around, ast.Assign)
        and len(around.targets) == 1
        and isinstance(around.targets[0], ast.Name)
    ):
        return around.targets[0].id
    return None


def _leaves(tree: ast.AST, variable: str, parents: dict[ast.AST, ast.AST]) -> bool:
    """Check whether code does more with a variable than to call it and to use its attributes."""
    return any(_may_move_at(node, parents) for node in _reads(tree, variable))


def _reads(tree: ast.AST, variable: str) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == variable and isinstance(node.ctx, ast.Load):
            yield node


def _may_move_at(node: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    around = parents.get(node)
    if isinstance(around, ast.Attribute):
        return around.attr in _MOVES
    if isinstance(around, ast.Call):
        return around.func is not node and _last(around.func) not in ("print", "len", "repr", "summary")
    return True
