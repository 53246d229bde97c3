"""Fixes for the findings of a run: those of `check` for the same findings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from shapefix.diagnostics import Diagnostic, Fix, Span
from shapefix.runtime.findings.collect import CRASH, ProbeFindings
from shapefix.runtime.findings.error_catalog import is_error_of
from shapefix.runtime.repair.patched_sources import OriginalSources, PatchedSources
from shapefix.runtime.repair.static_findings import StaticFindings
from shapefix.sources.configuration import ConfigurationError
from shapefix.sources.text import Unreadable


def with_static_fixes(found: ProbeFindings, script: str) -> ProbeFindings:
    """Add the rules and fixes of `check` to the findings of a run of a script, or of a module of a folder."""
    if not found.diagnostics:
        return found
    paths = [script, *(place.path for each in found.diagnostics for place in _places(each))]
    try:
        reader = StaticFindings(script)
        files = [path for path in dict.fromkeys(map(os.path.realpath, paths)) if path.endswith(".py")]
        read = reader.findings(PatchedSources(OriginalSources(), {}), files)
    except (ConfigurationError, Unreadable):
        return found
    reported = [each for each in read if reader.is_reported(each)]
    offered = [each for each in reported if each.fixes]
    named = (_explained(each, reported) for each in found.diagnostics)
    return replace(found, diagnostics=tuple(replace(each, fixes=_fixes(each, offered)) for each in named))


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
    fixes = [fix for each in near for fix in each.fixes]
    known = {fix.edits for fix in fixes}
    return (*fixes, *(fix for fix in finding.fixes if fix.edits not in known))


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
