"""The summary at the end of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shapefix.diagnostics import Applicability, Diagnostic, Failure, RunVerdict, Severity
from shapefix.report.view import View


def summary(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> str:
    """Count findings, unchecked files and available fixes in one line."""
    sentences = []
    answers = sum(finding.is_answer for finding in findings)
    refuted = sum(finding.is_refuted for finding in findings)
    findings = [finding for finding in findings if not finding.is_refuted]
    if answers < len(findings):
        counts = Counter(finding.severity for finding in findings if not finding.is_answer)
        found = [_count(counts[severity], severity) for severity in Severity if counts[severity]]
        sentences.append(f"Found {', '.join(found)}{_confirmed(findings)}.")
    failed = len({failure.path for failure in failures})
    if failed and (sentences or view.coverage is None):
        sentences.append(f"{_count(failed, 'file')} could not be checked.")
    elif failed and view.coverage is not None:
        sentences.append(f"{_count(view.coverage.files, 'file')} checked, {_count(failed, 'error')}.")
    if refuted:
        sentences.append(f"{_count(refuted, 'finding')} refuted by the run.")
    if not sentences:
        sentences.append(nothing_checked(view) or "All checks passed.")
    if view.coverage is not None and view.coverage.notebooks and not nothing_checked(view):
        sentences.append(_skipped(view.coverage.notebooks))
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


def nothing_checked(view: View) -> str:
    """Return a sentence if no file was checked by any rule; "" otherwise."""
    coverage = view.coverage
    if coverage is None or coverage.files > coverage.irrelevant:
        return ""
    sentences = [_skipped(coverage.notebooks)] if coverage.notebooks else []
    if coverage.files:
        sentences.insert(0, f"Checked {_count(coverage.files, 'file')}; none uses torch.")
    else:
        sentences.append("Nothing was checked.")
    return " ".join(sentences)


def remaining(findings: Sequence[Diagnostic], view: View) -> list[str]:
    """Count findings without an automatic fix, or with only an unsafe one, after `shapefix fix`."""
    unsafe = [each for each in findings if each.fix and each.fix.applicability is Applicability.UNSAFE]
    manual = [each for each in findings if not each.fix or each.fix.applicability is Applicability.DISPLAY]
    sentences = []
    if manual:
        counts = Counter(finding.severity for finding in manual)
        found = ", ".join(_count(counts[severity], severity) for severity in Severity if counts[severity])
        verb = "remains" if len(manual) == 1 else "remain"
        sentences.append(f"{found} {verb} without an automatic fix; see `shapefix check`.")
    if unsafe and not view.unsafe_fixes:
        sentences.append(f"{_count(len(unsafe), 'finding')} fixable with --unsafe-fixes.")
    return sentences


def _skipped(notebooks: int) -> str:
    return f"Skipped {_count(notebooks, 'notebook')} (not supported yet)."


def _confirmed(findings: Sequence[Diagnostic]) -> str:
    """Count confirmed and open findings, if a probe run was used."""
    verdicts = Counter(
        finding.confirmation.verdict for finding in findings if finding.confirmation is not None
    )
    if not verdicts:
        return ""
    return f", {verdicts[RunVerdict.CONFIRMED]} confirmed by the run and {verdicts[RunVerdict.OPEN]} open"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 and what != Severity.INFO else "")
