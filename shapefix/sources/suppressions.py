"""Suppression comments: `# noqa`, `# shapefix: ignore`, `# shapefix: skip-file`."""

from __future__ import annotations

import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import cache

from shapefix.diagnostics import Diagnostic, Edit, Span
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import aliases, pages
from shapefix.sources.selection import is_prefix
from shapefix.sources.text import SourceText, line_starts

_MARKER = re.compile(r"#\s*(?:noqa|shapefix:\s*(ignore|skip-file))(?![\w-])", re.IGNORECASE)
_BRACKETS = re.compile(r"\s*\[([^]]*)(]?)")
_ABOUT_OUR_RULES = re.compile(
    rb"#\s*(?:noqa\s*:[^\n]*(?:\bSF\d|[a-z]-[a-z])|shapefix:\s*ignore)", re.IGNORECASE
)
"""Codes of other tools are in many files, which are not split into tokens for them."""


@cache
def _noqa_list() -> re.Pattern[str]:
    """Return the pattern of the list in a `noqa`: codes of any tool, and the names of our rules.

    A name of one word, like `channels`, is one only before a comma or the end: a reason may begin with it.
    """
    names = sorted({name for page in pages() for name in (page.name, *page.aliases)}, key=len, reverse=True)
    several = "|".join(re.escape(name) for name in names if "-" in name)
    single = "|".join(re.escape(name) for name in names if "-" not in name)
    item = rf"(?:[A-Z]+[0-9]+|(?:{several})(?![\w-])|(?:{single or '(?!)'})(?=\s*(?:,|#|$)))"
    return re.compile(rf"\s*:\s*((?:{item}[\s,]*)*)", re.IGNORECASE)


def has_suppressions(data: bytes) -> bool:
    """Check the bytes of a file for comments about our rules. Some of other tools look like them."""
    return _ABOUT_OUR_RULES.search(data) is not None


@dataclass(frozen=True)
class Suppression:
    """A suppression comment for the selected rules, or for all rules if selectors is None.

    row and column (from 1) are the position of its `#`, and end is the column after it and its list. is_ours
    is false for `noqa`, which is for all tools.
    """

    row: int
    column: int
    selectors: tuple[str, ...] | None
    whole_file: bool = False
    is_ours: bool = field(default=False, compare=False)
    end: int = field(default=0, compare=False)

    def covers(self, diagnostic: Diagnostic) -> bool:
        """Check whether the comment selects the rule of a finding: by code, prefix, name or alias."""
        return self.selectors is None or any(
            selects(selector, diagnostic.code, diagnostic.name) for selector in self.selectors
        )


def selects(selector: str, code: str, name: str) -> bool:
    """Check whether a word of a comment selects a rule: by code, prefix, name or alias."""
    lowered = selector.lower()
    return lowered == name or is_prefix(selector.upper(), code) or aliases().get(lowered) == code


@dataclass(frozen=True)
class SuppressionResult:
    """The remaining findings in their order, and all comments with their suppressed findings."""

    kept: tuple[Diagnostic, ...]
    comments: tuple[tuple[Suppression, tuple[Diagnostic, ...]], ...] = ()

    @property
    def used(self) -> tuple[Suppression, ...]:
        """The comments suppressing a finding."""
        return tuple(comment for comment, dropped in self.comments if dropped)


def apply_suppressions(source: SourceText, diagnostics: Iterable[Diagnostic]) -> SuppressionResult:
    """Drop the findings suppressed by a comment in source.

    A comment applies on any row of the finding, and on the first and last row of the statement that the
    finding is in. Findings whose span is in another file are kept.
    """
    diagnostics = tuple(diagnostics)
    if not _MARKER.search(source.text):
        return SuppressionResult(diagnostics)
    suppressions, statements = _read(source.text)
    everywhere = [each for each in suppressions if each.whole_file]
    by_row: dict[int, list[Suppression]] = {}
    for each in suppressions:
        if not each.whole_file:
            by_row.setdefault(each.row, []).append(each)
    kept: list[Diagnostic] = []
    used: dict[Suppression, list[Diagnostic]] = {each: [] for each in suppressions}
    for diagnostic in diagnostics:
        silencing: list[Suppression] = []
        if diagnostic.span.path == source.path:
            rows = _rows(diagnostic.span, statements)
            near = (each for row in rows for each in by_row.get(row, ()))
            silencing = [each for each in (*everywhere, *near) if each.covers(diagnostic)]
        for each in silencing:
            used[each].append(diagnostic)
        if not silencing:
            kept.append(diagnostic)
    return SuppressionResult(tuple(kept), tuple((each, tuple(used[each])) for each in suppressions))


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
            yield Suppression(row, at, None, True, True, column + marker.end())
        elif kind == "ignore":
            brackets = _BRACKETS.match(comment, marker.end())
            if brackets is None:
                yield Suppression(row, at, None, False, True, column + marker.end())
            elif brackets[2]:
                names = (name.strip() for name in brackets[1].split(","))
                listed = tuple(name for name in names if name)
                yield Suppression(row, at, listed, False, True, column + brackets.end())
        else:
            codes = _noqa_list().match(comment, marker.end())
            if codes is None:
                yield Suppression(row, at, None, False, False, column + marker.end())
            else:
                listed = tuple(re.findall(r"[\w-]+", codes[1]))
                end = codes.start(1) + len(codes[1].rstrip(" \t\f,"))
                yield Suppression(row, at, listed, False, False, column + end)


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
    listed = next(
        (each for each in suppressions if each.row == row and each.selectors and not each.is_ours), None
    )
    column = len(text.rstrip()) + 1 if listed is None else listed.end
    content = f"  # noqa: {diagnostic.code} {reason}".rstrip() if listed is None else f", {diagnostic.code}"
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
