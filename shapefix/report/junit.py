"""The format `junit`: a test report in JUnit's XML; each finding is a failed test of its file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from shapefix.diagnostics import Diagnostic, Failure, Severity, cell_of
from shapefix.report.view import View, visible

_NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render a suite per file. A finding of severity info is a passed test with its text as output."""
    cases: dict[str, list[tuple[str, str]]] = {}
    for finding in findings:
        path, _ = cell_of(finding.span.path) or (finding.span.path, 0)
        cases.setdefault(view.relative(path), []).append(_finding(finding, view))
    for failure in failures:
        path, _ = cell_of(failure.path) or (failure.path, 0)
        cases.setdefault(view.relative(path), []).append(_failure(failure, view))
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    if not cases:
        cases["shapefix"] = [("", '    <testcase classname="shapefix" name="check"/>\n')]
    kinds = [kind for suite in cases.values() for kind, _ in suite]
    yield f"<testsuites{_counts('shapefix', kinds)}>\n"
    for path, suite in cases.items():
        yield f"  <testsuite{_counts(path, [kind for kind, _ in suite])}>\n"
        yield from (text for _, text in suite)
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def _counts(name: str, kinds: Sequence[str]) -> str:
    return _attributes(
        name=name, tests=len(kinds), failures=kinds.count("failure"), errors=kinds.count("error")
    )


def _finding(finding: Diagnostic, view: View) -> tuple[str, str]:
    """Return the kind and the element of a finding."""
    lines = [finding.text]
    if finding.condition is not None:
        lines.append(f"fails when: {finding.condition.text}")
    lines += [
        f"{view.relative(step.span.path)}:{step.span.row}:{step.span.column}: {step.message}"
        for step in finding.evidence
    ]
    if finding.fix is not None:
        lines.append(f"fix ({finding.fix.applicability.value}): {finding.fix.message}")
    if finding.confirmation is not None:
        lines.append(f"{finding.confirmation.verdict.value}: {finding.confirmation.reason}")
    where = f"{view.relative(finding.span.path)}:{finding.span.row}:{finding.span.column}"
    text = _text("\n".join(lines))
    if finding.severity is Severity.INFO or finding.is_refuted:
        kind, content = "", f"<system-out>{text}</system-out>"
    else:
        content = f"<failure{_attributes(type=finding.name, message=finding.message)}>{text}</failure>"
        kind = "failure"
    return kind, _case(finding.code, where, finding.span.path, content, view)


def _failure(failure: Failure, view: View) -> tuple[str, str]:
    where = ":".join([view.relative(failure.path), *(str(n) for n in (failure.row, failure.column) if n)])
    content = f"<error{_attributes(type='shapefix', message=failure.message)}/>"
    return "error", _case("not checked", where, failure.path, content, view)


def _case(name: str, where: str, path: str, content: str, view: View) -> str:
    """Return a test named like `SF101 at train.py:10:28`.

    Jenkins' schema has no attributes for a file and a line.
    """
    cell = cell_of(path)
    file = view.relative(path if cell is None else cell[0])
    return f"    <testcase{_attributes(classname=file, name=f'{name} at {where}')}>{content}</testcase>\n"


def _attributes(**values: str | int) -> str:
    return "".join(f" {name}={quoteattr(_legal(str(value)))}" for name, value in values.items())


def _text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    """Replace characters without a place in XML."""
    return _NOT_IN_XML.sub("\ufffd", visible(text, keep="\n"))
