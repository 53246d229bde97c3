"""Render code frames: the rows of a file with underlined and labeled places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TypeAlias

from shapefix.diagnostics import Span
from shapefix.light_dataclasses import dataclass
from shapefix.report.cells import glyphs, width_of, wrapped

Line: TypeAlias = list[tuple[str, str]]
"""One row of output: pieces of text, each with the name of its style."""

_NEWLINE = re.compile(r"\r\n|\r|\n")
_SHOWN_GAP = 2  # this many rows between two labeled ones are shown rather than skipped
_BESIDE = 40  # cells that a label too long for its row needs before it is wrapped beside its underline
_ONE_ROW = 60  # a label of up to so many cells moves left under its underline rather than be wrapped
_UNDER = 48  # cells that a longer one gets by moving left
_LONG_ROW = 5_000  # code points from which on only the surroundings of a place are measured


@dataclass(frozen=True)
class Label:
    """A place with its text and style; the primary label is the finding itself."""

    span: Span
    text: str
    style: str
    primary: bool


@dataclass(frozen=True)
class _Mark:
    """A label on its row: cells start to end (exclusive) are underlined."""

    label: Label
    start: int
    end: int


def frame(
    text: str | None, labels: Sequence[Label], gutter: int, width: int, *, dense: bool = False
) -> Iterator[Line]:
    """Render the labeled rows of text, in the order of the file, in at most width cells.

    gutter is the width of the row numbers. Rows in between are shown when there are at most two, and become
    `...` otherwise; dense omits all of them. If the text or the row is missing, a label has only its
    position.
    """
    rows = () if text is None else _rows(text)
    room = max(width - gutter - 3, 20)
    ordered = sorted(labels, key=lambda label: label.span.row)
    by_row = [(row, list(group)) for row, group in groupby(ordered, lambda label: label.span.row)]
    for (previous, _), (row, here) in pairwise([(0, []), *by_row]):
        between = row - previous - 1
        if previous and between > _SHOWN_GAP and not dense:
            yield [("...", "gutter")]
        elif previous and not dense:
            for skipped in range(previous + 1, min(row, len(rows) + 1)):
                yield from _code(rows[skipped - 1], [], skipped, gutter, room)
        if row <= len(rows):
            yield from _code(rows[row - 1], here, row, gutter, room)
        else:
            for label in here:
                place = f"{row}:{label.span.column}: "
                for line in wrapped(place + label.text, room, hang=len(place)):
                    yield [*margin(gutter), (line, label.style)]


@lru_cache(maxsize=4)  # a file may have thousands of findings
def _rows(text: str) -> tuple[str, ...]:
    return tuple(_NEWLINE.split(text))


def margin(gutter: int, row: int | None = None) -> Line:
    """Render the left edge of a row, with its number if it has one."""
    return [(f"{row if row is not None else '':>{gutter}} | ", "gutter")]


def _code(row: str, labels: Sequence[Label], number: int, gutter: int, room: int) -> Iterator[Line]:
    """Render a row of code and its labels; repeat it for labels too far apart for the width."""
    long = len(row) > _LONG_ROW
    parts = [[label] for label in labels] or [[]] if long else [list(labels)]
    for part in parts:
        base = max(0, part[0].span.column - 1 - 2 * room) if long and part else 0
        near = row[base : base + 6 * room] if long else row
        shown, starts = glyphs(near)
        marks = [_mark(label, near, base, starts) for label in part]
        for group in _groups(marks, room - 2) or [[]]:
            first, last, cut_left, cut_right = _window(
                starts, group, room, base > 0, len(near) < len(row) - base
            )
            before, after = "…" * cut_left, "…" * cut_right
            code = "".join(shown[first:last])
            yield trimmed([*margin(gutter, number), (before + code + after, "code")])
            shift = starts[first] - len(before)
            end = starts[last] - shift
            for place, marks_here in groupby(group, lambda mark: (mark.start, mark.end)):
                begin = min(max(place[0] - shift, len(before)), end)
                stop = max(min(place[1] - shift, end), begin + 1)
                yield from _labels([mark.label for mark in marks_here], begin, stop, gutter, room)


def _mark(label: Label, row: str, base: int, starts: Sequence[int]) -> _Mark:
    """Return the underline of a label; in a span of several rows it ends with the first row."""
    begin = min(max(label.span.column - 1 - base, 0), len(row))
    end = label.span.end_column - 1 - base if label.span.end_row == label.span.row else len(row.rstrip())
    end = min(max(end, begin), len(row))
    return _Mark(label, starts[begin], max(starts[end], starts[begin] + 1))


def _groups(marks: Sequence[_Mark], room: int) -> list[list[_Mark]]:
    """Group marks to fit the width, from left to right; steps keep their order in a group."""
    groups: list[list[_Mark]] = []
    for mark in sorted(marks, key=lambda mark: mark.start):
        if groups and min(mark.end, mark.start + room) <= groups[-1][0].start + room:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [sorted(group, key=marks.index) for group in groups]


def _window(
    starts: Sequence[int], group: Sequence[_Mark], room: int, more_left: bool, more_right: bool
) -> tuple[int, int, bool, bool]:
    """Return the code points to show, first to last (exclusive), and whether the sides are cut off."""
    total = starts[-1]
    if total <= room and not more_left and not more_right:
        return 0, len(starts) - 1, False, False
    low = min((mark.start for mark in group), default=0)
    high = max((mark.end for mark in group), default=0)
    begin = 0
    if high + 1 > room or more_left:
        spare = max(room - 2 - (high - low), 0)
        begin = max(low - max(spare // 3, 2), 0)
        if not more_right:
            begin = min(begin, max(total - room + 1, 0))
    cut_left = more_left or begin > 0
    first = next(index for index, start in enumerate(starts) if start >= begin)
    rest = room - cut_left
    cut_right = more_right or total - starts[first] > rest
    stop = starts[first] + rest - cut_right
    last = max(index for index, start in enumerate(starts) if start <= max(stop, starts[first]))
    return first, last, cut_left, cut_right


def _labels(labels: Sequence[Label], begin: int, stop: int, gutter: int, room: int) -> Iterator[Line]:
    """Render the underline of one place, with its labels beside it or below it."""
    primary = next((label for label in labels if label.primary), None)
    line: Line = [
        *margin(gutter),
        (" " * begin, "code"),
        (("^" if primary else "-") * (stop - begin), (primary or labels[0]).style),
    ]
    texts = [label for label in labels if label.text]
    beside = room - stop - 1
    if texts and all(width_of(label.text) <= beside or beside >= _BESIDE for label in texts):
        at = stop + 1
    else:
        yield line
        line = []
        longest = max((width_of(label.text) for label in texts), default=0)
        at = min(begin, max(room - (longest if longest <= _ONE_ROW else _UNDER), 0))
    for label in texts:
        for row in wrapped(label.text, room - at, hang=_hang(label.text)):
            if line:
                yield [*line, (" ", "code"), (row, label.style)]
                line = []
            else:
                yield [*margin(gutter), (" " * at, "code"), (row, label.style)]


def _hang(text: str) -> int:
    """Return the indentation of further rows of a label: the width of its step number."""
    number = re.match(r"\d+\. ", text)
    return number.end() if number else 0


def trimmed(line: Line) -> Line:
    """Return the line without trailing spaces."""
    text, style = line[-1]
    if text.rstrip():
        return [*line[:-1], (text.rstrip(), style)]
    edge, edge_style = line[-2]
    return [*line[:-2], (edge.rstrip(), edge_style)]
