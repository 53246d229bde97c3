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
    entries = [
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity.value,
            "summary": rule.summary,
            "fix": rule.fix and rule.fix.value,
        }
        for rule in rules
    ]
    yield json_text(json.dumps(entries, indent=2, ensure_ascii=False)) + "\n"
