"""Count findings per rule, for --statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Diagnostic
from shapefix.report.view import View


def render(findings: Sequence[Diagnostic], view: View) -> Iterator[str]:
    """Render a line `count  code  [*] name` per code, the most frequent first, then by code.

    `shapefix fix` repairs all findings with `[*]`, some with `[-]`, and none with `[ ]`.
    """
    counts = Counter((finding.code, finding.name) for finding in findings)
    fixable = Counter(finding.code for finding in findings if view.fixable(finding))
    number = max((len(str(count)) for count in counts.values()), default=0)
    longest = max((len(code) for code, _ in counts), default=0)
    for (code, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        mark = "[*]" if fixable[code] == count else "[-]" if fixable[code] else "[ ]"
        yield f"{count:>{number}}  {code:<{longest}}  {mark} {name}\n"
