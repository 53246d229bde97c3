"""Apply fixes in rounds until none is left; keep a fix only if it removes its finding."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import TypeAlias

from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.light_dataclasses import dataclass
from shapefix.repair.edits import EditPlan, InvalidEdit, RowOffsets, plan
from shapefix.repair.imports import NameTaken, import_edits, with_aliases
from shapefix.sources.parsing import parse_as_python

Analyze: TypeAlias = Callable[[str], Sequence[Diagnostic]]
Allowed: TypeAlias = Callable[[Fix, Diagnostic], bool]


@dataclass(frozen=True)
class RepairResult:
    """The result of a repair.

    applied are the repaired findings, with their spans in the round that repaired them. remaining are the
    findings in the new text. rejected are those of remaining whose fix was allowed but not kept, with the
    reason.
    """

    text: str
    applied: tuple[Diagnostic, ...]
    remaining: tuple[Diagnostic, ...]
    rejected: tuple[tuple[Diagnostic, str], ...]


@dataclass(frozen=True)
class _State:
    """A text with its findings, and all earlier texts."""

    text: str
    findings: tuple[Diagnostic, ...]
    seen: frozenset[str]


_Candidate: TypeAlias = tuple[Diagnostic, Fix]

_MOST_TRIED = 2_000_000
"""Characters of text analyzed to find the failing repairs of a file: seconds for each 100,000."""
_FEWEST_TRIES = 12
"""Analyses of a long text for the same."""
_TOO_MANY = "not tried: too many of the other repairs of this file had failed"


@dataclass
class _Tries:
    """Number of characters of text left to analyze in the search for failing repairs."""

    left: int


def repair(text: str, analyze: Analyze, allowed: Allowed, rounds: int = 20) -> RepairResult:
    """Repair a text until no finding has an allowed fix, in at most this many rounds.

    analyze maps a text to its findings, all in the one file. allowed decides about the first fix of a
    finding; display fixes are never applied. A round is kept only if its text parses and is new, if no
    repaired finding is reported again at its place, and if each code is reported less often, by one for each
    finding repaired, and if no new finding is about a number that it changed. Where a round fails, its fixes
    are tried in halves, down to single ones, and those that fail alone are rejected. This work is bounded.

    Raises the exceptions of analyze on text itself.
    """
    state = _State(text, tuple(analyze(text)), frozenset((text,)))
    applied: list[Diagnostic] = []
    rejected: dict[Diagnostic, str] = {}
    tries = _Tries(max(_MOST_TRIED, _FEWEST_TRIES * len(text)))
    for _ in range(rounds):
        candidates = _candidates(state, allowed, rejected)
        if not candidates:
            break
        kept, step, after = _round(state, candidates, analyze, rejected, tries)
        if after is None:
            continue
        applied += (finding for finding, _ in kept)
        rejected = _carried(rejected, state, step, after)
        state = after
    else:
        for finding, _ in _candidates(state, allowed, rejected):
            rejected[finding] = f"gave up after {rounds} rounds of repairs, each of which called for another"
    return RepairResult(state.text, tuple(applied), state.findings, tuple(rejected.items()))


def _candidates(state: _State, allowed: Allowed, rejected: dict[Diagnostic, str]) -> list[_Candidate]:
    """Return findings and fixes to apply, imports as edits; reject fixes with invalid edits."""
    candidates = []
    for finding in state.findings:
        fix = finding.fix
        if finding in rejected or fix is None or fix.applicability is Applicability.DISPLAY:
            continue
        if not allowed(fix, finding):
            continue
        elsewhere = {edit.span.path for edit in fix.edits} - {finding.span.path}
        try:
            if elsewhere:
                raise InvalidEdit(f"the repair also changes {', '.join(sorted(elsewhere))}; make it by hand")
            fix = _with_imports(state.text, finding.span.path, fix)
            plan(state.text, [fix])
        except (InvalidEdit, NameTaken) as reason:
            rejected[finding] = str(reason)
        else:
            candidates.append((finding, fix))
    return candidates


def _with_imports(text: str, path: str, fix: Fix) -> Fix:
    fix = with_aliases(text, fix)
    return replace(fix, edits=fix.edits + import_edits(path, text, fix), imports=(), unneeded=())


def _round(
    state: _State,
    candidates: list[_Candidate],
    analyze: Analyze,
    rejected: dict[Diagnostic, str],
    tries: _Tries,
) -> tuple[list[_Candidate], EditPlan, _State | None]:
    """Apply as many candidates together as possible; None if all are rejected."""
    together = plan(state.text, [fix for _, fix in candidates])
    taken = set(together.applied)
    fitting = [candidate for candidate in candidates if candidate[1] in taken]
    after = _attempt(state, fitting, analyze)
    if isinstance(after, _State):
        return fitting, together, after
    kept: list[_Candidate] = []
    best: _State | None = None
    if len(fitting) == 1:
        rejected[fitting[0][0]] = after
        return kept, plan(state.text, []), best
    groups = list(_halves(fitting))
    while groups:
        group = groups.pop()
        if tries.left <= 0:
            rejected |= {finding: _TOO_MANY for finding, _ in group}
            continue
        tries.left -= len(state.text)
        after = _attempt(state, [*kept, *group], analyze)
        if isinstance(after, _State):
            kept += group
            best = after
            continue
        if len(group) > 1:
            groups += _halves(group)
            continue
        # It may only conflict with fixes kept before it; it is tried again in the next round.
        tries.left -= len(state.text)
        alone = _attempt(state, group, analyze) if kept else after
        if not isinstance(alone, _State):
            rejected[group[0][0]] = alone
    return kept, plan(state.text, [fix for _, fix in kept]), best


def _halves(group: list[_Candidate]) -> tuple[list[_Candidate], list[_Candidate]]:
    """The second half of a group and the first one: the last of a stack is tried first."""
    middle = (len(group) + 1) // 2
    return group[middle:], group[:middle]


def _attempt(state: _State, chosen: list[_Candidate], analyze: Analyze) -> _State | str:
    """Return the state after the chosen repairs, or the reason to reject them."""
    import libcst

    step = plan(state.text, [fix for _, fix in chosen])
    text = step.splice(state.text)
    if text == state.text:
        return "the repair changes nothing"
    if text in state.seen:
        return "the repair brings back a text that another repair had changed"
    try:
        parse_as_python(text, libcst.parse_module)
    except libcst.ParserSyntaxError as error:
        return f"the repaired file would not parse at row {error.raw_line}"
    try:
        findings = tuple(analyze(text))
    except Exception as error:  # an analysis that fails on the new text proves nothing about it
        return f"the repaired file could not be analyzed: {type(error).__name__}: {error}"
    before = Counter(finding.code for finding in state.findings)
    now = Counter(finding.code for finding in findings)
    repaired = Counter(finding.code for finding, _ in chosen)
    still = _Places(state.text, text, step, findings)
    for finding, _ in chosen:
        if still.find(finding) is not None:
            return f"{finding.code} would still be reported at the repaired place"
    for code, count in repaired.items():
        if now[code] > before[code] - count:
            return f"{code} would be reported at another place instead"
    if _is_contradicted(state, [fix for _, fix in chosen], findings):
        return "another layer needs the old size"
    return _State(text, findings, state.seen | {text})


def _is_contradicted(state: _State, fixes: Sequence[Fix], findings: Sequence[Diagnostic]) -> bool:
    """Whether a fix changes a number, and a new finding is about the old number and the new one.

    Another layer then needs the old size.
    """
    rows = RowOffsets.of(state.text)
    known = {finding.message for finding in state.findings}
    new = {finding.message for finding in findings} - known
    stated = [set(_NUMBER.findall(message)) for message in new]
    changed: set[frozenset[str]] = set()
    for edit in (edit for fix in fixes for edit in fix.edits) if stated else ():
        start, end = rows.stretch(edit.span)
        sizes = frozenset((state.text[start:end], edit.content))
        if len(sizes) == 2 and all(map(str.isdigit, sizes)):
            changed.add(sizes)
    return any(sizes <= numbers for sizes in changed for numbers in stated)


_NUMBER = re.compile(r"\b\d+\b")


class _Places:
    """Finds a finding of the old text in the new one, by its code and moved span."""

    def __init__(self, old: str, new: str, step: EditPlan, findings: Sequence[Diagnostic]) -> None:
        self.rows, self.step = RowOffsets.of(old), step
        rows = RowOffsets.of(new)
        self.by_code: dict[str, list[tuple[int, int, int, Diagnostic]]] = {}
        for number, finding in enumerate(findings):
            self.by_code.setdefault(finding.code, []).append((*rows.stretch(finding.span), number, finding))
        for places in self.by_code.values():
            places.sort(key=itemgetter(0, 1, 2))

    def find(self, wanted: Diagnostic) -> Diagnostic | None:
        start, end = self.rows.stretch(wanted.span)
        (start_low, start_high), (end_low, end_high) = self.step.carry(start), self.step.carry(end)
        places = self.by_code.get(wanted.code, [])
        for begin, stop, _, finding in islice(
            places, bisect_left(places, start_low, key=itemgetter(0)), None
        ):
            if begin > start_high:
                break
            if end_low <= stop <= end_high:
                return finding
        return None


def _carried(
    rejected: dict[Diagnostic, str], old: _State, step: EditPlan, new: _State
) -> dict[Diagnostic, str]:
    """Return the rejections as findings of the new text, without those removed by other repairs."""
    places = _Places(old.text, new.text, step, new.findings)
    moved = ((places.find(finding), reason) for finding, reason in rejected.items())
    return {finding: reason for finding, reason in moved if finding is not None}
