"""Suppression comments: `# noqa`, `# shapefix: ignore`, `# shapefix: skip-file`."""

from __future__ import annotations

import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shapefix.diagnostics import Diagnostic, Edit, Span
from shapefix.rulebook.pages import aliases
from shapefix.sources.selection import is_prefix
from shapefix.sources.text import SourceText, line_starts

_MARKER = re.compile(r"#\s*(?:noqa|shapefix:\s*(ignore|skip-file))(?![\w-])", re.IGNORECASE)
_NOQA_LIST = re.compile(r"\s*:\s*((?:[A-Z]+[0-9]+[\s,]*)*)", re.IGNORECASE)
_NOQA_IN_ROW = re.compile(r"#\s*noqa" + _NOQA_LIST.pattern, re.IGNORECASE)
_BRACKETS = re.compile(r"\s*\[([^]]*)(]?)")


@dataclass(frozen=True)
class Suppression:
    """A suppression comment for the selected rules, or for all rules if selectors is None.

    row and column (from 1) are the position of its `#`.
    """

    row: int
    column: int
    selectors: tuple[str, ...] | None
    whole_file: bool = False

    def covers(self, diagnostic: Diagnostic) -> bool:
        """Check whether the comment selects the rule of a finding: by code, prefix, name or alias."""
        return self.selectors is None or any(
            selector == diagnostic.name
            or is_prefix(selector.upper(), diagnostic.code)
            or aliases().get(selector) == diagnostic.code
            for selector in self.selectors
        )


@dataclass(frozen=True)
class SuppressionResult:
    """The remaining findings in their order, and the comments suppressing the others."""

    kept: tuple[Diagnostic, ...]
    used: tuple[Suppression, ...]


def apply_suppressions(source: SourceText, diagnostics: Iterable[Diagnostic]) -> SuppressionResult:
    """Drop the findings suppressed by a comment in source.

    A comment applies on any row of the finding, and on the first and last row of the statement that the
    finding is in. Findings whose span is in another file are kept.
    """
    diagnostics = tuple(diagnostics)
    if not diagnostics or not _MARKER.search(source.text):
        return SuppressionResult(diagnostics, ())
    suppressions, statements = _read(source.text)
    everywhere = [each for each in suppressions if each.whole_file]
    by_row: dict[int, list[Suppression]] = {}
    for each in suppressions:
        if not each.whole_file:
            by_row.setdefault(each.row, []).append(each)
    kept: list[Diagnostic] = []
    used: set[Suppression] = set()
    for diagnostic in diagnostics:
        silencing: list[Suppression] = []
        if diagnostic.span.path == source.path:
            rows = _rows(diagnostic.span, statements)
            near = (each for row in rows for each in by_row.get(row, ()))
            silencing = [each for each in (*everywhere, *near) if each.covers(diagnostic)]
        if silencing:
            used.update(silencing)
        else:
            kept.append(diagnostic)
    return SuppressionResult(tuple(kept), tuple(each for each in suppressions if each in used))


def _rows(span: Span, statements: list[tuple[int, int]]) -> set[int]:
    """Return the rows of comments applicable to the span."""
    last_row = span.end_row - 1 if span.end_column == 1 and span.end_row > span.row else span.end_row
    first = _statement(span.row, statements)
    last = _statement(last_row, statements)
    rows = {*first, *last}
    # A span over several statements (a loop, a class) contains comments about other findings.
    rows.update(range(span.row, last_row + 1) if first == last else (span.row, last_row))
    return rows


def _statement(row: int, statements: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the first and last row of the statement on row; the row itself outside of statements."""
    index = bisect_right(statements, row, key=lambda statement: statement[0]) - 1
    if index >= 0 and row <= statements[index][1]:
        return statements[index]
    return row, row


def _read(text: str) -> tuple[list[Suppression], list[tuple[int, int]]]:
    """Read the suppressions of a text, and the rows of its statements (of compound ones, the head)."""
    suppressions: list[Suppression] = []
    statements: list[tuple[int, int]] = []
    first_row = 0
    try:
        for token in tokenize.generate_tokens(_rows_of(text).__next__):
            row, column = token.start
            if token.type == tokenize.COMMENT:
                suppressions += _in_comment(token.string, row, column + 1)
            elif token.type == tokenize.NEWLINE:
                statements.append((first_row or row, row))
                first_row = 0
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                first_row = first_row or row
    except (tokenize.TokenError, SyntaxError):
        # A comment that may be part of a string further down does not suppress anything.
        pass
    return suppressions, statements


def _rows_of(text: str) -> Iterator[str]:
    r"""Yield the rows of a text for tokenize; it does not end a row at \r alone."""
    starts = line_starts(text)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        if end > start:
            yield text[start:end].rstrip("\r\n") + "\n"


def _in_comment(comment: str, row: int, column: int) -> Iterator[Suppression]:
    for marker in _MARKER.finditer(comment):
        at = column + marker.start()
        kind = marker[1] and marker[1].lower()
        if kind == "skip-file":
            yield Suppression(row, at, None, whole_file=True)
        elif kind == "ignore":
            brackets = _BRACKETS.match(comment, marker.end())
            if brackets is None:
                yield Suppression(row, at, None)
            elif brackets[2]:
                names = (name.strip() for name in brackets[1].split(","))
                yield Suppression(row, at, tuple(name for name in names if name))
        else:
            codes = _NOQA_LIST.match(comment, marker.end())
            yield Suppression(row, at, tuple(re.findall(r"\w+", codes[1])) if codes else None)


def suppression_for(source: SourceText, diagnostic: Diagnostic, reason: str = "") -> Edit | None:
    """Return the edit for a `# noqa` with the code of a finding in a text; None if no comment can be there.

    The comment is on the last row of its statement, in a list of codes that the row has already. A new
    comment ends with the reason.
    """
    suppressions, statements = _read(source.text)
    row = _statement(diagnostic.span.row, statements)[1]
    starts = [*line_starts(source.text), len(source.text) + 1]
    if row >= len(starts):
        return None
    text = source.text[starts[row - 1] : starts[row]].rstrip("\r\n")
    listed = next((each for each in suppressions if each.row == row and each.selectors), None)
    codes = None if listed is None else _NOQA_IN_ROW.match(text, listed.column - 1)
    column = len(text.rstrip() if codes is None else text[: codes.end()].rstrip(" \t,")) + 1
    content = f"  # noqa: {diagnostic.code} {reason}".rstrip() if codes is None else f", {diagnostic.code}"
    edit = Edit(Span(source.path, row, column, row, column), content)
    at = starts[row - 1] + column - 1
    made = SourceText(source.path, source.text[:at] + content + source.text[at:])
    return edit if not apply_suppressions(made, [diagnostic]).kept else None


def with_suppressions(
    source: SourceText, diagnostics: Iterable[Diagnostic], reason: str = ""
) -> tuple[str, tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """Return the text with `# noqa` comments, the suppressed findings, and the others."""
    text = source.text
    done: list[Diagnostic] = []
    left: list[Diagnostic] = []
    for diagnostic in diagnostics:
        current = SourceText(source.path, text)
        if not apply_suppressions(current, [diagnostic]).kept:
            done.append(diagnostic)
            continue
        edit = suppression_for(current, diagnostic, reason)
        if edit is None:
            left.append(diagnostic)
            continue
        # Comments are at the ends of rows: every other place stays where it is.
        at = line_starts(text)[edit.span.row - 1] + edit.span.column - 1
        text = text[:at] + edit.content + text[at:]
        done.append(diagnostic)
    return text, tuple(done), tuple(left)
