"""The verdicts of a run on the static findings in its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from shapefix.diagnostics import Diagnostic, RunVerdict
from shapefix.report.view import View
from shapefix.runtime.confirmation.confirm import Confirmer
from shapefix.runtime.confirmation.run_record import record_of
from shapefix.runtime.findings.collect import ProbeFindings
from shapefix.runtime.repair.candidates import usable
from shapefix.runtime.report.formatting import Line, ShowPath
from shapefix.runtime.report.json_document import document, json_text
from shapefix.runtime.run import ProbeRun
from shapefix.sources.text import Unreadable, read_bytes

_ORDER = (RunVerdict.CONFIRMED, RunVerdict.OPEN, RunVerdict.REFUTED)
_STYLES = {RunVerdict.CONFIRMED: "error", RunVerdict.OPEN: "warning", RunVerdict.REFUTED: "gutter"}


def with_verdicts(run: ProbeRun, found: ProbeFindings, view: View) -> ProbeFindings:
    """The findings of a run, with the verdict of the run on each static finding."""
    if not found.static:
        return found
    record = record_of(json.loads(json_text(document(run, (), found, 0, view))))
    judged = Confirmer(record, _data).judged(found.static)
    codes = {each.code for each in found.diagnostics}
    ordered = sorted((each for each in judged if each.confirmation is not None), key=_rank)
    return replace(found, static=tuple(each for each in ordered if not _is_known(each, codes)))


def static_lines(found: ProbeFindings, show: ShowPath) -> Iterator[Line]:
    """A line for each static finding with its verdict; show converts a path into its displayed form."""
    if not found.static:
        return
    yield [("static findings in these files", "name"), (" (`shapefix check`), judged by the run", "code")]
    for each in found.static:
        if each.confirmation is None:
            continue
        verdict = each.confirmation.verdict
        place = f"{show(each.span.path)}:{each.span.row}"
        yield [
            (f"  {verdict.value:<9}  ", _STYLES[verdict]),
            (f"{place}: {each.code} {each.message}", "code"),
        ]
        if verdict is RunVerdict.REFUTED:
            yield [(f"             {each.confirmation.reason}", "gutter")]
    fixed = sum(1 for each in found.static if usable(each) and not _is_refuted(each))
    if fixed:
        yield [(f"  `shapefix probe --repair` tries the repairs of {fixed} of them", "fix")]


def _is_known(finding: Diagnostic, codes: set[str]) -> bool:
    """Whether a static finding is one of the run's own, of a rule among codes."""
    verdict = None if finding.confirmation is None else finding.confirmation.verdict
    return verdict is RunVerdict.CONFIRMED and finding.code in codes


def _is_refuted(finding: Diagnostic) -> bool:
    return finding.confirmation is not None and finding.confirmation.verdict is RunVerdict.REFUTED


def _rank(finding: Diagnostic) -> int:
    assert finding.confirmation is not None
    return _ORDER.index(finding.confirmation.verdict)


def _data(path: str) -> bytes | None:
    try:
        return read_bytes(path)
    except Unreadable:
        return None
