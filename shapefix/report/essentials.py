"""The essentials of a finding: at most three places, and the way to them in one line."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

from shapefix.diagnostics import Condition, Diagnostic, Evidence, ExpectedError, Role, Span
from shapefix.report.cells import width_of
from shapefix.report.view import View, one_line

MOST_LABELS = 3
"""The largest number of labels in the short report of a finding."""


def essential_steps(finding: Diagnostic) -> list[Evidence]:
    """Return the cause, the last producer and the failure, as far as the finding has them.

    Without a cause or a producer, another step of the kind that it has takes that place. The failure is
    labeled with the exception.
    """
    failures = [step for step in finding.evidence if step.role is Role.FAILURE]
    causes = [step for step in finding.evidence if step.role is Role.CAUSE]
    producers = [step for step in finding.evidence if step.role is Role.PRODUCER]
    others = [*causes[:1], *producers[-1:]]
    if not producers:
        others = [*causes[:1], *causes[1:][-1:]]
    elif not causes:
        others = [*producers[:-1][:1], *producers[-1:]]
    shown = [Evidence(step.span, step.label or step.message, step.role) for step in others]
    failure = failures[-1] if failures else Evidence(finding.span, "", Role.FAILURE)
    words = failure.label or failure.message
    if finding.error is not None:
        words = in_words(finding.error, finding.condition)
    return [*shown, Evidence(failure.span, words, Role.FAILURE)]


def in_words(error: ExpectedError, condition: Condition | None) -> str:
    """Return `RuntimeError at the first batch: …`, or `RuntimeError when `T` > 1: …`."""
    moment = f" at the {error.moment}" if error.moment else ""
    when = f" when {condition.text}" if condition is not None else ""
    return str(replace(error, type=f"{error.type}{moment}{when}"))


def breadcrumb(finding: Diagnostic, view: View, room: int) -> str:
    """Return the calls to the failure in one line of at most room cells; "" if there are none.

    Outer calls are omitted first: `… > model(images) at line 57`. The last call has its line, and so has the
    last one in each other file.
    """
    calls = finding.calls
    names = [one_line(step.label or step.message) for step in calls]
    for position, (step, after) in enumerate(zip_longest(calls, calls[1:])):
        span = step.span
        if after is None or after.span.path != span.path:
            names[position] += f" at {short_place(span, finding.span, view)}"
    text = " > ".join(names)
    while len(names) > 1 and width_of(text) > room:
        names = names[1:]
        text = " > ".join(["…", *names])
    return text


def short_place(span: Span, near: Span, view: View) -> str:
    """Return `line 57`, or in another file than near the path from the current folder: `src/train.py:57`."""
    if span.path == near.path:
        return f"line {span.row}"
    return f"{one_line(view.relative(span.path))}:{span.row}"
