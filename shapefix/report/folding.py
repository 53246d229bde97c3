"""Fold findings: one cause is one entry, and the entries are in the order of the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from shapefix.diagnostics import Cause, Diagnostic, Role, RunVerdict, in_run_order

_NUMBERED = re.compile(r"\bline \d+")
"""Line numbers in a message: copies of a mistake are at other ones."""
_Key: TypeAlias = tuple[Cause, RunVerdict | None]


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

    A mistake copied to several files, with the same code at every place, is one cause.
    """
    ordered = in_run_order(findings)
    named = {Cause(each.code, each.span): each for each in ordered}
    groups: dict[_Key, list[Diagnostic]] = {}
    for finding in ordered:
        groups.setdefault(_key(finding, named), []).append(finding)
    copies: dict[object, list[Diagnostic]] = {}

    @lru_cache(maxsize=8)
    def lines(path: str) -> Sequence[str]:
        return (sources(path) or "").splitlines()

    for group in groups.values():
        copies.setdefault(_copied(group[0], lines), []).extend(group)
    return [FoldedFinding(first, tuple(others)) for first, *others in copies.values()]


def _key(finding: Diagnostic, named: Mapping[Cause, Diagnostic]) -> _Key:
    """Return the cause of a finding; if that is another finding, the cause of that one."""
    verdict = finding.confirmation.verdict if finding.confirmation else None
    seen = {Cause(finding.code, finding.span)}
    cause = finding.cause
    while cause in named and cause not in seen:
        seen.add(cause)
        cause = named[cause].cause
    return cause, verdict


def _copied(finding: Diagnostic, lines: Callable[[str], Sequence[str]]) -> object:
    """Return a key equal for all copies of a mistake; for unknown lines, the finding itself.

    The copies may be indented differently, and called by different code.
    """
    rows: list[str] = []
    steps = [step.span for step in finding.evidence if step.role is not Role.CALL]
    for span in (finding.span, *steps):
        known = lines(span.path)
        if len(known) < span.row:
            return finding
        rows.append(known[span.row - 1].strip())
    verdict = finding.confirmation.verdict if finding.confirmation else None
    return finding.code, _NUMBERED.sub("line", finding.message), finding.severity, verdict, tuple(rows)
