"""Module calls as a tree of rows: equal neighbors once, and not deeper than one screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shapefix.runtime.observations import ObservedModule
from shapefix.runtime.report.formatting import Line, arguments_text, duration, quantity, value_text

_ROWS = 40
_PERIOD = 8
"""The longest sequence of calls whose repetitions are folded."""


@dataclass(frozen=True)
class FoldedCalls:
    """Equal calls of modules in a row: the first one, and their name relative to their caller.

    seconds and parameters are those of all of them, None if they are not known.
    """

    first: ObservedModule
    name: str
    times: int
    seconds: float | None
    parameters: int | None

    @property
    def title(self) -> str:
        """The name, the number and the type, such as `h.0…11  12 × Block`."""
        kind = self.first.type if self.times == 1 else f"{self.times} × {self.first.type}"
        return kind if self.name == kind else f"{self.name} {kind}"


@dataclass(frozen=True)
class _Row:
    depth: int
    name: str
    given: str
    returned: str
    seconds: float | None
    parameters: int | None


def folded_calls(module: ObservedModule) -> Iterator[FoldedCalls]:
    """The calls inside a call; equal ones in a row are folded, and repeated sequences of several."""
    for alike in _alike(module.children):
        first, last = alike[0], alike[-1]
        name = _short(first, module)
        if last.name != first.name:
            name = f"{name}…{last.name.split('.')[-1]}"
        known = {each.name: each.parameters for each in alike if each.parameters is not None}
        raised = first.out is None
        yield FoldedCalls(
            first,
            name,
            len(alike),
            None if raised else sum(each.seconds or 0.0 for each in alike),
            sum(known.values()) if known else None,
        )


def _alike(calls: Sequence[ObservedModule]) -> Iterator[list[ObservedModule]]:
    """Equal calls: neighbors, or those at the same place of a repeated sequence."""
    keys = [equality_key(each) for each in calls]
    start = 0
    while start < len(calls):
        period, times = _repetition(keys, start)
        for each in range(start, start + period):
            yield [calls[each + period * number] for number in range(times)]
        start += period * times


def _repetition(keys: Sequence[object], start: int) -> tuple[int, int]:
    """The length of the sequence at a place, and how often it comes in a row; the longest stretch wins."""
    best = (1, 1)
    for period in range(1, min(_PERIOD, (len(keys) - start) // 2) + 1):
        first, times = keys[start : start + period], 1
        while keys[start + period * times : start + period * (times + 1)] == first:
            times += 1
        if times > 1 and period * times > best[0] * best[1]:
            best = (period, times)
    return best


def tree_lines(module: ObservedModule, width: int, deepest: int = 12) -> Iterator[Line]:
    """One row for each call, indented by depth; deep levels are left out if there are too many rows.

    Sizes that do not fit into width cells get a second row.
    """
    depth = min(1, deepest)
    rows = list(_rows(module, 0, depth))
    while depth < deepest:
        deeper = list(_rows(module, 0, depth + 1))
        if len(deeper) > _ROWS or len(deeper) == len(rows):
            break
        rows, depth = deeper, depth + 1
    room = max(len(row.name) + 2 * row.depth for row in rows)
    counted = any(row.parameters for row in rows)
    for row in rows[:_ROWS]:
        name = f"  {'  ' * row.depth}{row.name}"
        count = f"{quantity(row.parameters) if row.parameters else '':>9} " if counted else ""
        seconds = f"{duration(row.seconds) if row.seconds is not None else 'raised':>9}  "
        head: Line = [(f"{name:<{room + 2}}", "step"), (count + seconds, "gutter")]
        indent = room + 2 + len(count + seconds)
        if indent + len(row.given) + len(row.returned) + 4 <= width:
            yield [*head, (f"{row.given} -> {row.returned}", "code")]
        else:
            yield [*head, (row.given, "code")]
            yield [(" " * indent, "code"), (f"-> {row.returned}", "code")]
    if len(rows) > _ROWS:
        yield [(f"  … and {len(rows) - _ROWS} more", "gutter")]


def _rows(module: ObservedModule, depth: int, deepest: int) -> Iterator[_Row]:
    yield _row(module, depth, module.name, module.seconds, module.parameters)
    if depth >= deepest:
        return
    for calls in folded_calls(module):
        yield _row(calls.first, depth + 1, calls.title, calls.seconds, calls.parameters)
        inner = _rows(calls.first, depth + 1, deepest)
        next(inner)
        yield from inner


def _row(
    module: ObservedModule, depth: int, name: str, seconds: float | None, parameters: int | None
) -> _Row:
    returned = value_text(module.out) if module.out is not None else "?"
    shown = None if module.out is None else seconds
    return _Row(depth, name, arguments_text(module.input), returned, shown, parameters)


def _short(module: ObservedModule, parent: ObservedModule) -> str:
    """The name of a module relative to its caller."""
    return module.name.removeprefix(parent.name + ".")


def equality_key(module: ObservedModule) -> tuple[object, ...]:
    """An equal key for calls with differences only in the numbers in their names."""
    name = re.sub(r"\d+", "#", module.name)
    inner = tuple(equality_key(each) for each in module.children)
    return name, module.type, arguments_text(module.input), value_text(module.out), inner
