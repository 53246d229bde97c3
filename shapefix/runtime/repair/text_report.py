"""The text report of a repair: the script before and after it, and the proof of each repair."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Applicability, Diagnostic, Fix, Span
from shapefix.report.cells import wrapped
from shapefix.report.view import one_line
from shapefix.runtime.findings.exception_report import exception_text
from shapefix.runtime.protocol import BackwardLine, GradientsLine
from shapefix.runtime.repair.candidates import RepairCandidate
from shapefix.runtime.repair.search import Accepted, Rejected, SearchResult
from shapefix.runtime.repair.trials import RepairTrial
from shapefix.runtime.report.formatting import (
    Line,
    ShowPath,
    counted,
    place_text,
)
from shapefix.runtime.report.text_report import ending

_MOST_REJECTED = 6
_TITLE = 8


def repair_lines(result: SearchResult, show: ShowPath, width: int) -> Iterator[Line]:
    """The report, in rows of about width cells; show converts a path into the one to print."""
    first, best = result.first, result.best
    yield from _row("before", run_summary(first, show), "warning" if first.blocking else "code", width)
    if best.trial is not first:
        yield from _row("after", run_summary(best.trial, show), "fix" if result.trains else "warning", width)
    for title, entries in (
        ("repairs", [_accepted(each, show) for each in best.accepted]),
        ("rejected", [_rejected(each, show) for each in result.rejected[:_MOST_REJECTED]]),
    ):
        if entries:
            yield []
            yield [(title, "name")]
            for head, *rows in entries:
                yield from ([(f"  {row}", "step")] for row in wrapped(head, width - 2, hang=2))
                for name, text in zip(("fix", "result"), rows, strict=True):
                    yield from _row(f"    {name}", text, "code", width)
    if len(result.rejected) > _MOST_REJECTED:
        yield [(f"  … and {len(result.rejected) - _MOST_REJECTED} more", "gutter")]


def run_summary(trial: RepairTrial, show: ShowPath) -> str:
    """A run in one sentence: its failure, or its training."""
    stopped = min(trial.blocking, key=trial.reach, default=None)
    if stopped is not None:
        failure = trial.failure(stopped)
        place = stopped.span if failure is None or not failure.stack else failure.stack[0]
        what = stopped.message if failure is None else exception_text(failure)
        swallowed = ", swallowed" if failure is not None and failure.swallowed else ""
        return f"{one_line(what)} ({place_text(place, show)}{swallowed})"
    if not trial.is_whole:
        return ending(trial.run, show)
    if not trial.run.trained:
        return "the script finishes without a training step"
    return training_summary(trial)


def training_summary(trial: RepairTrial) -> str:
    """The training in a run: its steps, its first loss, and the parameters with a gradient."""
    observed = trial.run.observed
    parts = [counted(observed.steps, "training step")]
    loss = observed.first(BackwardLine)
    if loss is not None and loss["value"] is not None:
        parts.append(f"loss {loss['value']:.4g}")
    given = sum(line["with_gradient"] for line in observed.of(GradientsLine))
    total = given + sum(line["without_gradient"] for line in observed.of(GradientsLine))
    if total:
        parts.append(f"gradients for {given} of {total} parameters")
    return ", ".join(parts)


def _accepted(each: Accepted, show: ShowPath) -> tuple[str, str, str]:
    """A repair in the copy: its finding, its fixes, and its proof."""
    proof = each.outcome.value
    if each.failing is None:
        proof = "static finding; the script still trains with the repair"
    return _title(each.candidate, each.place, show), _fixes(each.candidate), proof


def _rejected(each: Rejected, show: ShowPath) -> tuple[str, str, str]:
    return _title(each.candidate, each.place, show), _fixes(each.candidate), one_line(each.reason)


def _title(candidate: RepairCandidate, place: Span, show: ShowPath) -> str:
    finding = candidate.finding
    unsafe = any(fix.applicability is Applicability.UNSAFE for fix in candidate.fixes)
    return f"{finding.code} {finding.name} at {place_text(place, show)} ({'unsafe' if unsafe else 'safe'})"


def _fixes(candidate: RepairCandidate) -> str:
    return one_line(", ".join(dict.fromkeys(fix.message for fix in candidate.fixes)))


def _row(title: str, text: str, style: str, width: int) -> Iterator[Line]:
    lead = f"{title:<{_TITLE + len(title) - len(title.lstrip())}}"
    first, *rest = wrapped(text, width, first=width - len(lead), hang=len(lead))
    yield [(lead, "name"), (first, style)]
    yield from ([(row, style)] for row in rest)


def by_hand(found: Diagnostic, read: tuple[Diagnostic, ...]) -> tuple[Fix, ...]:
    """The manual fixes suggested by static analysis for a finding of a run."""
    return tuple(
        fix
        for each in read
        if each.code == found.code and each.span.path == found.span.path and each.span.row == found.span.row
        for fix in each.fixes
        if fix.applicability is Applicability.DISPLAY
    )
