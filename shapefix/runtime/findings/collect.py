"""Findings of a run: the same Diagnostics as those of `check`, with measured values as evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shapefix.diagnosis.explanations import explain_message
from shapefix.diagnostics import Diagnostic, Evidence, Severity, Span, with_failure
from shapefix.rulebook.pages import names_and_severities
from shapefix.runtime.findings.asserted_values import asserted_text
from shapefix.runtime.findings.async_fixes import async_fixes, syntax_text
from shapefix.runtime.findings.constructor_fixes import ReadText, constructor_fixes, read_text
from shapefix.runtime.findings.environment import environment_diagnostic
from shapefix.runtime.findings.exception_report import measurements
from shapefix.runtime.findings.exception_rules import explanation
from shapefix.runtime.findings.key_fixes import key_fixes, keys_text
from shapefix.runtime.findings.missing_folders import folder_text, missing_folder
from shapefix.runtime.findings.missing_modules import imports_text
from shapefix.runtime.findings.next_fixes import next_fixes
from shapefix.runtime.findings.operand_fixes import operand_fixes
from shapefix.runtime.findings.scalar_fixes import scalar_fixes
from shapefix.runtime.findings.silent import silent_faults
from shapefix.runtime.observations import Observations, RaisedException, span
from shapefix.runtime.protocol import LoopTruncatedLine, WriteProtectionLine
from shapefix.runtime.report.formatting import extra_batch_text

CRASH = "crash"
"""The code of exceptions that no rule describes."""

ENDED_EARLY = "the probe ended loops early"
SKIPPED = "the probe skipped the batches before the last one of the loader"
REFUSED_WRITE = "the probe does not allow this write (`shapefix help probe`)"

_REFUSAL = "the probe cannot redirect this write"

# Exceptions that may come from a loop that ended early: nothing to average, no file saved.
_EARLY_STOP = (
    "FileNotFoundError", "IndexError", "KeyError", "StatisticsError", "StopIteration", "UnboundLocalError",
    "ValueError", "ZeroDivisionError",
)  # fmt: skip


_FIXES = (async_fixes, constructor_fixes, key_fixes, next_fixes, operand_fixes, scalar_fixes)


@dataclass(frozen=True)
class ProbeFindings:
    """The findings, and an exception possibly caused by the probe itself, if any.

    artifact_cause is what the probe did: ended a loop early, or refused a write. notes are about code that
    may be intended. static are the findings of `check` in the executed files that are not among diagnostics.
    """

    diagnostics: tuple[Diagnostic, ...]
    early_stop_artifact: RaisedException | None
    notes: tuple[Diagnostic, ...] = ()
    artifact_cause: str = ENDED_EARLY
    static: tuple[Diagnostic, ...] = ()


def collect_findings(observed: Observations, read: ReadText = read_text) -> ProbeFindings:
    """The findings of a run, without repetitions; read returns the text of a file as it was run."""
    exceptions = list(_relevant(observed))
    truncated = observed.first(LoopTruncatedLine) is not None
    refused = next((each for each in exceptions if may_be_refused_write(each, observed)), None)
    early = (each for each in exceptions if truncated and may_be_early_stop(each))
    early_stop = next((each for each in early if not missing_folder(each, observed, read)), None)
    skipped = next((each for each in exceptions if may_be_skipped_batches(each)), None)
    early_stop_artifact = refused or early_stop or skipped
    known: dict[tuple[str, Span | None, str], Diagnostic] = {}
    for failure in exceptions:
        if failure is early_stop_artifact:
            continue
        found = exception_diagnostic(failure, observed)
        if found is not None:
            key = (found.code, found.span, failure.type)
            if key not in known:
                fixes = tuple(fix for fixes_of in _FIXES for fix in fixes_of(failure, read))
                known[key] = replace(found, fixes=fixes)
    raised = {(each.code, each.span) for each in known.values()}
    silent = [each for each in silent_faults(observed, read) if (each.code, each.span) not in raised]
    known |= {
        (each.code, each.span, each.name): each for each in silent if each.severity is not Severity.INFO
    }
    notes = tuple(each for each in silent if each.severity is Severity.INFO)
    cause = REFUSED_WRITE if refused is not None else ENDED_EARLY if early_stop is not None else SKIPPED
    return ProbeFindings(tuple(known.values()), early_stop_artifact, notes, cause)


def may_be_refused_write(failure: RaisedException, observed: Observations) -> bool:
    """Whether an exception may come from a write refused by the probe or by Landlock."""
    text = "\n".join((failure.message, *(message for _, message in failure.causes)))
    if observed.refused and _REFUSAL in text:
        return True
    protection = observed.first(WriteProtectionLine)
    by_landlock = protection is not None and protection["method"] == "landlock"
    return by_landlock and ("Permission denied" in text or "[Errno 13]" in text)


def may_be_early_stop(failure: RaisedException) -> bool:
    """Whether an exception ended the script outside all watched calls, as one for a lack of results does."""
    return failure.origin == "script" and failure.ended_script and failure.type in _EARLY_STOP


def may_be_skipped_batches(failure: RaisedException) -> bool:
    """Whether an exception may come from a wrong count of batches, such as an index of rows.

    The rows of the batch itself matter to a view, and to the model.
    """
    extra = failure.extra_batch
    if extra is None or not extra["skipped"] or failure.origin not in ("script", "loss"):
        return False
    return "invalid for input of size" not in failure.message


def exception_diagnostic(failure: RaisedException, observed: Observations) -> Diagnostic | None:
    """The finding for an exception, with its own message if no rule describes it."""
    if not failure.stack:
        return None
    environment = environment_diagnostic(failure, observed)
    if environment is not None:
        return environment
    explained = explanation(failure, observed)
    rules, swallowed = names_and_severities(), (*_extra_batch(failure, observed), *_swallowed(failure))
    when = f"; in {extra_batch_text(failure.extra_batch)}" if failure.extra_batch else ""
    if explained is None or explained.code not in rules:
        severity = Severity.WARNING if failure.swallowed else Severity.ERROR
        known = "".join(text(failure) for text in (keys_text, folder_text, imports_text, asserted_text))
        text = _full_message(failure).rstrip(".") + known + syntax_text(failure, read_text) + when
        return Diagnostic(
            CRASH, failure.type, severity, text, failure.stack[0],
            with_failure((*_meaning(failure), *measurements(failure), *swallowed), failure.stack[0]),
        )  # fmt: skip
    name, severity = rules[explained.code]
    return Diagnostic(
        explained.code, name, severity, explained.message + when, explained.span,
        with_failure((*explained.evidence, *swallowed), explained.span), explained.condition,
    )  # fmt: skip


def _meaning(failure: RaisedException) -> tuple[Evidence, ...]:
    """The meaning of the message of an exception, if an error page has it."""
    found = explain_message(failure.message)
    return () if found is None else (Evidence(failure.stack[0], found.what),)


def _relevant(observed: Observations) -> Iterator[RaisedException]:
    """Exceptions to report: swallowed ones, the script's last one, and those of other rows of the data.

    If the last exception was raised from one that left a watched call, that one is the cause.
    """
    ended = [each for each in observed.exceptions if each.ended_script]
    watched = [each for each in ended if each.origin != "script"]
    for failure in observed.exceptions:
        last = failure.ended_script and not (watched and failure.origin == "script")
        # A library may raise and catch exceptions as a normal way to test something.
        if failure.handler is not None or failure.origin == "rows" or last:
            yield failure


def _extra_batch(failure: RaisedException, observed: Observations) -> tuple[Evidence, ...]:
    """The loader of the extra batch of an exception."""
    extra = failure.extra_batch
    if extra is None or extra["which"] != "last":
        return ()
    loader = observed.loaders.get(extra["loader"])
    at = None if loader is None else span(loader["created_at"])
    if at is None:
        return ()
    return (Evidence(at, f"the loader of {extra_batch_text(extra)}; `drop_last=True` skips it"),)


def _swallowed(failure: RaisedException) -> tuple[Evidence, ...]:
    if not failure.swallowed or failure.handler is None:
        return ()
    return (Evidence(failure.handler, f"the {failure.type} is swallowed here, and the script continues"),)


def _full_message(failure: RaisedException) -> str:
    text = failure.message.strip() or "without a message"
    if failure.swallowed:
        text += " (swallowed)"
    if failure.type == "EOFError" and "reading a line" in text:
        text += "; under the probe, a script has no standard input"
    for kind, message in failure.causes[:2]:
        text += f"; from {kind}: {message}"
    return text[:600]
