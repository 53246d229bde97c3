"""Fixes for the findings of a run: those of `check` for the same findings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from shapefix.diagnostics import Applicability, Diagnostic, Fix, Span
from shapefix.rulebook.pages import Raises, pages_by_code
from shapefix.runtime.findings.collect import CRASH, ProbeFindings
from shapefix.runtime.findings.error_catalog import is_error_of
from shapefix.runtime.repair.patched_sources import OriginalSources, PatchedSources
from shapefix.runtime.repair.static_findings import StaticFindings
from shapefix.sources.configuration import ConfigurationError
from shapefix.sources.text import Unreadable

_MOST_FILES = 40


def with_static_fixes(found: ProbeFindings, script: str, executed: Iterable[str] = ()) -> ProbeFindings:
    """Add the rules and fixes of `check` to the findings of a run of a script, or of a module of a folder.

    executed are the files whose other static findings are added, too.
    """
    executed = list(executed)[:_MOST_FILES]
    if not found.diagnostics and not executed:
        return found
    paths = [script, *executed, *(place.path for each in found.diagnostics for place in _places(each))]
    try:
        reader = StaticFindings(script)
        files = [path for path in dict.fromkeys(map(os.path.realpath, paths)) if path.endswith(".py")]
        read = reader.findings(PatchedSources(OriginalSources(), {}), files)
    except (ConfigurationError, Unreadable):
        return found
    reported = [each for each in read if reader.is_reported(each)]
    offered = [each for each in reported if each.fixes]
    named = (_explained(each, reported) for each in found.diagnostics)
    fixed = tuple(replace(each, fixes=_fixes(each, offered)) for each in named)
    own = set(map(os.path.realpath, executed))
    rest = (each for each in reported if os.path.realpath(each.span.path) in own)
    return replace(
        found, diagnostics=fixed, static=tuple(each for each in rest if not _is_among(each, fixed))
    )


def _is_among(finding: Diagnostic, found: Iterable[Diagnostic]) -> bool:
    """Check whether a run has found a static finding: the same rule at its row, or one with a fix of it."""
    edits = {fix.edits for fix in finding.fixes if fix.edits}
    rows = {_row(place) for place in _places(finding)}
    return any(
        (each.code == finding.code and rows & {_row(place) for place in _places(each)})
        or edits & {fix.edits for fix in each.fixes}
        for each in found
    )


def _explained(finding: Diagnostic, reported: Iterable[Diagnostic]) -> Diagnostic:
    """An exception without a rule, explained by the static finding of this exception at its row, if any."""
    if finding.code != CRASH:
        return finding
    failing = finding.failing
    for each in reported:
        here = any(_is_within(place, failing) for place in _places(each))
        if here and is_error_of(each.code, finding.message):
            own = [step for step in each.evidence if _row(step.span) != _row(failing)]
            exception = f"{finding.name}: {finding.message}"
            return replace(
                finding,
                code=each.code,
                name=each.name,
                message=f"{each.message}; {exception}",
                evidence=(*own, *finding.evidence),
                fixes=each.fixes,
            )
    return finding


def _fixes(finding: Diagnostic, offered: Iterable[Diagnostic]) -> tuple[Fix, ...]:
    """Return the fixes of the static findings at the place of a finding, or on its way, before its own."""
    same = [each for each in offered if each.code == finding.code]
    here = [each for each in same if _row(each.span) == _row(finding.span)]
    exact = [each for each in here if _overlap(each.span, finding.span)]
    rows = {_row(place) for place in _places(finding)}
    near = exact or here or [each for each in same if _row(each.span) in rows]
    page = pages_by_code().get(finding.code)
    if not near and len(same) == 1 and page is not None and page.raises is Raises.NEVER:
        near = same  # the only one of this rule: the run found its effect elsewhere
    fixes = [fix for each in near for fix in each.fixes]
    # A fix by hand comes last, also where the run knows the same edit to be right.
    ordered = sorted((*fixes, *finding.fixes), key=lambda fix: fix.applicability is Applicability.DISPLAY)
    by_edits: dict[object, Fix] = {}
    for fix in ordered:
        by_edits.setdefault(fix.edits or fix.message, fix)
    return tuple(by_edits.values())


def _places(finding: Diagnostic) -> tuple[Span, ...]:
    return (finding.span, *(step.span for step in finding.evidence))


def _overlap(one: Span, other: Span) -> bool:
    """Check whether two places, starting in the same row, have a character in common."""
    ends = [(each.end_row, each.end_column) for each in (one, other)]
    return min(ends) > (one.row, max(one.column, other.column))


def _is_within(place: Span, other: Span) -> bool:
    """Check whether a place begins in one of the rows of another one."""
    path, row = _row(place)
    return path == _row(other)[0] and other.row <= row <= other.end_row


def _row(place: Span) -> tuple[str, int]:
    return os.path.realpath(place.path), place.row
