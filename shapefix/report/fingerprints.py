"""Fingerprints of findings: the same for the same code in another line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from shapefix.diagnostics import Diagnostic, cell_of
from shapefix.report.edited_text import rows_of
from shapefix.report.view import View


def fingerprints(findings: Sequence[Diagnostic], view: View) -> list[str]:
    """Return a fingerprint for each finding, from the rule, the file and the code of its rows.

    It has no line numbers, so it is the same after lines above were added. Findings that agree in all of it
    are counted: each has its own.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for finding in findings:
        # Without the number of a cell, which changes when cells are added.
        path, _ = cell_of(finding.span.path) or (finding.span.path, 0)
        key = finding.code, view.relative(path).replace("\\", "/"), _code(finding, view)
        seen[key] += 1
        found.append(_hash((*key, str(seen[key]))))
    return found


def _hash(words: Sequence[str]) -> str:
    return sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _code(finding: Diagnostic, view: View) -> str:
    """Return the code of the finding's rows without its spaces, or the message if it is not known."""
    text = view.sources(finding.span.path)
    if text is None:
        return finding.message
    rows = rows_of(text)[finding.span.row - 1 : finding.span.end_row]
    return "\n".join("".join(row.split()) for row in rows)
