"""Analyze the examples of the rule pages: shapefix reports, reveals and repairs what the pages say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rule_pages import Example, examples, front_matter, pages

from shapefix.checks.rules import RULES
from shapefix.diagnostics import Applicability, Diagnostic, Failure, Fix, Severity
from shapefix.engine.analysis import AnalysisResult, FileAnalyzer
from shapefix.engine.merge import unique
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.repair.fixpoint import repair
from shapefix.report.fixed_code import fixed_code
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText

EXAMPLES = [example for page in pages() for example in examples(page)]


ABOUT_COMMENTS = re.compile("noqa|shapefix:")


@dataclass(frozen=True)
class Checked:
    """The findings of a session, by the names of an analysis."""

    diagnostics: tuple[Diagnostic, ...]
    failures: tuple[Failure, ...]
    reveals: tuple[Diagnostic, ...] = ()


def checked(text: str, folder: Path) -> Checked:
    """Check a text as the only file of a project."""
    (folder / "example.py").write_text(text, "utf-8")
    options = CheckOptions(isolated=True, use_cache=False, jobs=1)
    session = CheckSession([str(folder)], Settings(options)).run()
    return Checked(session.findings(), session.failures())


def analysed(text: str, folder: Path) -> AnalysisResult | Checked:
    """Analyze an example; one about comments is checked like a project, as the engine reports its rules."""
    path = str(folder / "example.py")
    if ABOUT_COMMENTS.search(text):
        return checked(text, folder)
    return FileAnalyzer(Project(str(folder)), frozenset(RULES)).analyze(path, SourceText(path, text))


def shown(findings: Iterable[Diagnostic], own: str) -> list[Diagnostic]:
    """The findings of the default rules and of the page's own rule."""
    return [d for d in unique(findings) if d.severity is not Severity.INFO or d.code == own]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_findings_are_those_of_the_page(example: Example, tmp_path: Path) -> None:
    analysis = analysed(example.text, tmp_path)
    assert not analysis.failures
    found = shown(analysis.diagnostics, front_matter(example.page)["code"])
    assert sorted((d.span.row - example.hidden, d.code, str(d.severity)) for d in found) == sorted(
        (e.line, e.code, e.severity) for e in example.findings
    ), "\n".join(f"{d.span.row}: {d.text}" for d in found)
    for expected in example.findings:
        here = [d for d in found if (d.span.row - example.hidden, d.code) == (expected.line, expected.code)]
        messages = [example.visible(d.text) for d in here]
        assert any(expected.message in message for message in messages), messages
        if expected.condition is not None:
            conditions = [d.condition.text for d in here if d.condition is not None]
            assert any(expected.condition in text for text in conditions), conditions


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.revealed], ids=str)
def test_revealed_values_are_those_of_the_page(example: Example, tmp_path: Path) -> None:
    revealed = {
        answer.span.row - example.hidden: answer.message
        for answer in analysed(example.text, tmp_path).reveals
    }
    assert revealed == example.revealed


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.fixed], ids=str)
def test_the_repair_gives_the_text_on_the_page(example: Example, tmp_path: Path) -> None:
    assert example.fixed is not None
    allowed = {Applicability.SAFE, Applicability.UNSAFE} if example.fixed.unsafe else {Applicability.SAFE}
    own = front_matter(example.page)["code"]

    def may(fix: Fix, diagnostic: Diagnostic) -> bool:
        return fix.applicability in allowed

    repaired = repair(example.text, lambda text: shown(analysed(text, tmp_path).diagnostics, own), may)
    assert repaired.text == example.fixed.text


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.fixed], ids=str)
def test_the_shown_code_of_a_repair_is_in_the_repaired_text(example: Example, tmp_path: Path) -> None:
    assert example.fixed is not None
    allowed = {Applicability.SAFE, Applicability.UNSAFE} if example.fixed.unsafe else {Applicability.SAFE}
    for found in shown(analysed(example.text, tmp_path).diagnostics, front_matter(example.page)["code"]):
        fixed = fixed_code(found.fix, example.text) if found.fix is not None else None
        if found.fix is not None and found.fix.applicability in allowed and fixed is not None:
            parts = fixed.code.split("…")
            assert all(part.strip(", )") in example.fixed.text for part in parts)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_rule_is_off_by_default_if_its_severity_is_info(page: Path) -> None:
    head = front_matter(page)
    assert (head["default"] == "off") == (head["severity"] == "info")
