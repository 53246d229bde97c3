"""Applies fixes round after round until none is left, and keeps only those that prove themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.repair.edits import Plan, Rows, Unfit, plan
from shapefix.repair.imports import NameTaken, import_edits

Analyse: TypeAlias = Callable[[str], Sequence[Diagnostic]]
Allowed: TypeAlias = Callable[[Fix, Diagnostic], bool]


@dataclass(frozen=True)
class Repaired:
    """What repair made of a text.

    applied are the findings whose fix is in text, each with the places it had in the round that repaired it.
    remaining is what text still reports. refused, each with a reason, are those of remaining whose fix was
    allowed and not kept.
    """

    text: str
    applied: tuple[Diagnostic, ...]
    remaining: tuple[Diagnostic, ...]
    refused: tuple[tuple[Diagnostic, str], ...]


@dataclass(frozen=True)
class _State:
    """A text with its findings, and every text that led to it."""

    text: str
    findings: tuple[Diagnostic, ...]
    seen: frozenset[str]


_Candidate: TypeAlias = tuple[Diagnostic, Fix]


def repair(text: str, analyse: Analyse, allowed: Allowed, rounds: int = 20) -> Repaired:
    """Repairs text for as long as its findings have fixes that are allowed, in at most that many rounds.

    analyse maps a text to its findings, all in the one file. allowed decides about the first fix of a
    finding; display fixes are never applied. A round is kept only if its text parses and is new, if no
    repaired finding is reported again at its place, and if each code is reported less often, by one for each
    finding repaired. Where a round fails, its fixes are tried one by one, and those that fail alone are
    refused.

    Raises what analyse raises on text itself.
    """
    state = _State(text, tuple(analyse(text)), frozenset((text,)))
    applied: list[Diagnostic] = []
    refused: dict[Diagnostic, str] = {}
    for _ in range(rounds):
        candidates = _candidates(state, allowed, refused)
        if not candidates:
            break
        kept, step, after = _round(state, candidates, analyse, refused)
        if after is None:
            continue
        applied += (finding for finding, _ in kept)
        refused = _carried(refused, state, step, after)
        state = after
    else:
        for finding, _ in _candidates(state, allowed, refused):
            refused[finding] = f"gave up after {rounds} rounds of repairs, each of which called for another"
    return Repaired(state.text, tuple(applied), state.findings, tuple(refused.items()))


def _candidates(state: _State, allowed: Allowed, refused: dict[Diagnostic, str]) -> list[_Candidate]:
    """The findings to repair with their fixes, imports made edits; refuses those that do not fit the text."""
    candidates = []
    for finding in state.findings:
        fix = finding.fix
        if finding in refused or fix is None or fix.applicability is Applicability.DISPLAY:
            continue
        if not allowed(fix, finding):
            continue
        elsewhere = {edit.span.path for edit in fix.edits} - {finding.span.path}
        try:
            if elsewhere:
                raise Unfit(f"the repair also changes {', '.join(sorted(elsewhere))}; make it by hand")
            fix = _with_imports(state.text, finding.span.path, fix)
            plan(state.text, [fix])
        except (Unfit, NameTaken) as reason:
            refused[finding] = str(reason)
        else:
            candidates.append((finding, fix))
    return candidates


def _with_imports(text: str, path: str, fix: Fix) -> Fix:
    return replace(fix, edits=fix.edits + import_edits(path, text, fix), imports=(), unneeded=())


def _round(
    state: _State, candidates: list[_Candidate], analyse: Analyse, refused: dict[Diagnostic, str]
) -> tuple[list[_Candidate], Plan, _State | None]:
    """Repairs as many candidates at once as prove themselves; no state when all of them are refused."""
    together = plan(state.text, [fix for _, fix in candidates])
    taken = set(together.applied)
    fitting = [candidate for candidate in candidates if candidate[1] in taken]
    after = _attempt(state, fitting, analyse)
    if isinstance(after, _State):
        return fitting, together, after
    kept: list[_Candidate] = []
    best: _State | None = None
    for candidate in fitting:
        after = _attempt(state, [*kept, candidate], analyse)
        if isinstance(after, _State):
            kept.append(candidate)
            best = after
            continue
        # It may only disagree with those kept before it; then its turn comes in the next round.
        alone = _attempt(state, [candidate], analyse) if kept else after
        if not isinstance(alone, _State):
            refused[candidate[0]] = alone
    return kept, plan(state.text, [fix for _, fix in kept]), best


def _attempt(state: _State, chosen: list[_Candidate], analyse: Analyse) -> _State | str:
    """The state after the chosen repairs, or why they must not be kept."""
    import libcst

    step = plan(state.text, [fix for _, fix in chosen])
    text = step.splice(state.text)
    if text == state.text:
        return "the repair changes nothing"
    if text in state.seen:
        return "the repair brings back a text that another repair had changed"
    try:
        libcst.parse_module(text)
    except libcst.ParserSyntaxError as error:
        return f"the repaired file would not parse at row {error.raw_line}"
    try:
        findings = tuple(analyse(text))
    except Exception as error:  # an analysis that fails on the new text proves nothing about it
        return f"the repaired file could not be analysed: {type(error).__name__}: {error}"
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
    return _State(text, findings, state.seen | {text})


class _Places:
    """Finds a finding of the old text in the new one: by its code, and where its span moved to."""

    def __init__(self, old: str, new: str, step: Plan, findings: Sequence[Diagnostic]) -> None:
        self.rows, self.step = Rows.of(old), step
        rows = Rows.of(new)
        self.findings = [(finding, rows.stretch(finding.span)) for finding in findings]

    def find(self, wanted: Diagnostic) -> Diagnostic | None:
        start, end = self.rows.stretch(wanted.span)
        (start_low, start_high), (end_low, end_high) = self.step.carry(start), self.step.carry(end)
        for finding, (begin, stop) in self.findings:
            if (
                finding.code == wanted.code
                and start_low <= begin <= start_high
                and end_low <= stop <= end_high
            ):
                return finding
        return None


def _carried(refused: dict[Diagnostic, str], old: _State, step: Plan, new: _State) -> dict[Diagnostic, str]:
    """The refusals as findings of the new text; those that other repairs have settled are dropped."""
    places = _Places(old.text, new.text, step, new.findings)
    moved = ((places.find(finding), reason) for finding, reason in refused.items())
    return {finding: reason for finding, reason in moved if finding is not None}
