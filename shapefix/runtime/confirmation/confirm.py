"""Compare the findings of `check` with the record of a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from shapefix.diagnostics import Confirmation, Diagnostic, RunVerdict, Severity, Span
from shapefix.rulebook.pages import Raises, pages_by_code
from shapefix.runtime.confirmation import conditions
from shapefix.runtime.confirmation.evaluation_order import Order
from shapefix.runtime.confirmation.run_record import Record, RecordedCall, RecordedFinding, RecordedValue

Bytes = Callable[[str], bytes | None]
"""Return the content of the file at a path, None if it does not exist."""


class Confirmer:
    """Compares each finding with a run; data gives the files as they were checked."""

    def __init__(self, record: Record, data: Bytes) -> None:
        self._record, self._data = record, data
        self._orders: dict[str, Order | None] = {}

    def judged(self, findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """The findings with their verdicts; answers to `reveal(x)` get none."""
        known = [
            finding if finding.is_answer else replace(finding, confirmation=self._confirmation(finding))
            for finding in findings
        ]
        for found in self._record.found:
            alike = [each for each in known if each.code == found.code and each.confirmation is not None]
            # The run has found it elsewhere on the same way: a Trainer is made here, and trains there.
            if len(alike) == 1 and self._is_left(alike[0]) and self._share_a_function(alike[0], found):
                confirmation = Confirmation(RunVerdict.CONFIRMED, found.message)
                known[known.index(alike[0])] = replace(alike[0], confirmation=confirmation)
        return tuple(known)

    def _is_left(self, finding: Diagnostic) -> bool:
        """Whether a finding is open, in files unchanged since the run."""
        places = (finding.span, *(step.span for step in finding.evidence))
        unchanged = all(self._changed(_real(place).path) is None for place in places)
        return (
            unchanged and finding.confirmation is not None and finding.confirmation.verdict is RunVerdict.OPEN
        )

    def _share_a_function(self, finding: Diagnostic, found: RecordedFinding) -> bool:
        def functions(places: Iterable[Span]) -> set[tuple[str, int]]:
            known = set()
            for place in map(_real, places):
                order = self._order(place.path)
                row = None if order is None else order.function(place)
                if row is not None:
                    known.add((place.path, row))
            return known

        steps = (step.span for step in finding.evidence)
        return bool(functions((finding.span, *steps)) & functions(found.places))

    def _confirmation(self, finding: Diagnostic) -> Confirmation:
        own, *others = [_real(finding.failing), *(_real(step.span) for step in finding.evidence)]
        for path in dict.fromkeys(place.path for place in (own, *others)):
            problem = self._changed(path)
            if problem is not None:
                return Confirmation(RunVerdict.OPEN, problem)
        happened = self._happened(finding, own, others)
        if happened is not None:
            return Confirmation(RunVerdict.CONFIRMED, happened)
        order = self._order(own.path)
        if order is None:
            return Confirmation(RunVerdict.OPEN, "the file cannot be read as Python")
        passed = list(self._passed(own, order))
        if not passed and not self._returned(own, order):
            return Confirmation(RunVerdict.OPEN, "the run is not known to have come past this place")
        if _raises(finding) is not Raises.HERE or finding.severity is not Severity.ERROR:
            return Confirmation(
                RunVerdict.OPEN,
                "the run passed this place, but the rule is not about an exception there",
            )
        return self._refuted(finding, own, others, order, passed)

    def _changed(self, path: str) -> str | None:
        """The reason why the run does not apply to a file, None if it ran the checked text."""
        digest, name = self._record.digests.get(path), os.path.basename(path)  # noqa: PTH119
        if digest is None:
            return f"the run has not executed {name}"
        data = self._data(path)
        same = data is not None and hashlib.sha256(data).hexdigest() == digest
        return None if same else f"{name} was edited since the run"

    def _happened(self, finding: Diagnostic, own: Span, others: list[Span]) -> str | None:
        """The confirmation of a finding: the same finding in the run, or an exception right there."""
        for found in self._record.found:
            same = found.code == finding.code
            if same and (
                _meet(found.places[0], own, *others) or any(_meet(each, own) for each in found.places)
            ):
                return found.message
        raises = _raises(finding)
        for raised in self._record.raised:
            if raises is Raises.HERE and raised.stack and _meet(raised.stack[0], own):
                return str(raised)
            if raises is Raises.HIDDEN and raised.swallowed and _meet(raised.swallowed, own):
                return f"it swallowed {raised}"
        return None

    def _refuted(
        self, finding: Diagnostic, own: Span, others: list[Span], order: Order, passed: list[RecordedCall]
    ) -> Confirmation:
        """The verdict on a finding after its own place was evaluated without an exception."""
        if not self._loops_were_seen(own, order):
            return Confirmation(
                RunVerdict.OPEN, "the run is not known to have made every pass of the loop around it"
            )
        witnesses = [each for each in self._witnesses(own, order, passed) if self._led_by(others, own, each)]
        if not witnesses:
            return Confirmation(
                RunVerdict.OPEN, "the run came past this place, but is not known to have come this way"
            )
        if finding.condition is None:
            return Confirmation(
                RunVerdict.REFUTED, "the run came past it, on this way, and nothing was raised"
            )
        predicate = finding.condition.predicate
        needed = frozenset() if predicate is None else conditions.names(predicate)
        if predicate is None or not needed:
            return Confirmation(RunVerdict.OPEN, "whether the condition held in the run is not known")
        failed: list[str] = []
        for each in witnesses:
            bound = order.bound_between(own, each.at)
            if bound is None or bound & needed:
                continue
            shown = _values_text(needed, each.values)
            held = conditions.holds(predicate, each.values)
            if held:
                return Confirmation(RunVerdict.REFUTED, f"it ran with {shown}, and nothing was raised")
            if held is False:
                failed.append(shown)
        if failed:
            return Confirmation(RunVerdict.OPEN, f"in this run the condition did not hold: {failed[0]}")
        return Confirmation(RunVerdict.OPEN, "whether the condition held in the run is not known")

    def _passed(self, place: Span, order: Order) -> Iterator[RecordedCall]:
        """The calls reached, or returned from, only after a place."""
        for each in self._record.reached:
            if each.at.path == place.path and (
                order.before(place, each.at) or (each.returned and each.at == place)
            ):
                yield each

    def _returned(self, place: Span, order: Order) -> bool:
        return any(
            path == place.path and order.when_returned(place, row) for path, row in self._record.returned
        )

    def _witnesses(self, own: Span, order: Order, passed: list[RecordedCall]) -> list[RecordedCall]:
        """Return the calls with relevant values for a place: those after it; before it, if all returned."""
        if not self._returned(own, order):
            return passed
        near = [each for each in self._record.reached if each.at.path == own.path]
        return [each for each in near if each in passed or order.bound_between(own, each.at) is not None]

    def _led_by(self, others: list[Span], own: Span, witness: RecordedCall) -> bool:
        """Whether the run has come past all places of the evidence, or was called from there."""
        for place in others:
            if place == own or any(_within(place, outer) or _within(outer, place) for outer in witness.outer):
                continue
            order = self._order(place.path)
            if order is None or not (self._returned(place, order) or any(self._passed(place, order))):
                return False
        return True

    def _loops_were_seen(self, own: Span, order: Order) -> bool:
        """Whether one pass is as good as all: the loops around are those over batches."""
        return all(
            any(_within(loop, header) or _within(header, loop) for loop in self._record.loops)
            for header in order.loops(own)
        )

    def _order(self, path: str) -> Order | None:
        if path not in self._orders:
            data = self._data(path)
            try:
                self._orders[path] = None if data is None else Order(path, data.decode("utf-8-sig"))
            except (SyntaxError, ValueError, RecursionError):
                self._orders[path] = None
        return self._orders[path]


def _raises(finding: Diagnostic) -> Raises:
    """Return the place of the reported code's exception, according to the page of the rule."""
    page = pages_by_code().get(finding.code)
    return Raises.NEVER if page is None else page.raises


def _real(span: Span) -> Span:
    return replace(span, path=os.path.realpath(span.path))


def _within(inner: Span, outer: Span) -> bool:
    return (
        inner.path == outer.path
        and (outer.row, outer.column) <= (inner.row, inner.column)
        and (inner.end_row, inner.end_column) <= (outer.end_row, outer.end_column)
    )


def _meet(one: Span, *others: Span) -> bool:
    return any(_within(one, each) or _within(each, one) for each in others)


def _values_text(names: frozenset[str], values: Mapping[str, RecordedValue]) -> str:
    """Describe the values of names."""
    return ", ".join(
        f"{name} of sizes {list(held)}" if isinstance(held, tuple) else f"{name} = {held}"
        for name, held in ((name, values[name]) for name in sorted(names) if name in values)
    )
