"""The last line of a report for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shapefix.diagnostics import Applicability, Diagnostic, Failure, Severity, Verdict
from shapefix.report.view import View


def summary(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> str:
    """What was found, what could not be checked, and how much of it `shapefix fix` repairs, in one line."""
    sentences = []
    answers = sum(finding.is_answer for finding in findings)
    refuted = sum(finding.is_refuted for finding in findings)
    findings = [finding for finding in findings if not finding.is_refuted]
    if answers < len(findings):
        counts = Counter(finding.severity for finding in findings if not finding.is_answer)
        found = [_count(counts[severity], severity) for severity in Severity if counts[severity]]
        sentences.append(f"Found {', '.join(found)}{_confirmed(findings)}.")
    elif failures:
        sentences.append("Nothing found in the rest.")
    if failures:
        paths = len({failure.path for failure in failures})
        sentences.append(f"{paths} {'file' if paths == 1 else 'files'} could not be checked.")
    if refuted:
        sentences.append(f"{_count(refuted, 'finding')} refuted by the run.")
    if not sentences:
        sentences.append("All checks passed.")
    if answers:
        sentences.append(f"{_count(answers, 'value')} revealed.")
    applicable = Counter(finding.fix.applicability for finding in findings if finding.fix is not None)
    safe, unsafe = applicable[Applicability.SAFE], applicable[Applicability.UNSAFE]
    if view.proves and safe + unsafe:
        sentences.append("Try `shapefix probe --repair`.")
    elif unsafe and (view.unsafe_fixes or not safe):
        sentences.append(f"{safe + unsafe} fixable with `shapefix fix --unsafe-fixes`.")
    elif safe:
        more = f" ({unsafe} more with --unsafe-fixes)" if unsafe else ""
        sentences.append(f"{safe} fixable with `shapefix fix`{more}.")
    return " ".join(sentences)


def _confirmed(findings: Sequence[Diagnostic]) -> str:
    """How many of the findings a run has confirmed, where one was asked."""
    verdicts = Counter(finding.seen.verdict for finding in findings if finding.seen is not None)
    if not verdicts:
        return ""
    return f", {verdicts[Verdict.CONFIRMED]} confirmed by the run and {verdicts[Verdict.OPEN]} open"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 and what != Severity.INFO else "")
