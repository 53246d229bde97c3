"""Fold findings: one cause is one entry, and the entries are in the order of the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from shapefix.diagnostics import Cause, Diagnostic, Role, in_run_order
from shapefix.light_dataclasses import dataclass

_NUMBERED = re.compile(r"\b(line|[\w./\\-]+\.py:) ?\d+")
"""Places in a message: copies of a mistake are at other ones."""
_CODE = re.compile(r"`[^`]*`")
_CODE_OR_NUMBER = re.compile(r"`[^`]*`|\d+(?:\.\d+)?")
_NUMBER = re.compile(r"\d+")
_MANY = 5
"""Sizes in a message: so many equal ones are no coincidence."""
_DTYPE = re.compile(r"\b[a-z]+\d+\[")
"""The dtype of a tensor, if the message shows it: `f32[3, 8]`."""
_IGNORED = re.compile(r"""("[^"]*"|'[^']*')|\s*#.*""")
"""The strings and the comment of a line."""
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)*(?P<call>\s*\()?")
"""A name or a chain of attributes, and whether it is called."""
_WITHOUT_SIZES = "SF6"
"""Rules from here on report steps, and rules before it sizes; a size may be wrong for many reasons."""
_BLOCK = re.compile(r"(?:async\s+def|def|class)\b")


@dataclass(frozen=True)
class FoldedFinding:
    """The first finding of a cause, and the others with the same cause."""

    first: Diagnostic
    others: tuple[Diagnostic, ...] = ()

    @property
    def alike(self) -> tuple[Diagnostic, ...]:
        """The other places of the same rule."""
        return tuple(each for each in self.others if each.code == self.first.code)

    @property
    def consequences(self) -> tuple[Diagnostic, ...]:
        """The findings of other rules with the same cause."""
        return tuple(each for each in self.others if each.code != self.first.code)


def folded(
    findings: Sequence[Diagnostic], sources: Callable[[str], str | None] = lambda _: None
) -> list[FoldedFinding]:
    """Return one entry per cause, in the order of the run. sources returns the text of a path.

    These are one cause: findings with the same stated cause; a mistake copied to several places, with the
    same message about the same code; one repeated on other variables of a class or function, or in adjacent
    statements; and a tensor rejected by several layers.
    """
    ordered = in_run_order(findings)
    named = {Cause(each.code, each.span): each for each in ordered}
    adjacent = _adjacent(ordered)

    @lru_cache(maxsize=8)
    def lines(path: str) -> Sequence[str]:
        return (sources(path) or "").splitlines()

    entries: dict[int, list[Diagnostic]] = {}
    entry_of: dict[Hashable, int] = {}
    for number, finding in enumerate(ordered):
        verdict = finding.confirmation.verdict if finding.confirmation else None
        keys = [
            (verdict, *key)
            for key in (_caused(finding, named), ("adjacent", adjacent[number]), *_written(finding, lines))
        ]
        known = sorted({entry_of[key] for key in keys if key in entry_of}) or [number]
        first, *rest = known
        for each in rest:
            entries[first] += entries.pop(each)
        for key, entry in entry_of.items():
            if entry in rest:
                entry_of[key] = first
        entry_of.update(dict.fromkeys(keys, first))
        entries.setdefault(first, []).append(finding)
    return [FoldedFinding(found[0], tuple(found[1:])) for _, found in sorted(entries.items())]


def _caused(finding: Diagnostic, named: Mapping[Cause, Diagnostic]) -> tuple[Hashable, ...]:
    """Return the cause of a finding; if that is another finding, the cause of that one."""
    seen = {Cause(finding.code, finding.span)}
    cause = finding.cause
    while cause in named and cause not in seen:
        seen.add(cause)
        cause = named[cause].cause
    return ("cause", cause)


def _written(finding: Diagnostic, lines: Callable[[str], Sequence[str]]) -> Iterator[tuple[Hashable, ...]]:
    """Yield keys for the text of the line: equal for copies, and for repetitions on other variables.

    Copies may be indented differently, and called by different code. A habit names the mistake exactly, so
    its repetitions need no guess.
    """
    text = lines(finding.span.path)
    if len(text) < finding.span.row:
        return
    row = text[finding.span.row - 1].strip()
    rule = (finding.code, finding.severity)
    yield ("copy", *rule, _NUMBERED.sub(r"\1", finding.message), row)
    pattern = _pattern(row)
    if pattern and not finding.habit:
        message = _CODE_OR_NUMBER.sub("", finding.message)
        yield ("repeated", *rule, finding.span.path, _outer_block(text, finding.span.row), message, pattern)
        if finding.code >= _WITHOUT_SIZES:
            yield ("renamed", *rule, _without_code(finding), pattern)
    without_code = _without_code(finding)
    if len(_NUMBER.findall(without_code)) >= _MANY:
        yield ("sizes", *rule, without_code)
    made = [step.span for step in finding.evidence if step.role in (Role.HISTORY, Role.PRODUCER)]
    if len(made) == 1 and finding.error is not None:
        origin = lines(made[0].path)
        if len(origin) >= made[0].row:
            yield ("rejected", *rule, without_code, origin[made[0].row - 1].strip())


def _adjacent(ordered: Sequence[Diagnostic]) -> list[int]:
    """Return a number per finding, equal in consecutive rows with the same mistake and the same sizes."""
    rows: dict[tuple[Hashable, ...], list[tuple[int, int, int]]] = {}
    for number, finding in enumerate(ordered):
        span = finding.span
        kind = (finding.code, finding.severity, span.path, finding.habit, _without_code(finding))
        rows.setdefault(kind, []).append((span.row, span.end_row, number))
    numbers = list(range(len(ordered)))
    for places in rows.values():
        places.sort()
        for (_, end, before), (row, _, after) in pairwise(places):
            if row <= end + 1:
                numbers[after] = numbers[before]
    return numbers


def _without_code(finding: Diagnostic) -> str:
    """Return the message of a finding without code, dtypes and line numbers."""
    return _DTYPE.sub("[", _CODE.sub("", _NUMBERED.sub(r"\1", finding.message)))


def _pattern(row: str) -> str:
    """Return a line without the names of its variables: `_ = _.view(-1, 10)`; "" if it has none."""
    bare = _IGNORED.sub(lambda found: "''" if found[1] else "", row)

    def unnamed(found: re.Match[str]) -> str:
        if found["call"] is None:
            return "_"
        return re.sub(r".*\.", "_.", found[0])

    pattern = _NAME.sub(unnamed, bare)
    return pattern if pattern != bare else ""


def _outer_block(text: Sequence[str], row: int) -> int:
    """Return the row of the outermost class or function around a row, 0 for a statement of the module."""
    if not text[row - 1][:1].isspace():
        return 0
    for number in range(row - 1, 0, -1):
        line = text[number - 1]
        if line[:1].strip() and line[0] not in "#)]}":
            return number if _BLOCK.match(line) else 0
    return 0
