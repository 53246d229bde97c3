"""Module calls as a tree of rows: equal neighbors once, and not deeper than one screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from shapefix.runtime.observations import ObservedModule
from shapefix.runtime.report.formatting import Line, arguments_text, duration, value_text

_ROWS = 40


@dataclass(frozen=True)
class _Row:
    depth: int
    name: str
    given: str
    returned: str
    seconds: float | None


def tree_lines(module: ObservedModule, width: int, deepest: int = 12) -> Iterator[Line]:
    """One row for each call, indented by depth; deep levels are left out if there are too many rows."""
    depth = min(1, deepest)
    rows = list(_rows(module, 0, depth))
    while depth < deepest:
        deeper = list(_rows(module, 0, depth + 1))
        if len(deeper) > _ROWS or len(deeper) == len(rows):
            break
        rows, depth = deeper, depth + 1
    room = max(len(row.name) + 2 * row.depth for row in rows)
    for row in rows[:_ROWS]:
        name = f"  {'  ' * row.depth}{row.name}"
        seconds = f"{duration(row.seconds):>9}  " if row.seconds is not None else f"{'raised':>9}  "
        left = max(width - room - 2 - len(seconds) - 2, 24)
        returned = _cut(row.returned, left // 2)
        text = f"{_cut(row.given, left - len(returned) - 4)} -> {returned}"
        yield [(f"{name:<{room + 2}}", "step"), (seconds, "gutter"), (text, "code")]
    if len(rows) > _ROWS:
        yield [(f"  … and {len(rows) - _ROWS} more", "gutter")]


def _rows(module: ObservedModule, depth: int, deepest: int) -> Iterator[_Row]:
    yield _row(module, depth, module.name)
    if depth >= deepest:
        return
    for _, group in groupby(module.children, key=equality_key):
        alike = list(group)
        first, last = alike[0], alike[-1]
        rows = list(_rows(first, depth + 1, deepest))
        if len(alike) > 1:
            number = last.name.split(".")[-1]
            name = f"{_short(first, module)}…{number} ({len(alike)} times)"
        else:
            name = _short(first, module)
        name = name if name == first.type else f"{name} {first.type}"
        yield _row(first, depth + 1, name, sum(each.seconds or 0 for each in alike))
        yield from rows[1:]


def _row(module: ObservedModule, depth: int, name: str, seconds: float | None = None) -> _Row:
    returned = value_text(module.out) if module.out is not None else "?"
    shown = None if module.out is None else seconds if seconds else module.seconds
    return _Row(depth, name, arguments_text(module.input), returned, shown)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(room - 1, 1)] + "…"


def _short(module: ObservedModule, parent: ObservedModule) -> str:
    """The name of a module relative to its caller."""
    return module.name.removeprefix(parent.name + ".")


def equality_key(module: ObservedModule) -> tuple[object, ...]:
    """An equal key for calls with differences only in the numbers in their names."""
    name = re.sub(r"\d+", "#", module.name)
    inner = tuple(equality_key(each) for each in module.children)
    return name, module.type, arguments_text(module.input), value_text(module.out), inner
