"""Count findings per rule, for --statistics."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from shapefix.diagnostics import Diagnostic
from shapefix.light_dataclasses import dataclass
from shapefix.report.view import View


@dataclass(frozen=True)
class RuleCount:
    """The findings of a rule, and how many of them `shapefix fix` repairs."""

    code: str
    name: str
    count: int
    fixable: bool
    fixable_count: int

    @property
    def mark(self) -> str:
        """`[*]` if all are repaired, `[-]` if some are, `[ ]` if none."""
        return "[*]" if self.fixable_count == self.count else "[-]" if self.fixable else "[ ]"


def _counts(findings: Sequence[Diagnostic], view: View) -> list[RuleCount]:
    """Count the findings of each rule, the most frequent first, then by code."""
    names = {finding.code: finding.name for finding in findings}
    counts = Counter(finding.code for finding in findings)
    fixable = Counter(finding.code for finding in findings if view.fixable(finding))
    return [
        RuleCount(code, names[code], count, fixable[code] > 0, fixable[code])
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def render(findings: Sequence[Diagnostic], view: View) -> Iterator[str]:
    """Render a line `count  code  [*] name` per rule."""
    counts = _counts(findings, view)
    number = max((len(str(each.count)) for each in counts), default=0)
    longest = max((len(each.code) for each in counts), default=0)
    for each in counts:
        yield f"{each.count:>{number}}  {each.code:<{longest}}  {each.mark} {each.name}\n"


def render_json(findings: Sequence[Diagnostic], view: View) -> Iterator[str]:
    """Render a list with an object per rule, with the keys of ruff."""
    yield json.dumps([asdict(each) for each in _counts(findings, view)], indent=2) + "\n"
