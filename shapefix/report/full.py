"""The format `full`: findings with code frames, each step of the evidence labeled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from shapefix.diagnostics import Applicability, Diagnostic, Failure, Fix, RunVerdict
from shapefix.report.cells import wrapped
from shapefix.report.frame import Label, Line, frame
from shapefix.report.paint import painter
from shapefix.report.summary import summary
from shapefix.report.view import View, failure_line, one_line


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render a frame per finding, a line per failure, and the summary unless quiet."""
    sources = lru_cache(maxsize=8)(view.sources)
    paint = painter(view.color)
    for finding in findings:
        yield paint([*_finding(finding, view, sources), []])
    for failure in failures:
        line = failure_line(failure, view)
        kind = "error:"
        yield paint([[(kind, "error"), (line.removeprefix(kind), "code")]])
    if failures:
        yield "\n"
    if not view.quiet:
        yield paint([[(row, "name")] for row in wrapped(summary(findings, failures, view), view.width)])


def _finding(finding: Diagnostic, view: View, sources: Callable[[str], str | None]) -> Iterator[Line]:
    severity = finding.severity.value
    head = f"{severity}[{finding.code}]"
    title, *rest = wrapped(
        f"{finding.name}: {one_line(finding.message)}", view.width, first=view.width - len(head) - 1, hang=4
    )
    name = title[: len(finding.name) + 1]
    yield [(head, severity), (" ", "code"), (name, "name"), (title[len(name) :], "code")]
    yield from ([(row, "code")] for row in rest)

    labels = _labels(finding)
    paths = list(dict.fromkeys([finding.span.path, *(label.span.path for label in labels)]))
    gutter = max(len(str(label.span.row)) for label in labels)
    edge = [(f"{'':>{gutter}} |", "gutter")]
    for path in paths:
        here = [label for label in labels if label.span.path == path]
        place = finding.span if path == finding.span.path else here[0].span
        arrow = "-->" if path == finding.span.path else ":::"
        at = f" {one_line(view.relative(path))}:{place.row}:{place.column}"
        yield [(f"{'':>{gutter}}{arrow}", "gutter"), (at, "code")]
        yield edge
        yield from frame(sources(path), here, gutter, view.width)
    yield edge
    if finding.condition is not None:
        yield from _note("fails when", "note", one_line(finding.condition.text), gutter, view.width)
    if finding.confirmation is not None:
        left = "left " if finding.confirmation.verdict is RunVerdict.OPEN else ""
        kind = f"{left}{finding.confirmation.verdict.value} by the run"
        style = severity if finding.confirmation.verdict is RunVerdict.CONFIRMED else "note"
        yield from _note(kind, style, one_line(finding.confirmation.reason), gutter, view.width)
    if not finding.fixes and not finding.is_answer:
        yield from _note("no automatic fix", "gutter", "", gutter, view.width)
    for number, fix in enumerate(finding.fixes):
        kind = f"{'or' if number else 'fix'} ({_kind(fix)})"
        yield from _note(kind, "fix", one_line(fix.message), gutter, view.width)


def _labels(finding: Diagnostic) -> list[Label]:
    """Return a label per step of the evidence, numbered if there are several; the finding is primary."""
    severity = finding.severity.value
    steps = finding.evidence
    labels = []
    for number, step in enumerate(steps, start=1):
        primary = step.span == finding.span
        text = one_line(step.message)
        text = f"{number}. {text}" if len(steps) > 1 else text
        labels.append(Label(step.span, text, severity if primary else "step", primary))
    if not any(label.primary for label in labels):
        labels.insert(0, Label(finding.span, "", severity, True))
    return labels


def _kind(fix: Fix) -> str:
    return "by hand" if fix.applicability is Applicability.DISPLAY else fix.applicability.value


def _note(kind: str, style: str, text: str, gutter: int, width: int) -> Iterator[Line]:
    lead = f"{'':>{gutter}} = "
    room = max(width - len(lead), 20)
    first, *rest = wrapped(f"{kind}: {text}" if text else kind, room, hang=2)
    yield [(lead, "gutter"), (first[: len(kind)], style), (first[len(kind) :], "code")]
    yield from ([(" " * len(lead) + row, "code")] for row in rest)
