"""Repairs of a batch's keys: removed at the dataset, left out at the call, renamed where they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.support import rewrites
from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.domains.batches import ModelCalled
from shapefix.domains.raggedness import Column
from shapefix.interpreter.modules import Module, Place, children

_PLAIN = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)


def origin(event: ModelCalled, key: str) -> Place | None:
    """Where a key of the batch was written."""
    return next((batch.written[key] for batch in event.unpacked if key in batch.written), None)


def left_out(event: ModelCalled, keys: Sequence[str]) -> list[Fix]:
    """The columns removed where the dataset loses others already, else the keys filtered at the call."""
    names = ", ".join(f"`{key}`" for key in keys)
    columns = [origin(event, key) for key in keys]
    removal = _removal(event.place.module, columns[0])
    if removal is not None and all(_removal(event.place.module, column) is removal for column in columns):
        unread = all(
            not _mentions(event.place.module, key, column) for key, column in zip(keys, columns, strict=True)
        )
        edit = _removed_too(event.place.module, removal, keys) if unread else None
        if edit is not None:
            return [Fix(Applicability.SAFE, f"remove {names} from the dataset, too", (edit,))]
    edit = _filtered(event, keys)
    return [Fix(Applicability.SAFE, f"leave {names} out of the call", (edit,))] if edit is not None else []


def _removal(module: Module, column: Place | None) -> cst.BaseExpression | None:
    """The last list of columns, in this file, that the dataset lost after it had this one."""
    steps = column.steps if isinstance(column, Column) else ()
    for step in reversed(steps):
        if step.module is not module or not isinstance(step.node, cst.Call):
            continue
        function = step.node.func.attr.value if isinstance(step.node.func, cst.Attribute) else ""
        position = {"remove_columns": 0, "map": 99}.get(function)
        name = "column_names" if function == "remove_columns" else "remove_columns"
        given = None if position is None else rewrites.argument(step.node, position, name)
        if given is not None:
            return given.value
    return None


def _removed_too(module: Module, removal: cst.BaseExpression, keys: Sequence[str]) -> Edit | None:
    """The edit that adds names to `["text"]`, or to `"text"`."""
    if isinstance(removal, cst.SimpleString):
        names = ", ".join([removal.value, *(_quoted(key, removal) for key in keys)])
        return Edit(module.span(removal), f"[{names}]")
    last = removal.elements[-1] if isinstance(removal, (cst.List, cst.Tuple)) and removal.elements else None
    if last is None or not isinstance(last.value, cst.SimpleString):
        return None
    names = "".join(f", {_quoted(key, last.value)}" for key in keys)
    return Edit(_behind(module.span(last.value)), names)


def _filtered(event: ModelCalled, keys: Sequence[str]) -> Edit | None:
    """The edit that passes all keys of `**batch` but these."""
    node, module = event.place.node, event.place.module
    stars = [given.value for given in node.args if given.star == "**"] if isinstance(node, cst.Call) else []
    if len(stars) != 1:
        return None
    names = [f'"{key}"' for key in keys]
    several = f"not in ({', '.join(names)})" if len(names) > 1 else f"!= {names[0]}"
    given = stars[0]
    if isinstance(given, cst.DictComp):
        return _filtered_comprehension(module, given, several)
    if not isinstance(given, _PLAIN):
        return None
    code = module.code(given)
    return Edit(module.span(given), f"{{k: v for k, v in {code}.items() if k {several}}}")


def _filtered_comprehension(module: Module, given: cst.DictComp, condition: str) -> Edit | None:
    loop = given.for_in
    target = loop.target.elements[0].value if isinstance(loop.target, cst.Tuple) else loop.target
    same = (
        isinstance(target, cst.Name) and isinstance(given.key, cst.Name) and target.value == given.key.value
    )
    if not same or loop.inner_for_in is not None or loop.ifs:
        return None
    return Edit(_behind(module.span(loop.iter)), f" if {module.code(given.key)} {condition}")


def renamed(event: ModelCalled, key: str, name: str) -> list[Fix]:
    """The key renamed at the call, or where the same file writes it, if nothing else there reads it."""
    edit = _renamed_keyword(event, key, name)
    place = origin(event, key)
    if edit is None and place is not None and place.module is event.place.module:
        literal = _literal(place.node, key)
        if not _mentions(place.module, key, place):
            edit = (
                Edit(place.module.span(literal), _quoted(name, literal))
                if literal is not None
                else _renamed_column(place, key, name)
            )
    return [Fix(Applicability.SAFE, f"call it `{name}`", (edit,))] if edit is not None else []


def _renamed_keyword(event: ModelCalled, key: str, name: str) -> Edit | None:
    node = event.place.node
    for given in node.args if isinstance(node, cst.Call) else ():
        if given.keyword is not None and given.keyword.value == key:
            return Edit(event.place.module.span(given.keyword), name)
    return None


def _renamed_column(place: Place, key: str, name: str) -> Edit | None:
    """The edit that renames a column behind the last call of this file that changed the columns."""
    steps = place.steps if isinstance(place, Column) else ()
    here = [step for step in (place, *steps) if step.module is place.module]
    if not isinstance(place, Column) or not isinstance(here[-1].node, cst.Call):
        return None
    span = here[-1].span
    return Edit(_behind(span), f'.rename_column("{key}", "{name}")')


def _literal(node: cst.CSTNode, key: str) -> cst.SimpleString | None:
    """The string that writes the key: of a dictionary, of `batch["key"] = …`, of `rename_column`."""
    if isinstance(node, cst.Call):
        found = [given.value for given in node.args[1:2] if _is_text(given.value, key)]
    elif isinstance(node, cst.Subscript):
        found = [
            e.slice.value
            for e in node.slice
            if isinstance(e.slice, cst.Index) and _is_text(e.slice.value, key)
        ]
    else:
        return node if isinstance(node, cst.SimpleString) and _is_text(node, key) else None
    return found[0] if found and isinstance(found[0], cst.SimpleString) else None


def _mentions(module: Module, key: str, place: Place | None) -> bool:
    """Whether the file has the key anywhere but where it is written."""
    own = _literal(place.node, key) if place is not None else None
    return any(node is not own and _is_text(node, key) for node in _below(module.tree))


def _is_text(node: cst.CSTNode, key: str) -> bool:
    return isinstance(node, cst.SimpleString) and node.evaluated_value == key


def _quoted(name: str, like: cst.SimpleString) -> str:
    return f"{like.quote}{name}{like.quote}"


def _behind(span: Span) -> Span:
    return Span(span.path, span.end_row, span.end_column, span.end_row, span.end_column)


def _below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in children(node):
        yield from _below(child)
