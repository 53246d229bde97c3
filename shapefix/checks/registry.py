"""The table of rules, and how a module registers its check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Any

from shapefix.checks.context import CheckContext
from shapefix.checks.support.certainty import reservation
from shapefix.checks.support.default_options import under_defaults
from shapefix.checks.support.demo_calls import only_shown
from shapefix.checks.support.loader_calls import with_loader_calls
from shapefix.diagnostics import (
    Cause,
    Condition,
    Diagnostic,
    Evidence,
    ExpectedError,
    Fix,
    Moment,
    Severity,
    Span,
    with_failure,
)
from shapefix.interpreter.budget import cause_of
from shapefix.interpreter.events import Event
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import Page, UnmatchedRule, pages, pages_by_code
from shapefix.rulebook.plugins import Plugin, PluginProblem, is_broken, note_error, note_problem

Check = Callable[[Any, CheckContext], Iterable[Diagnostic]]


@dataclass(frozen=True)
class Rule:
    """A rule with the metadata of its page."""

    page: Page

    @property
    def code(self) -> str:
        return self.page.code

    @property
    def name(self) -> str:
        return self.page.name

    @property
    def severity(self) -> Severity:
        return self.page.severity

    def diagnostic(
        self,
        span: Span,
        message: str,
        *,
        evidence: Iterable[Evidence] = (),
        condition: Condition | None = None,
        fixes: Iterable[Fix] = (),
        error: ExpectedError | None = None,
        follows: Cause | None = None,
        habit: str = "",
    ) -> Diagnostic:
        """Return a finding of this rule. The steps at its own place are the failure."""
        return Diagnostic(
            self.code,
            self.name,
            self.severity,
            message,
            span,
            with_failure(evidence, span),
            condition,
            tuple(fixes),
            error=error,
            follows=follows,
            habit=habit,
        )


RULES: dict[str, Rule] = {}
Kinds = type[Event] | tuple[type[Event], ...]
CHECKS: list[tuple[str, Kinds, Check]] = []
READ: dict[str, tuple[type[Event], ...]] = {}
"""Events that the check of a rule looks up in its context, by the code of the rule."""


def rule(
    code: str, on: Kinds, reads: tuple[type[Event], ...] = ()
) -> Callable[[Callable[[Any, CheckContext, Rule], Iterator[Diagnostic]]], Check]:
    """Register a check: a function of an event of type `on`, the context of the event, and the rule.

    reads are the other events that it looks up in the context: they are emitted, and not checked.
    The front matter of the rule's page has everything else. Raises UnmatchedRule if there is no page.
    """

    def register(function: Callable[[Any, CheckContext, Rule], Iterator[Diagnostic]]) -> Check:
        page = pages_by_code().get(code)
        if page is None:
            file = Path(function.__code__.co_filename)
            name = file.stem.replace("_", "-")
            raise UnmatchedRule(f"{file}: rule {code} has no page; write rules/{code}-{name}.md")
        entry = RULES.setdefault(code, Rule(page))

        @wraps(function)
        def check(event: Any, context: CheckContext) -> Iterable[Diagnostic]:
            return function(event, context, entry)

        guarded: Check = check if page.plugin is None else _guarded(check, page, page.plugin)
        CHECKS.append((code, on, guarded))
        READ[code] = READ.get(code, ()) + reads
        return guarded

    return register


def _guarded(check: Check, page: Page, plugin: Plugin) -> Check:
    """Return the check of a plugin's rule; once it has raised, the plugin's rules find nothing."""

    @wraps(check)
    def guarded(event: Any, context: CheckContext) -> Iterable[Diagnostic]:
        if is_broken(plugin):
            return ()
        try:
            return list(check(event, context))
        except Exception as error:
            if cause_of(error) is not None:
                raise
            note_error(plugin, f"rule {page.code} of plugin {plugin.distribution} is not used", error)
            return ()

    return guarded


def listened_to(codes: frozenset[str]) -> frozenset[type[Event]]:
    """The types of events checked or read by the rules of these codes."""
    kinds: list[Kinds] = [on for code, on, _ in CHECKS if code in codes]
    kinds += [read for code, read in READ.items() if code in codes]
    return frozenset(kind for on in kinds for kind in (on if isinstance(on, tuple) else (on,)))


def require_checks() -> None:
    """Raise UnmatchedRule if a page has no registered check; for a page of a plugin it is a problem."""
    for page in pages():
        if page.code in RULES or page.is_about_comments:
            continue
        if page.plugin is not None:
            message = f"plugin {page.plugin.distribution}: no check is registered for rule {page.code}"
            note_problem(page.plugin, PluginProblem(str(page.path), None, message))
        else:
            module = f"shapefix/checks/<family>/{page.name.replace('-', '_')}.py"
            raise UnmatchedRule(
                f"{page.path}: no check is registered for rule {page.code}; "
                f'write {module} with @rule("{page.code}", on=…)'
            )


def findings(
    context: CheckContext, codes: frozenset[str], events: Iterable[Event] | None = None
) -> Iterator[Diagnostic]:
    """Run the rules with these codes on the events of a run, or on some of them."""
    checks = [(on, check) for code, on, check in CHECKS if code in codes]
    wanted = {kind: [check for on, check in checks if issubclass(kind, on)] for kind in context.kinds}
    if not any(wanted.values()):
        return
    for moment, event in _of_kinds(context, wanted) if events is None else enumerate(events):
        for check in wanted[type(event)]:
            for found in check(event, context):
                found = under_defaults(event, only_shown(event, found))
                found = with_loader_calls(event, found, context)
                found = replace(found, reservation=reservation(event, found, context))
                way = context.way(event)
                in_branch = way.uncalled is not None and bool(way.guards)
                yield replace(found, in_branch=in_branch, moment=moment, error=_timed(found, event, context))


def _of_kinds(
    context: CheckContext, wanted: Mapping[type[Event], list[Check]]
) -> Iterator[tuple[int, Event]]:
    """Yield the events of a run with checks for their type, each with its position among all."""
    numbered = (context.numbered[kind] for kind, checks in wanted.items() if checks)
    return merge(*numbered, key=itemgetter(0))


def _timed(found: Diagnostic, event: Event, context: CheckContext) -> ExpectedError | None:
    """Return the exception of a finding, with its moment if the first batch is certain to raise it."""
    error, condition = found.error, found.condition
    if (
        error is None
        or error.moment is not Moment.UNKNOWN
        or (condition is not None and not condition.constant)
    ):
        return error
    return replace(error, moment=Moment.FIRST_BATCH) if context.is_in_first_batch(event) else error
