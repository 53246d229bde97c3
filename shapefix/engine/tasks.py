"""One file: from its bytes to an answer, in whichever process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shapefix.diagnostics import Diagnostic, Failure
from shapefix.engine.parse_limits import refuse_unparsable
from shapefix.engine.syntax_errors import python_failure, syntax_failure
from shapefix.rulebook.pages import RulebookError
from shapefix.sources.relevance import mentions_library
from shapefix.sources.text import SourceText, Unreadable, decode_source

if TYPE_CHECKING:
    from shapefix.engine.analysis import Analyst


@dataclass(frozen=True)
class Question:
    """A file to analyse: its absolute path, its bytes, the root of its project, and the rules to apply.

    transformers_version is the one that it is written for, None for the newest.
    """

    path: str
    data: bytes
    root: str
    rules: frozenset[str]
    transformers_version: str | None = None


@dataclass(frozen=True)
class Answer:
    """What was found in a run of the file at path, in whatever files of its project.

    found and missing are the paths that the answer rests on besides the file itself. bounded counts the
    calls that were not followed; relevant tells whether the file was looked into at all. cached answers come
    from an earlier run.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...] = ()
    failures: tuple[Failure, ...] = ()
    found: frozenset[str] = field(default=frozenset(), repr=False)
    missing: frozenset[str] = field(default=frozenset(), repr=False)
    bounded: int = 0
    relevant: bool = True
    cached: bool = False
    lasting: bool = True


class Answerer:
    """Answers one question after another; files of one project in a row share what was parsed for them.

    source gives the text of the project's other files, and may raise Unreadable.
    """

    def __init__(self, source: Callable[[str], SourceText]) -> None:
        self._source = source
        self._analyst: Analyst | None = None
        self._scope: tuple[str, frozenset[str], str | None] | None = None

    def answer(self, question: Question) -> Answer:
        """Never raises, but for what asks the process to end."""
        path = question.path
        try:
            source = decode_source(path, question.data)
            if not mentions_library(question.data):
                failure = syntax_failure(source)
                return Answer(path, failures=(failure,) if failure else (), relevant=False)
            refuse_unparsable(source)
        except Unreadable as error:
            return Answer(path, failures=(Failure(path, error.message, error.row, error.column),))
        try:
            analyst = self._analyst_for(question)
        except RulebookError as error:
            return Answer(path, failures=(Failure(path, f"cannot be checked: {error}"),))
        analysis = analyst.analyse(path, source)
        failures = analysis.failures
        if any(failure.path == path for failure in failures):
            spoken = python_failure(source)
            failures = (spoken,) if spoken else failures
        return Answer(
            path,
            analysis.diagnostics + analysis.answers,
            failures,
            frozenset(analysis.probes.found),
            frozenset(analysis.probes.missing),
            analysis.bounded,
        )

    def _analyst_for(self, question: Question) -> Analyst:
        scope = (question.root, question.rules, question.transformers_version)
        if self._analyst is None or scope != self._scope:
            # Nobody who only asks for a version, or finds everything cached, should wait for these.
            from shapefix.engine.analysis import Analyst
            from shapefix.sources.project import Project

            self._analyst = Analyst(
                Project(question.root), question.rules, self._parsable, question.transformers_version
            )
            self._scope = scope
        return self._analyst

    def _parsable(self, path: str) -> SourceText:
        source = self._source(path)
        refuse_unparsable(source)
        return source
