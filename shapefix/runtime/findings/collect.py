"""What the probe has found: Diagnostics as those of `check`, with what was measured as evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shapefix.diagnostics import Diagnostic, Evidence, Severity, Span
from shapefix.runtime.findings.constructor_fixes import Read, fixes, on_disk
from shapefix.runtime.findings.exception_report import steps
from shapefix.runtime.findings.exception_rules import explanation
from shapefix.runtime.findings.silent import Rules, seen
from shapefix.runtime.observations import Failure, Observations

CRASH = "crash"
"""What stands in the place of a code where no rule is known for an exception."""

# What a script may well raise because the probe has ended a loop early: nothing to average, nothing saved.
_AFTERMATH = (
    "FileNotFoundError", "IndexError", "KeyError", "StatisticsError", "StopIteration", "UnboundLocalError",
    "ValueError", "ZeroDivisionError",
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """The findings, and an exception that may come of the probe's own doing, None where there was none.

    notes are of what may well be meant: no findings, but worth a line.
    """

    diagnostics: tuple[Diagnostic, ...]
    aftermath: Failure | None
    notes: tuple[Diagnostic, ...] = ()


def findings(observed: Observations, rules: Rules, read: Read = on_disk) -> Found:
    """What an observed run has shown to be wrong, each fault once; read gives the texts that were run."""
    failures = list(_counting(observed))
    shortened = observed.first("shortened") is not None
    aftermath = next((each for each in failures if shortened and is_aftermath(each)), None)
    told: dict[tuple[str, Span | None, str], Diagnostic] = {}
    for failure in failures:
        if failure is aftermath:
            continue
        found = diagnostic(failure, observed, rules)
        if found is not None:
            key = (found.code, found.span, failure.type)
            if key not in told:
                told[key] = replace(found, fixes=fixes(failure, read))
    silent = list(seen(observed, rules))
    told |= {(each.code, each.span, each.name): each for each in silent if each.severity is not Severity.INFO}
    notes = tuple(each for each in silent if each.severity is Severity.INFO)
    return Found(tuple(told.values()), aftermath, notes)


def is_aftermath(failure: Failure) -> bool:
    """Whether an exception ended the script outside of all that was watched, as for want of results."""
    return failure.where == "script" and failure.ended and failure.type in _AFTERMATH


def diagnostic(failure: Failure, observed: Observations, rules: Rules) -> Diagnostic | None:
    """A failure as a finding; one without a rule says what was raised. None without a line of the user's."""
    if not failure.stack:
        return None
    explained = explanation(failure, observed)
    swallowed = _swallowed(failure)
    if explained is None or explained.code not in rules:
        severity = Severity.WARNING if failure.swallowed else Severity.ERROR
        return Diagnostic(
            CRASH, failure.type, severity, _all_said(failure), failure.stack[0],
            (*steps(failure), *swallowed),
        )  # fmt: skip
    name, severity = rules[explained.code]
    return Diagnostic(
        explained.code, name, severity, explained.message, explained.span,
        (*explained.evidence, *swallowed), explained.condition,
    )  # fmt: skip


def _counting(observed: Observations) -> Iterator[Failure]:
    """The failures that matter: swallowed, ending the script, or of rows that have not met yet.

    Where the last exception was raised from one that left a watched call, that one is the fault.
    """
    ended = [each for each in observed.failures if each.ended]
    watched = [each for each in ended if each.where != "script"]
    for failure in observed.failures:
        last = failure.ended and not (watched and failure.where == "script")
        # What a library swallows is the library's way of asking.
        if failure.caught is not None or failure.where == "rows" or last:
            yield failure


def _swallowed(failure: Failure) -> tuple[Evidence, ...]:
    if not failure.swallowed or failure.caught is None:
        return ()
    return (Evidence(failure.caught, f"the {failure.type} is swallowed here, and the script goes on"),)


def _all_said(failure: Failure) -> str:
    text = failure.message.strip() or "without a message"
    if failure.swallowed:
        text += " (swallowed)"
    if failure.type == "EOFError" and "reading a line" in text:
        text += "; a script gets no standard input from the probe"
    for kind, message in failure.causes[:2]:
        text += f"; from {kind}: {message}"
    return text[:600]
