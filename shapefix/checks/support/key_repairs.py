"""Repairs of batch keys: remove the column, filter the key at the call, or rename it."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from shapefix.checks.support import rewrites
from shapefix.diagnostics import Applicability, Edit, Fix
from shapefix.domains.batches import ModelCalled
from shapefix.domains.raggedness import Column
from shapefix.interpreter.modules import Module, Place, nodes, target_names

_PLAIN = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)


def origin(event: ModelCalled, key: str) -> Place | None:
    """Return the place setting a key of the batch."""
    return next((batch.written[key] for batch in event.unpacked if key in batch.written), None)


def left_out(event: ModelCalled, keys: Sequence[str]) -> list[Fix]:
    """Extend an existing column removal of the dataset, or else filter the keys at the call."""
    names = ", ".join(f"`{key}`" for key in keys)
    columns = [origin(event, key) for key in keys]
    removal = _removal(event.place.module, columns[0])
    if removal is not None and all(_removal(event.place.module, column) is removal for column in columns):
        unread = all(
            not _mentions(event.place.module, key, column) and not _is_taken(event, key)
            for key, column in zip(keys, columns, strict=True)
        )
        edit = _removed_too(event.place.module, removal, keys) if unread else None
        if edit is not None:
            return [Fix(Applicability.SAFE, f"also remove {names} from the dataset", (edit,))]
    edit = None if event.trainer else _filtered(event, keys)
    return [Fix(Applicability.SAFE, f"do not pass {names}", (edit,))] if edit is not None else []


def _removal(module: Module, column: Place | None) -> cst.BaseExpression | None:
    """Return the last list of removed columns in this file, after this column was added."""
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
    """Return the edit to add names to `["text"]`, or to `"text"`."""
    if isinstance(removal, cst.SimpleString):
        names = ", ".join([removal.value, *(_quoted(key, removal) for key in keys)])
        return Edit(module.span(removal), f"[{names}]")
    last = removal.elements[-1] if isinstance(removal, (cst.List, cst.Tuple)) and removal.elements else None
    if last is None or not isinstance(last.value, cst.SimpleString):
        return None
    names = "".join(f", {_quoted(key, last.value)}" for key in keys)
    return Edit(module.span(last.value).end(), names)


def _filtered(event: ModelCalled, keys: Sequence[str]) -> Edit | None:
    """Return the edit to pass all keys of `**batch` except these."""
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
    return Edit(module.span(loop.iter).end(), f" if {module.code(given.key)} {condition}")


def renamed(event: ModelCalled, key: str, name: str) -> list[Fix]:
    """Rename the key at the call, or at its assignment in this file if nothing else reads it.

    It is unsafe: the model ran without the argument, and may reject its value.
    """
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
    message = f"rename the key to `{name}`"
    return [Fix(Applicability.UNSAFE, message, (edit,))] if edit is not None else []


def _renamed_keyword(event: ModelCalled, key: str, name: str) -> Edit | None:
    node = event.place.node
    for given in node.args if isinstance(node, cst.Call) else ():
        if given.keyword is not None and given.keyword.value == key:
            return Edit(event.place.module.span(given.keyword), name)
    return None


def _renamed_column(place: Place, key: str, name: str) -> Edit | None:
    """Return the edit to rename a column after this file's last change of the columns."""
    steps = place.steps if isinstance(place, Column) else ()
    here = [step for step in (place, *steps) if step.module is place.module]
    if not isinstance(place, Column) or not isinstance(here[-1].node, cst.Call):
        return None
    span = here[-1].span
    return Edit(span.end(), f'.rename_column("{key}", "{name}")')


def _literal(node: cst.CSTNode, key: str) -> cst.SimpleString | None:
    """Return the string setting the key: in a dictionary, `batch["key"] = …` or `rename_column`."""
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
    """Whether the file mentions the key anywhere except at its assignment."""
    own = _literal(place.node, key) if place is not None else None
    return any(node is not own and _is_text(node, key) for node in nodes(module.tree))


def _is_taken(event: ModelCalled, key: str) -> bool:
    """Whether code of the file may take the key otherwise: `batch.idx`, `batch[name]`, `log(**batch)`."""
    call = event.place.node if isinstance(event.place.node, cst.Call) else None
    own = None if call is None else call.func
    batches = [given.value for given in call.args if given.star == "**"] if call is not None else []
    every = list(nodes(event.place.module.tree))
    # The batch may have another name at the call: that of a parameter.
    looped = {name for loop in every if isinstance(loop, cst.For) for name in target_names(loop.target)}

    def takes(node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Attribute):
            return node.attr.value == key
        if isinstance(node, cst.Subscript):
            is_batch = any(node.value.deep_equals(batch) for batch in batches)
            is_batch = is_batch or (isinstance(node.value, cst.Name) and node.value.value in looped)
            return is_batch and _is_unknown(node.slice[0].slice)
        if not isinstance(node, cst.Call) or own is None or node.func.deep_equals(own):
            return False
        return any(given.star == "**" for given in node.args)

    return any(takes(node) for node in every)


def _is_unknown(index: cst.BaseSlice) -> bool:
    return isinstance(index, cst.Index) and not isinstance(index.value, (cst.SimpleString, cst.Integer))


def _is_text(node: cst.CSTNode, key: str) -> bool:
    return isinstance(node, cst.SimpleString) and node.evaluated_value == key


def _quoted(name: str, like: cst.SimpleString) -> str:
    return f"{like.quote}{name}{like.quote}"
