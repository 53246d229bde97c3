"""The format `full`: findings with code frames; verbose labels each step of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate

from shapefix.diagnostics import (
    Applicability,
    Diagnostic,
    Failure,
    Fix,
    Role,
    RunVerdict,
    Severity,
    Span,
    in_run_order,
)
from shapefix.report.cells import wrapped
from shapefix.report.essentials import MOST_LABELS, breadcrumb, essential_steps, in_words, short_place
from shapefix.report.fixed_code import fixed_code
from shapefix.report.folding import FoldedFinding, folded
from shapefix.report.frame import Label, Line, frame
from shapefix.report.paint import painter
from shapefix.report.summary import summary
from shapefix.report.view import View, failure_line, one_line
from shapefix.rulebook.pages import pages_by_code

LONGEST_PLACES = 240
"""Characters of the other files that an entry names; the first one always is."""


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render a frame per cause, a line per failure, and the summary unless quiet.

    A verbose view has a frame per finding, with all steps of its evidence.
    """
    sources = lru_cache(maxsize=8)(view.sources)
    paint = painter(view.color)
    if view.verbose:
        entries = [FoldedFinding(each) for each in in_run_order(findings)]
    else:
        entries = folded(findings, sources)
    for entry in entries:
        yield paint([*_entry(entry, view, sources), []])
    for failure in failures:
        line = failure_line(failure, view)
        kind = "error:"
        yield paint([[(kind, "error"), (line.removeprefix(kind), "code")]])
    if failures:
        yield "\n"
    if not view.quiet:
        yield paint([[(row, "name")] for row in wrapped(summary(findings, failures, view), view.width)])


def _entry(entry: FoldedFinding, view: View, sources: Callable[[str], str | None]) -> Iterator[Line]:
    finding = entry.first
    severity = finding.severity.value
    head = f"{severity}[{finding.code}]"
    rule = one_line(finding.name)
    title, *rest = wrapped(
        f"{rule}: {one_line(finding.message)}", view.width, first=view.width - len(head) - 1, hang=4
    )
    name = title[: len(rule) + 1]
    yield [(head, severity), (" ", "code"), (name, "name"), (title[len(name) :], "code")]
    yield from ([(row, "code")] for row in rest)

    labels = _every_label(finding) if view.verbose else _labels(finding)
    paths = list(dict.fromkeys([finding.span.path, *(label.span.path for label in labels)]))
    gutter = max(len(str(label.span.row)) for label in labels)
    edge = [(f"{'':>{gutter}} |", "gutter")]
    for path in paths:
        here = [label for label in labels if label.span.path == path]
        place = finding.span if path == finding.span.path else here[0].span
        arrow = "-->" if path == finding.span.path else ":::"
        at = f" {one_line(view.relative(path))}:{place.row}:{place.column}"
        yield [(f"{'':>{gutter}}{arrow}", "gutter"), (at, "code")]
        if view.verbose or path == finding.span.path:
            yield edge
        yield from frame(sources(path), here, gutter, view.width, dense=not view.verbose)
    if view.verbose:
        yield edge
    for kind, style, text in _notes(entry, labels, replace(view, sources=sources), gutter):
        yield from _note(kind, style, one_line(text), gutter, view.width)


def _notes(
    entry: FoldedFinding, labels: Sequence[Label], view: View, gutter: int
) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, style and text of each line below the frames."""
    finding = entry.first
    if not view.verbose:
        way = "reached from"
        found = breadcrumb(finding, view, view.width - gutter - len(f" = {way} "))
        if found:
            yield f"{way} {found}", "code", ""
    if finding.unused:
        yield "unused code", "note", f"nothing in the project uses {_in_backticks(finding.unused)}"
    if finding.reservation and finding.severity is Severity.INFO:
        yield "not certain", "note", finding.reservation
    if finding.condition is not None and finding.error is None:
        yield "fails when", "note", finding.condition.text
    if finding.confirmation is not None:
        left = "left " if finding.confirmation.verdict is RunVerdict.OPEN else ""
        kind = f"{left}{finding.confirmation.verdict.value} by the run"
        style = finding.severity.value if finding.confirmation.verdict is RunVerdict.CONFIRMED else "note"
        yield kind, style, finding.confirmation.reason
    if not finding.fixes and not finding.is_answer and view.verbose:
        yield "no automatic fix", "gutter", ""
    for number, fix in enumerate(finding.fixes):
        yield f"{'or' if number else 'fix'} ({_kind(fix)})", "fix", _repair(fix, finding, labels, view)
    same = [each for each in entry.alike if _is_same_mistake(each, finding)]
    if same:
        yield (
            f"and {len(same)} more place{'s' if len(same) > 1 else ''}",
            "note",
            _places(finding, same, view),
        )
    by_message: dict[str, list[Diagnostic]] = {}
    for each in entry.alike:
        if each not in same:
            by_message.setdefault(each.message, []).append(each)
    for message, several in by_message.items():
        yield f"also at {_places(finding, several, view)}", finding.severity.value, message
    by_code: dict[str, list[Diagnostic]] = {}
    for each in entry.consequences:
        by_code.setdefault(each.code, []).append(each)
    for first, *others in by_code.values():
        at = short_place(first.span, finding.span, view)
        more = f", and {len(others)} more place{'s' if len(others) > 1 else ''}" if others else ""
        yield f"also {first.code} at {at}{more}", first.severity.value, f"{first.name}: {first.message}"
    if finding.code in pages_by_code():
        steps = sum(step.role is not Role.CALL for step in finding.evidence)
        hides = steps > MOST_LABELS and not view.verbose
        more = f"; `--verbose` shows all {len(finding.evidence)} steps" if hides else ""
        yield finding.name, "gutter", f"`shapefix explain {finding.code}`{more}"


def _in_backticks(name: str) -> str:
    return name if " " in name else f"`{name}`"


def _is_same_mistake(other: Diagnostic, first: Diagnostic) -> bool:
    """Whether a finding repeats the first of its entry; other arguments of the same call have other words."""
    return not first.habit or other.habit == first.habit


def _places(first: Diagnostic, found: Sequence[Diagnostic], view: View) -> str:
    """Return the first places of findings: `lines 22, 23, src/eval.py:40, 41`."""
    path = first.span.path
    rows: dict[str, list[int]] = {path: []}
    for each in found:
        rows.setdefault(each.span.path, []).append(each.span.row)
    own = sorted(set(rows.pop(path)))
    parts = [f"line{'s' if len(own) > 1 else ''} {', '.join(map(str, own))}"] if own else []
    named = [
        f"{one_line(view.relative(other))}:{', '.join(map(str, sorted(set(found))))}"
        for other, found in rows.items()
    ]
    lengths = accumulate(len(each) + 2 for each in named)
    shown = [each for each, length in zip(named, lengths, strict=True) if length <= LONGEST_PLACES]
    shown = shown or named[:1]
    parts += [*shown, *(["… (`--verbose` shows all)"] if len(named) > len(shown) else [])]
    return ", ".join(parts)


def _labels(finding: Diagnostic) -> list[Label]:
    """Return the labels of the short report; the place of the finding is primary."""
    return _with_primary(finding, [(step.span, step.message) for step in essential_steps(finding)])


def _every_label(finding: Diagnostic) -> list[Label]:
    """Return a label per step of the evidence, numbered if there are several; the finding is primary."""
    steps = [(step.span, step.message) for step in finding.evidence]
    if len(steps) > 1:
        steps = [(span, f"{number}. {text}") for number, (span, text) in enumerate(steps, start=1)]
    if finding.error is not None:
        steps.append((finding.failing, in_words(finding.error, finding.condition)))
    return _with_primary(finding, steps)


def _with_primary(finding: Diagnostic, steps: Sequence[tuple[Span, str]]) -> list[Label]:
    severity = finding.severity.value
    labels = []
    for span, text in steps:
        primary = span == finding.span
        labels.append(Label(span, one_line(text), severity if primary else "step", primary))
    if not any(label.primary for label in labels):
        labels.insert(0, Label(finding.span, "", severity, True))
    return labels


def _repair(fix: Fix, finding: Diagnostic, labels: Sequence[Label], view: View) -> str:
    """Return the new code of a short repair, with its line unless a label is there; else its message."""
    text = view.sources(fix.edits[0].span.path) if fix.edits else None
    fixed = None
    if text is not None and fix.applicability is not Applicability.DISPLAY:
        fixed = fixed_code(fix, text)
    if fixed is None:
        return fix.message
    place = fix.edits[0].span
    at = ""
    if fixed.inserted or all((place.path, place.row) != (each.span.path, each.span.row) for each in labels):
        at = f" {fixed.inserted or 'at'} {short_place(place, finding.span, view)}"
    return f"{fixed.code}{at}{fix.remark and f'; {fix.remark}'}"


def _kind(fix: Fix) -> str:
    return "by hand" if fix.applicability is Applicability.DISPLAY else fix.applicability.value


def _note(kind: str, style: str, text: str, gutter: int, width: int) -> Iterator[Line]:
    lead = f"{'':>{gutter}} = "
    room = max(width - len(lead), 20)
    first, *rest = wrapped(f"{kind}: {text}" if text else kind, room, hang=2)
    yield [(lead, "gutter"), (first[: len(kind)], style), (first[len(kind) :], "code")]
    yield from ([(" " * len(lead) + row, "code")] for row in rest)
