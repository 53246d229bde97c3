"""Bindings of names in parsed code: assignments, targets, parameters and arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from shapefix.diagnosis.size_origins import last_name

_WRAPPERS = frozenset({"dict", "enumerate", "iter", "list", "next", "tqdm", "trange"})
"""Functions with the elements of their argument."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ADDITIONS = frozenset({"add", "append", "extend", "insert", "setdefault", "update"})
_PARTS = frozenset({"copy", "get", "items", "keys", "pop", "values"})
"""Methods with parts of their object as results."""


def own_attribute(node: ast.expr) -> str:
    """Return `best` for `self.best` and `self.best[0]`, "" for anything else."""
    while isinstance(node, ast.Subscript):
        node = node.value
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else ""


def adds_to_own(node: ast.Call, name: str) -> bool:
    """Whether a call adds to a dictionary or list of `self`."""
    method = node.func
    is_addition = isinstance(method, ast.Attribute) and method.attr in _ADDITIONS
    return is_addition and isinstance(method, ast.Attribute) and own_attribute(method.value) == name


def is_access(node: ast.expr) -> bool:
    """Whether an expression only names a value: `batch["ids"]`, `enumerate(loader)`, `losses.items()`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if not isinstance(node, ast.Call):
            node = node.value
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _PARTS:
            node = node.func.value
        elif last_name(node.func) not in _WRAPPERS or not node.args:
            return False
        else:
            node = node.args[0]
    return isinstance(node, ast.Name)


def target_parts(targets: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Yield the targets of an assignment, and the parts of tuples."""
    for target in targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,)


def parameter_names(function: ast.FunctionDef | None) -> list[str]:
    return (
        [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
        if function is not None
        else []
    )


def names_in(targets: Sequence[ast.expr]) -> set[str]:
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def bound_names(function: ast.FunctionDef) -> set[str]:
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return stored | {each.arg for each in function.args.args}


def assigned(node: ast.stmt, name: str) -> ast.expr | None:
    """Return the value of a name in a statement: assigned, added, or looped over."""
    match node:
        case ast.Assign(targets=targets, value=value) if name in names_in(targets):
            return value
        case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
            return value
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
            return value
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr=method), args=[*_, value])
        ):
            return value if target == name and method in _ADDITIONS else None
        case ast.For(target=loop, iter=values) | ast.AsyncFor(target=loop, iter=values) if name in names_in(
            [loop]
        ):
            return values
    return None


def pairs_of(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of an assignment with their values, also those of `a, b = first(), second()`."""
    for target in node.targets:
        yield target, node.value
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)


def called_names(value: ast.expr) -> Iterator[str]:
    """Yield the names in a chain of calls, the last one first: `to` and `Net` for `Net().to(device)`."""
    while isinstance(value, ast.Call):
        yield last_name(value.func)
        if not isinstance(value.func, ast.Attribute):
            return
        value = value.func.value


def same_name(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are one name, or one attribute of `self`."""
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return one.id == other.id
    return bool(own_attribute(one)) and own_attribute(one) == own_attribute(other)


def part_of(node: ast.stmt, name: str) -> int | None:
    """Return the position of a name in an assigned tuple, `train, valid = split(rows)`."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    for position, each in enumerate(target.elts if isinstance(target, ast.Tuple) else ()):
        if isinstance(each, ast.Name) and each.id == name:
            return position
    return None


def own_targets(node: ast.AST) -> set[str]:
    """Return the names bound by a comprehension."""
    return names_in([each.target for each in node.generators]) if isinstance(node, COMPREHENSIONS) else set()


def position_of(function: ast.FunctionDef, name: str) -> int:
    """Return the position of a parameter in a call, -1 for one passed by name only."""
    ordered = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    is_method = bool(ordered) and ordered[0] in ("self", "cls")
    return ordered.index(name) - is_method if name in ordered else -1


def default_of(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """Return the default of a parameter."""
    arguments = function.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(ordered), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((value for each, value in pairs if each.arg == name), None)


def passed_values(call: ast.Call, position: int, name: str) -> Iterator[ast.expr]:
    """Yield the value of a parameter in a call."""
    yield from (keyword.value for keyword in call.keywords if keyword.arg == name)
    if len(call.args) > position >= 0:
        yield call.args[position]


def statements_in(node: ast.AST) -> Iterator[ast.stmt]:
    return (each for each in ast.walk(node) if isinstance(each, ast.stmt))


def own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of a statement, without those of its body."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            yield from (each for each in ast.walk(child) if isinstance(each, ast.Call))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below one, without those of inner functions and classes."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield child
            yield from own_nodes(child)


def methods_of(cls: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    return (each for each in cls.body if isinstance(each, ast.FunctionDef))
