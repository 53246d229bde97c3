"""Check the text of a script that need not exist as a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shapefix.checks.rules import RULES
from shapefix.diagnostics import Diagnostic
from shapefix.engine.analysis import AnalysisResult, FileAnalyzer
from shapefix.engine.gc_control import gc_paused
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText


def analyzed(
    path: Path, text: str, rules: Iterable[str] = RULES, transformers_version: str | None = None
) -> AnalysisResult:
    """Analyze text as the file at path, in a project that is the file's folder."""
    analyst = FileAnalyzer(
        Project(str(path.parent)), frozenset(rules), transformers_version=transformers_version
    )
    # As in a run of the command: with the collector, an analysis takes half as long again.
    with gc_paused():
        return analyst.analyze(str(path), SourceText(str(path), text))


@dataclass(frozen=True)
class Check:
    """Return the findings of some rules, by default all, in the text of a script of a folder."""

    folder: Path

    def __call__(
        self,
        text: str,
        rules: Iterable[str] = RULES,
        *,
        transformers_version: str | None = None,
        name: str = "script.py",
    ) -> list[Diagnostic]:
        analysis = analyzed(self.folder / name, text, rules, transformers_version)
        assert not analysis.failures, analysis.failures
        return list(analysis.diagnostics)
