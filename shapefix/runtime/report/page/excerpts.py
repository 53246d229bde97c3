"""The source rows of a finding, with its places marked."""

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
class SourcePiece:
    """A part of a row; mark is "", "step" or "place", the place of the finding itself."""

    text: str
    mark: str


@dataclass(frozen=True)
class SourceNote:
    """The text of one piece of evidence, numbered if there are several."""

    text: str
    mark: str


@dataclass(frozen=True)
class SourceRow:
    """A source row with the notes below it; skipped says that rows before it are left out."""

    number: int
    pieces: tuple[SourcePiece, ...]
    notes: tuple[SourceNote, ...]
    skipped: bool


@dataclass(frozen=True)
class Excerpt:
    """The source rows of one file."""

    path: str
    row: int
    rows: tuple[SourceRow, ...]


def excerpts(finding: Diagnostic, view: View) -> Iterator[Excerpt]:
    """The excerpts of a finding, first the one of its own file."""
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


def _rows(source: str | None, steps: Sequence[tuple[Span, str]], own: Span) -> Iterator[SourceRow]:
    lines = [] if source is None else _NEWLINE.split(source)
    spoken = {place.row for place, _ in steps}
    near = {row + by for row in spoken for by in range(-_AROUND, _AROUND + 1)}
    shown = sorted(row for row in near if row in spoken or 1 <= row <= len(lines))
    for before, number in pairwise([shown[0] - 1, *shown]):
        line = lines[number - 1] if number <= len(lines) else ""
        here = [(place, text) for place, text in steps if place.row == number]
        notes = tuple(SourceNote(text, "place" if place == own else "step") for place, text in here if text)
        yield SourceRow(
            number, tuple(_pieces(line, [place for place, _ in here], own)), notes, number > before + 1
        )


def _pieces(line: str, places: Sequence[Span], own: Span) -> Iterator[SourcePiece]:
    """The parts of a row by mark; the finding's own place has priority over evidence."""
    marks = [""] * len(line)
    for place in sorted(places, key=lambda each: each == own):
        end = place.end_column - 1 if place.end_row == place.row else len(line)
        for at in range(place.column - 1, min(max(end, place.column), len(line))):
            marks[at] = "place" if place == own else "step"
    start = 0
    for at in range(1, len(line) + 1):
        if at == len(line) or marks[at] != marks[start]:
            text = line[start:at]
            yield SourcePiece(text if len(text) <= _LONGEST else text[:_LONGEST] + "…", marks[start])
            start = at
