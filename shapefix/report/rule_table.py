"""The table of all rules, for `shapefix rules`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from shapefix.report.view import json_text
from shapefix.rulebook.pages import Page


def render(rules: Sequence[Page]) -> Iterator[str]:
    """Align code, name, severity, fix and summary in columns, with a heading."""
    rows = [("code", "name", "severity", "fix", "what it finds")]
    rows += [(rule.code, rule.name, rule.severity, rule.fix or "-", rule.summary) for rule in rules]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        start = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
        yield f"{start}  {row[-1]}\n"


def render_json(rules: Sequence[Page]) -> Iterator[str]:
    """One JSON list with an object per rule; `fix` is null for rules without an automatic fix."""
    yield _text([_entry(rule) for rule in rules])


def render_pages_json(rules: Sequence[Page], examples: bool) -> Iterator[str]:
    """A JSON list with the pages of rules."""
    yield _text([_page(rule, examples) for rule in rules])


def render_page_json(rule: Page, examples: bool) -> Iterator[str]:
    """A JSON object with the page of a rule: `explanation`, in Markdown."""
    yield _text(_page(rule, examples))


def _entry(rule: Page) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "summary": rule.summary,
        "fix": rule.fix and rule.fix.value,
    }


def _page(rule: Page, examples: bool) -> dict[str, object]:
    return {
        **_entry(rule),
        "raises": rule.raises.value,
        "enabled": rule.by_default,
        "since": rule.since,
        "explanation": rule.text(examples),
    }


def _text(document: object) -> str:
    return json_text(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"
