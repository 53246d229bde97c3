"""The rows of source that a finding speaks of, with its places marked in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shapefix.diagnostics import Diagnostic, Span
from shapefix.report.view import View, one_line

_NEWLINE = re.compile(r"\r\n|\r|\n")
_AROUND = 1
_LONGEST = 400


@dataclass(frozen=True)
class Piece:
    """A stretch of a row; mark is "", "step" or "place", that of the finding itself."""

    text: str
    mark: str


@dataclass(frozen=True)
class Note:
    """What happened at a place, numbered where there are several steps."""

    text: str
    mark: str


@dataclass(frozen=True)
class Row:
    """A row of source, with the notes that belong below it; skipped says that rows before it are left out."""

    number: int
    pieces: tuple[Piece, ...]
    notes: tuple[Note, ...]
    skipped: bool


@dataclass(frozen=True)
class Excerpt:
    """The rows of one file."""

    path: str
    row: int
    rows: tuple[Row, ...]


def excerpts(finding: Diagnostic, view: View) -> Iterator[Excerpt]:
    """The files that a finding speaks of, its own first."""
    steps = [(step.span, one_line(step.message)) for step in finding.evidence]
    if len(steps) > 1:
        steps = [(place, f"{number}. {text}") for number, (place, text) in enumerate(steps, 1)]
    if all(place != finding.span for place, _ in steps):
        steps.insert(0, (finding.span, ""))
    for path in dict.fromkeys([finding.span.path, *(place.path for place, _ in steps)]):
        here = [(place, text) for place, text in steps if place.path == path]
        row = finding.span.row if path == finding.span.path else here[0][0].row
        rows = tuple(_rows(view.sources(path), here, finding.span))
        yield Excerpt(one_line(view.relative(path)), row, rows)


def _rows(source: str | None, steps: Sequence[tuple[Span, str]], own: Span) -> Iterator[Row]:
    lines = [] if source is None else _NEWLINE.split(source)
    spoken = {place.row for place, _ in steps}
    near = {row + by for row in spoken for by in range(-_AROUND, _AROUND + 1)}
    shown = sorted(row for row in near if row in spoken or 1 <= row <= len(lines))
    for before, number in pairwise([shown[0] - 1, *shown]):
        line = lines[number - 1] if number <= len(lines) else ""
        here = [(place, text) for place, text in steps if place.row == number]
        notes = tuple(Note(text, "place" if place == own else "step") for place, text in here if text)
        yield Row(number, tuple(_pieces(line, [place for place, _ in here], own)), notes, number > before + 1)


def _pieces(line: str, places: Sequence[Span], own: Span) -> Iterator[Piece]:
    """The row in stretches; what belongs to several places is marked as the finding's own, if it is that."""
    marks = [""] * len(line)
    for place in sorted(places, key=lambda each: each == own):
        end = place.end_column - 1 if place.end_row == place.row else len(line)
        for at in range(place.column - 1, min(max(end, place.column), len(line))):
            marks[at] = "place" if place == own else "step"
    start = 0
    for at in range(1, len(line) + 1):
        if at == len(line) or marks[at] != marks[start]:
            text = line[start:at]
            yield Piece(text if len(text) <= _LONGEST else text[:_LONGEST] + "…", marks[start])
            start = at
