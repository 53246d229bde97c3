"""The summary at the end of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shapefix.diagnostics import STORED_ERROR, Applicability, Diagnostic, Failure, RunVerdict, Severity
from shapefix.report.view import FixOffer, View, one_line


def summary(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> str:
    """Count findings, unchecked files and available fixes in one line."""
    sentences = []
    answers = sum(finding.is_answer for finding in findings)
    stored = sum(finding.code == STORED_ERROR for finding in findings)
    refuted = sum(finding.is_refuted for finding in findings)
    findings = [finding for finding in findings if not finding.is_refuted]
    if answers < len(findings):
        counted = [finding for finding in findings if not finding.is_answer]
        sentences.append(f"Found {_severities(counted)}{_confirmed(findings)}.")
    if failures:
        sentences.append(_failed(failures, view, alone=not sentences))
    if refuted:
        sentences.append(f"{_count(refuted, 'finding')} refuted by the run.")
    if not sentences:
        sentences.append(nothing_checked(view) or "All checks passed.")
    sentences += _skipped(view)
    if answers > stored:
        sentences.append(f"{_count(answers - stored, 'value')} revealed.")
    if stored:
        sentences.append(f"{_count(stored, 'error')} of an earlier run.")
    sentences += _offers(findings, view)
    return " ".join(sentences)


def fix_summary(
    remaining: Sequence[Diagnostic],
    failures: Sequence[Failure],
    view: View,
    repaired: int,
    files: int,
    wrote: bool,
) -> str:
    """Count repaired findings, other available fixes, and remaining findings.

    remaining are the findings in the repaired texts; repaired counts those that the repairs removed, in this
    number of files. wrote is false if the repairs are only shown.
    """
    sentences = []
    if files:
        what = f"{_count(repaired, 'finding')} in {_count(files, 'file')}"
        sentences.append(f"Repaired {what}." if wrote else f"Would repair {what} with --apply.")
    elif remaining:
        sentences.append(_no_repair(remaining, view))
    left = sum(view.offer(finding) is FixOffer.NEEDS_OPTION for finding in remaining)
    if left:
        sentences.append(f"{_count(left, 'unsafe fix', 'unsafe fixes')} available (--unsafe-fixes).")
    if remaining:
        sentences.append(f"{_severities(remaining)} {'remains' if len(remaining) == 1 else 'remain'}.")
    if failures:
        sentences.append(_failed(failures, view, alone=not sentences, also=" or repaired"))
    if not sentences:
        sentences.append(nothing_checked(view) or "All checks passed.")
    return " ".join([*sentences, *_skipped(view)])


def _failed(failures: Sequence[Failure], view: View, alone: bool, also: str = "") -> str:
    """Count the files without a result; alone is whether nothing is reported about the others."""
    files = len({failure.path for failure in failures})
    if alone and view.coverage is not None:
        return f"{_count(view.coverage.files, 'file')} checked, {_count(files, 'error')}."
    return f"{_count(files, 'file')} could not be checked{also}."


def _no_repair(remaining: Sequence[Diagnostic], view: View) -> str:
    """Say why no finding was repaired."""
    offers = {view.offer(finding) for finding in remaining}
    if FixOffer.APPLIED in offers:
        return "No repair succeeded."
    if FixOffer.OUTSIDE in offers:
        return "Nothing to repair under the given paths."
    return "No safe fixes." if FixOffer.NEEDS_OPTION in offers else "No automatic fixes."


def _offers(findings: Sequence[Diagnostic], view: View) -> list[str]:
    """Count the available fixes by command."""
    offers = [(view.offer(finding), finding) for finding in findings if not finding.is_answer]
    applied = [finding for offer, finding in offers if offer is FixOffer.APPLIED]
    more = sum(offer is FixOffer.NEEDS_OPTION for offer, _ in offers)
    if view.proves:
        return ["Try `shapefix probe --repair`."] if applied or more else []
    sentences = []
    unsafe = any(each.fix is not None and each.fix.applicability is Applicability.UNSAFE for each in applied)
    if applied:
        option = " --unsafe-fixes" if unsafe and view.unsafe_fixes else ""
        also = f" ({more} more with --unsafe-fixes)" if more else ""
        sentences.append(f"{len(applied)} fixable with `shapefix fix{option}`{also}.")
    elif more:
        sentences.append(f"{more} fixable with `shapefix fix --unsafe-fixes`.")
    outside = [finding for offer, finding in offers if offer is FixOffer.OUTSIDE]
    paths = {one_line(view.relative(finding.span.path)) for finding in outside}
    if outside:
        where = (
            f"`shapefix fix {paths.pop()}`"
            if len(paths) == 1
            else f"{len(paths)} files outside the given paths"
        )
        sentences.append(f"{len(outside)} fixable {'with' if where[0] == '`' else 'in'} {where}.")
    return sentences


def nothing_checked(view: View) -> str:
    """Return a sentence if no file was checked by any rule; "" otherwise."""
    coverage = view.coverage
    if coverage is None or coverage.files > coverage.irrelevant:
        return ""
    if coverage.files:
        return f"Checked {_count(coverage.files, 'file')}; none uses torch."
    return "Nothing was checked."


def _skipped(view: View) -> list[str]:
    """Count the files skipped beside checked ones."""
    coverage = view.coverage
    if coverage is None or nothing_checked(view):
        return []
    if coverage.irrelevant:
        return [f"Skipped {_count(coverage.irrelevant, 'file')} without torch."]
    return []


def _confirmed(findings: Sequence[Diagnostic]) -> str:
    """Count confirmed and open findings, if a probe run was used."""
    verdicts = Counter(
        finding.confirmation.verdict for finding in findings if finding.confirmation is not None
    )
    if not verdicts:
        return ""
    left = f" and {verdicts[RunVerdict.OPEN]} open" if verdicts[RunVerdict.OPEN] else ""
    return f", {verdicts[RunVerdict.CONFIRMED]} confirmed by the run{left}"


def _severities(findings: Sequence[Diagnostic]) -> str:
    """Count findings by severity: `2 errors, 1 warning`."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(_count(counts[severity], severity) for severity in Severity if counts[severity])


def _count(number: int, what: str, several: str = "") -> str:
    if number == 1 or what == Severity.INFO:
        return f"{number} {what}"
    return f"{number} {several or what + 's'}"
