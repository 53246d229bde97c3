"""The proof for people: what the script did before its repair and does after it, and each repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shapefix.diagnostics import Applicability, Diagnostic, Fix, Span
from shapefix.report.cells import wrapped
from shapefix.report.view import one_line
from shapefix.runtime.findings.exception_report import said
from shapefix.runtime.repair.candidates import Candidate
from shapefix.runtime.repair.search import Kept, Outcome, TakenBack
from shapefix.runtime.repair.trials import Trial
from shapefix.runtime.report.formatting import counted
from shapefix.runtime.report.text_report import Line, ending

_MOST_TAKEN_BACK = 6
_TITLE = 8


def lines(outcome: Outcome, show: Callable[[str], str], width: int) -> Iterator[Line]:
    """The proof, in rows of about width cells; show turns a path into the one to print."""
    first, best = outcome.first, outcome.best
    yield from _told("before", did(first, show), "warning" if first.blocking else "code", width)
    if best.trial is not first:
        yield from _told("after", did(best.trial, show), "fix" if outcome.passed else "warning", width)
    for title, entries in (
        ("repairs", [_kept(kept, show) for kept in best.kept]),
        ("taken back", [_back(each, show) for each in outcome.taken_back[:_MOST_TAKEN_BACK]]),
    ):
        if entries:
            yield []
            yield [(title, "name")]
            for head, *rows in entries:
                yield from ([(f"  {row}", "step")] for row in wrapped(head, width - 2, hang=2))
                for name, text in zip(("fix", "proof"), rows, strict=True):
                    yield from _told(f"    {name}", text, "code", width)
    if len(outcome.taken_back) > _MOST_TAKEN_BACK:
        yield [(f"  … and {len(outcome.taken_back) - _MOST_TAKEN_BACK} more", "gutter")]


def did(trial: Trial, show: Callable[[str], str]) -> str:
    """What the script did in a run, in one sentence: what stopped it, or what it trained."""
    stopped = min(trial.blocking, key=trial.reach, default=None)
    if stopped is not None:
        failure = trial.failure(stopped)
        place = stopped.span if failure is None or not failure.stack else failure.stack[0]
        what = stopped.message if failure is None else said(failure)
        swallowed = ", swallowed" if failure is not None and failure.swallowed else ""
        return f"{one_line(what)} ({at(place, show)}{swallowed})"
    if not trial.whole:
        return ending(trial.run, show)
    if not trial.run.trained:
        return "the script comes to its end; it makes no training step"
    return trained(trial)


def trained(trial: Trial) -> str:
    """What a run trained: its steps, its first loss, and how many parameters got a gradient."""
    observed = trial.run.observed
    parts = [counted(observed.steps, "training step")]
    loss = observed.first("backward")
    if loss is not None and loss["value"] is not None:
        parts.append(f"loss {loss['value']:.4g}")
    given = sum(line["given"] for line in observed.of("gradients"))
    total = given + sum(line["without"] for line in observed.of("gradients"))
    if total:
        parts.append(f"gradients in {given} of {total} parameters")
    return ", ".join(parts)


def at(place: Span, show: Callable[[str], str]) -> str:
    """A place as an editor takes it."""
    return f"{show(place.path)}:{place.row}"


def _kept(kept: Kept, show: Callable[[str], str]) -> tuple[str, str, str]:
    """A repair in the copy: what it is, what it does, and what proves it."""
    proof = kept.verdict.value
    if kept.failing is None:
        proof = "a run does not show it; the script trains with the repair as it did without"
    return _named(kept.candidate, kept.place, show), _fixes(kept.candidate), proof


def _back(each: TakenBack, show: Callable[[str], str]) -> tuple[str, str, str]:
    return _named(each.candidate, each.place, show), _fixes(each.candidate), one_line(each.reason)


def _named(candidate: Candidate, place: Span, show: Callable[[str], str]) -> str:
    finding = candidate.finding
    unsafe = any(fix.applicability is Applicability.UNSAFE for fix in candidate.fixes)
    return f"{finding.code} {finding.name} at {at(place, show)} ({'unsafe' if unsafe else 'safe'})"


def _fixes(candidate: Candidate) -> str:
    return one_line(", ".join(dict.fromkeys(fix.message for fix in candidate.fixes)))


def _told(title: str, text: str, style: str, width: int) -> Iterator[Line]:
    lead = f"{title:<{_TITLE + len(title) - len(title.lstrip())}}"
    first, *rest = wrapped(text, width, first=width - len(lead), hang=len(lead))
    yield [(lead, "name"), (first, style)]
    yield from ([(row, style)] for row in rest)


def by_hand(found: Diagnostic, read: tuple[Diagnostic, ...]) -> tuple[Fix, ...]:
    """What reading suggests to do by hand about a finding of a run."""
    return tuple(
        fix
        for each in read
        if each.code == found.code and each.span.path == found.span.path and each.span.row == found.span.row
        for fix in each.fixes
        if fix.applicability is Applicability.DISPLAY
    )
