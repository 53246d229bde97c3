"""Assignments of an attribute or key anywhere in a project: fields, methods, options, dictionaries."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapefix.diagnosis.bindings import own_attribute, own_nodes
from shapefix.diagnosis.indexed_sources import IndexedSource, IndexedSources
from shapefix.diagnosis.size_origins import option_name
from shapefix.light_dataclasses import dataclass

_MOST = 2
"""The most places with one name; more of them belong to different objects."""
_SHORTEST = 2


@dataclass(frozen=True)
class GivenSetting:
    """An assignment of a value to a name; value is None for an option without a default."""

    path: str
    node: ast.expr | ast.stmt
    value: ast.expr | None


def given_settings(sources: IndexedSources, name: str, *, is_key: bool) -> tuple[GivenSetting, ...]:
    """Return the places of an attribute or of a key of any object; none if there are too many.

    Attributes may be keys of a dictionary, `Namespace(**settings)`, if no object has them.
    """
    if len(name) < _SHORTEST or name.startswith("__"):
        return ()
    parsed = [(path, source) for path in sources.paths if (source := sources.of(path, name)) is not None]
    found = (
        []
        if is_key
        else [each for path, each_source in parsed for each in _attributes(path, each_source, name)]
    )
    found = found or [each for path, each_source in parsed for each in _keys(path, each_source, name)]
    return tuple(found) if len(found) <= _MOST else ()


def _attributes(path: str, source: IndexedSource, name: str) -> Iterator[GivenSetting]:
    """Yield the fields and methods of classes, options of the command line, and keywords of constructors."""
    for cls in source.classes:
        for node in cls.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and name in _targets(node):
                yield GivenSetting(path, node, node.value)
            elif isinstance(node, ast.FunctionDef) and node.name == name:
                returns = [each for each in own_nodes(node) if isinstance(each, ast.Return)]
                is_value = any("property" in ast.unparse(each) for each in node.decorator_list)
                if is_value and len(returns) == 1:
                    yield GivenSetting(path, returns[0], returns[0].value)
                else:
                    yield GivenSetting(path, node, None)
    for node in source.assignments:
        if name in map(own_attribute, node.targets):
            yield GivenSetting(path, node, node.value)
    for call in source.calls:
        called = ast.unparse(call.func).rpartition(".")[2]
        if called == "add_argument":
            options = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
            if name in map(option_name, options):
                given = {each.arg: each.value for each in call.keywords}
                yield GivenSetting(path, call, given.get("default"))
        elif called[:1].isupper():
            for keyword in call.keywords:
                if keyword.arg == name:
                    yield GivenSetting(path, keyword.value, keyword.value)


def _keys(path: str, source: IndexedSource, name: str) -> Iterator[GivenSetting]:
    """Yield the keys of dictionaries: of literals, of `dict()`, and of assignments to an item."""
    for node in source.dictionaries:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name:
                yield GivenSetting(path, value, value)
    for call in source.calls:
        if isinstance(call.func, ast.Name) and call.func.id == "dict":
            for keyword in call.keywords:
                if keyword.arg == name:
                    yield GivenSetting(path, keyword.value, keyword.value)
    for statement in source.assignments:
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                if target.slice.value == name:
                    yield GivenSetting(path, statement, statement.value)


def _targets(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {each.id for each in targets if isinstance(each, ast.Name)}
