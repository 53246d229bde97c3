"""The format `agent`: compact lines for coding agents, each fix as a patch for `git apply`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Diagnostic, Evidence, Failure, Fix, Role
from shapefix.report.edited_text import edited_text
from shapefix.report.view import View, failure_line, one_line, unchecked_line, visible
from shapefix.sources.row_difference import unified_rows

_CONTEXT = 1
"""Rows around a change; `git apply` needs one."""


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render each finding as its line, the places of its evidence and the patch of its fix."""
    for finding in findings:
        seen = "" if finding.confirmation is None else f" [{finding.confirmation.verdict.value}]"
        place = _place(finding.span.path, finding.span.row, finding.span.column, view)
        yield f"{place} {finding.code} {finding.severity.value}{seen} {one_line(finding.text)}\n"
        if finding.condition is not None:
            yield f"  when: {one_line(finding.condition.text)}\n"
        for step in steps_elsewhere(finding.evidence, finding):
            at = _place(step.span.path, step.span.row, step.span.column, view)
            yield f"  {step.role.value}: {at} {one_line(step.message)}\n"
        if finding.reservation:
            yield f"  not certain: {one_line(finding.reservation)}\n"
        if finding.fix is not None:
            yield f"  fix ({finding.fix.applicability.value}): {one_line(finding.fix.message)}\n"
            yield from fix_patch(finding.fix, view)
    for failure in failures:
        yield failure_line(failure, view) + "\n"
    for unchecked in view.unchecked:
        yield unchecked_line(unchecked, view) + "\n"
    if not findings and not failures:
        yield "no findings\n"


def _place(path: str, row: int, column: int, view: View) -> str:
    return f"{one_line(view.relative(path))}:{row}:{column}"


def steps_elsewhere(evidence: Sequence[Evidence], finding: Diagnostic) -> Iterator[Evidence]:
    """Yield the steps at other places than the finding; the history of a value is left out."""
    for step in evidence:
        if step.role is not Role.HISTORY and step.span != finding.span:
            yield step


def fix_patch(fix: Fix, view: View) -> Iterator[str]:
    """Yield the unified diff of a fix in one file of known text."""
    paths = {edit.span.path for edit in fix.edits}
    if len(paths) != 1:
        return
    (path,) = paths
    text = view.sources(path)
    new = None if text is None else edited_text(fix, text)
    if text is None or new is None:
        return
    name = one_line(view.relative(path))
    old_rows, new_rows = _rows(text), _rows(new)
    if old_rows == new_rows:
        return
    yield from (f"--- {name}\n", f"+++ {name}\n")
    for row in unified_rows(old_rows, new_rows, _CONTEXT):
        yield from _patch_row(row)


def _patch_row(row: str) -> Iterator[str]:
    """Yield a row of a patch. Its end is kept; control characters in it are replaced."""
    end = "\r\n" if row.endswith("\r\n") else "\n"
    yield visible(row.removesuffix(end), keep="\t") + end
    if not row.endswith("\n"):
        yield "\\ No newline at end of file\n"


def _rows(text: str) -> list[str]:
    *rows, last = text.split("\n")
    whole = [f"{row}\n" for row in rows]
    return [*whole, last] if last else whole
