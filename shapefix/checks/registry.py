"""The table of rules, and how a module adds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from shapefix.checks.context import CheckContext
from shapefix.checks.support.default_options import under_defaults
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, Fix, Severity, Span
from shapefix.interpreter.events import Event

Check = Callable[[Any, CheckContext], Iterable[Diagnostic]]


@dataclass(frozen=True)
class Rule:
    """What a rule is called, how bad its findings are, and in one line what they are.

    fix is the applicability of the repair that it usually offers, None where it offers none.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    fix: Applicability | None

    def diagnostic(
        self,
        span: Span,
        message: str,
        *,
        evidence: Iterable[Evidence] = (),
        condition: str | None = None,
        fixes: Iterable[Fix] = (),
    ) -> Diagnostic:
        """A finding of this rule."""
        return Diagnostic(
            self.code, self.name, self.severity, message, span, tuple(evidence), condition, tuple(fixes)
        )


RULES: dict[str, Rule] = {}
Kinds = type[Event] | tuple[type[Event], ...]
CHECKS: list[tuple[str, Kinds, Check]] = []


def rule(
    code: str, name: str, severity: Severity, summary: str, fix: Applicability | None, on: Kinds
) -> Callable[[Callable[[Any, CheckContext, Rule], Iterator[Diagnostic]]], Check]:
    """Register a check: a function of an event of type `on`, the run of the event, and the rule itself."""
    entry = Rule(code, name, severity, summary, fix)
    RULES[code] = entry

    def register(function: Callable[[Any, CheckContext, Rule], Iterator[Diagnostic]]) -> Check:
        def check(event: Any, run: CheckContext) -> Iterable[Diagnostic]:
            return function(event, run, entry)

        CHECKS.append((code, on, check))
        return check

    return register


def listened_to(codes: frozenset[str]) -> frozenset[type[Event]]:
    """The types of events that the rules of these codes check."""
    kinds = [on for code, on, _ in CHECKS if code in codes]
    return frozenset(kind for on in kinds for kind in (on if isinstance(on, tuple) else (on,)))


def findings(
    run: CheckContext, codes: frozenset[str], events: Iterable[Event] | None = None
) -> Iterator[Diagnostic]:
    """What the rules of these codes find in the events of a run, or in some of them."""
    checks = [(on, check) for code, on, check in CHECKS if code in codes]
    wanted = {kind: [check for on, check in checks if issubclass(kind, on)] for kind in run.kinds}
    if not any(wanted.values()):
        return
    for event in run.events if events is None else events:
        for check in wanted[type(event)]:
            for found in check(event, run):
                yield under_defaults(event, found)
