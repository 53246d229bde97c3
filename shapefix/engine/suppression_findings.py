"""Findings about suppression comments themselves: SF001 and SF002.

They have no check in `checks`: what a comment suppresses is known after the findings of all files are merged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix, Span
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import names_and_severities
from shapefix.sources.configuration import suggestion
from shapefix.sources.suppressions import Suppression, SuppressionResult, apply_suppressions, selects
from shapefix.sources.text import SourceText, line_starts

UNUSED, INVALID = "SF001", "SF002"
CODES = frozenset({UNUSED, INVALID})
_OUR_CODE = re.compile(r"SF\d\w*", re.IGNORECASE)
"""A word with our letters; one like SFS101 belongs to another tool."""
_OTHER_COMMENT = re.compile(r"#\s*[^\W\d]")
"""The start of a comment in the reason of another; not the number of an issue."""
_FOREIGN_CODE = re.compile(r"[A-Z]+\d+")
"""A code of another tool, or of a plugin that is not installed here."""


@dataclass(frozen=True)
class SuppressionRules:
    """The rules for the comments of a file: reported codes, and whether unused comments are certain."""

    reported: frozenset[str]
    is_certain: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be reported."""
        return not self._reported_ones

    @property
    def _reported_ones(self) -> frozenset[str]:
        codes = CODES if self.is_certain else CODES - {UNUSED}
        return codes & self.reported

    def findings(self, source: SourceText, result: SuppressionResult) -> list[Diagnostic]:
        """Return the findings about the comments of a text; result has the suppressed ones.

        As with ruff, only a comment with their codes suppresses them: a bare one may be what they are about.
        """
        found = list(self._all(source, result))
        suppressed = {
            id(finding)
            for comment, dropped in apply_suppressions(source, found).comments
            if comment.selectors is not None or comment.whole_file
            for finding in dropped
        }
        return [finding for finding in found if id(finding) not in suppressed]

    def _all(self, source: SourceText, result: SuppressionResult) -> Iterator[Diagnostic]:
        for comment, dropped in result.comments:
            if comment.whole_file:
                continue
            if INVALID in self._reported_ones:
                yield from _invalid(source, comment)
            if UNUSED in self._reported_ones:
                yield from self._unused(source, comment, dropped)

    def _unused(
        self, source: SourceText, comment: Suppression, dropped: Sequence[Diagnostic]
    ) -> Iterator[Diagnostic]:
        if comment.selectors is None:
            # A bare `noqa` may be there for another tool.
            if comment.is_ours and not dropped:
                yield _finding(source, comment, UNUSED, "this comment suppresses nothing", ())
            return
        unused = [each for each in comment.selectors if self._is_unused(each, comment, dropped)]
        if unused:
            text = f"{_listed(unused)} in this comment suppress{'es' if len(unused) == 1 else ''} nothing"
            yield _finding(source, comment, UNUSED, text, unused)

    def _is_unused(self, selector: str, comment: Suppression, dropped: Sequence[Diagnostic]) -> bool:
        """Check whether all rules of a word are reported in the file, and the comment suppresses none."""
        if not comment.is_ours and _FOREIGN_CODE.fullmatch(selector.upper()) and not _is_our_code(selector):
            return False
        rules = [code for code, (name, _) in names_and_severities().items() if selects(selector, code, name)]
        return (
            bool(rules)
            and CODES.isdisjoint(rules)
            and self.reported.issuperset(rules)
            and not any(each.code in rules for each in dropped)
        )


def _is_our_code(selector: str) -> bool:
    return _OUR_CODE.fullmatch(selector) is not None


def _invalid(source: SourceText, comment: Suppression) -> Iterator[Diagnostic]:
    """Yield the finding about the words of a comment without a rule."""
    table = names_and_severities()
    unknown = [
        selector
        for selector in comment.selectors or ()
        if (_is_our_code(selector) or (comment.is_ours and not _FOREIGN_CODE.fullmatch(selector.upper())))
        and not any(selects(selector, code, name) for code, (name, _) in table.items())
    ]
    if not unknown:
        return
    what = "is not a rule" if len(unknown) == 1 else "are not rules"
    names = [name for name, _ in table.values()]
    hint = suggestion(unknown[0], names) if len(unknown) == 1 and not _is_our_code(unknown[0]) else ""
    yield _finding(
        source,
        comment,
        INVALID,
        f"{_listed(unknown)} in this comment {what} of shapefix{hint}",
        unknown,
        hint,
    )


def _listed(selectors: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in selectors)


def _finding(
    source: SourceText,
    comment: Suppression,
    code: str,
    message: str,
    words: Sequence[str],
    hint: str = "",
) -> Diagnostic:
    name, severity = names_and_severities()[code]
    span = Span(source.path, comment.row, comment.column, comment.row, comment.end)
    # A misspelled name is to be corrected, which takes its author.
    fixes = () if hint else (_removal(source, comment, words),)
    return Diagnostic(code, name, severity, message, span, fixes=fixes)


def _removal(source: SourceText, comment: Suppression, words: Sequence[str]) -> Fix:
    """Return the fix removing words from a comment; without any left, it removes the comment."""
    starts = [*line_starts(source.text), len(source.text)]
    text = source.text[starts[comment.row - 1] : starts[comment.row]]
    row = text.rstrip("\r\n")
    left = [each for each in comment.selectors or () if each not in words]
    if left:
        written = row[comment.column - 1 : comment.end - 1]
        opening = re.split(r"[\[:](?=[^\[:]*$)", written)[0]
        content = f"{opening}[{', '.join(left)}]" if comment.is_ours else f"{opening}: {', '.join(left)}"
        edit = Edit(Span(source.path, comment.row, comment.column, comment.row, comment.end), content)
        return Fix(Applicability.SAFE, f"remove {_listed(words)} from the comment", (edit,))
    before, other = row[: comment.column - 1], _OTHER_COMMENT.search(row, comment.end - 1)
    if other is not None:
        # Another comment in the same one.
        edit = Edit(_columns(source, comment.row, comment.column, other.start() + 1), "")
    elif before.strip():
        # The reason goes with the comment.
        edit = Edit(_columns(source, comment.row, len(before.rstrip()) + 1, len(row) + 1), "")
    else:
        last = comment.row + 1 if text != row else comment.row
        edit = Edit(Span(source.path, comment.row, 1, last, 1 if text != row else len(row) + 1), "")
    return Fix(Applicability.SAFE, "remove the comment", (edit,))


def _columns(source: SourceText, row: int, first: int, last: int) -> Span:
    return Span(source.path, row, first, row, last)
