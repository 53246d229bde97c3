"""One file in, its findings out: parse, run in the interpreter, ask the rules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import listened_to
from shapefix.checks.rules import findings
from shapefix.checks.support.describe import describe, in_words
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import REVEAL, Diagnostic, Evidence, Failure, Severity, Span
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Revealed
from shapefix.interpreter.modules import Module, ModuleCache
from shapefix.interpreter.program import parsed, run_program
from shapefix.library.library import TorchLibrary
from shapefix.sources.project import Probes, Project
from shapefix.sources.text import SourceText, Unreadable, read_source

STEPS = 30_000
"""How many steps the script itself may take before its calls are no longer followed."""
UNCALLED_STEPS = 2_000
UNCALLED_STEPS_PER_LINE = 2
"""The same for all functions together that nobody called, and how many more for each line."""
MOST_ANSWERS = 6
"""So many different answers are reported for one `reveal(x)`."""
READING = 2_000_000
"""How many bytes of other files of the project one run reads."""
DEEPEST_RECURSION = 4_000


@dataclass(frozen=True)
class Analysis:
    """What is found in a run of one file.

    diagnostics may lie in other files of the project. probes are the files and missing paths that the answer
    rests on, besides the file itself. bounded counts the calls that were not followed: a bound was hit.
    reveals are the answers to `reveal(x)`, one for each time that it is reached; answers are the same as they
    are reported, one for each place.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    failures: tuple[Failure, ...] = ()
    probes: Probes = field(default_factory=Probes)
    bounded: int = 0
    reveals: tuple[Evidence, ...] = ()
    answers: tuple[Diagnostic, ...] = ()


class ProjectFiles:
    """The project as one run sees it: every module that it loads stays loaded until the run is over."""

    def __init__(self, project: Project, cache: ModuleCache, reading: int = READING) -> None:
        self._project = project
        self._cache = cache
        self._modules: dict[str, Module | None] = {}
        self._left = reading
        self.probes = Probes()

    def locate(self, importing: Module, module: str, level: int) -> str | None:
        dotted = self._project.resolve(importing.path, level, module)
        found = None if not dotted else self._project.locate(dotted, importing.path, self.probes)
        # A file called like the library that it wraps does not mean itself.
        return None if found == importing.path else found

    def module(self, path: str) -> Module | None:
        if path not in self._modules:
            self._modules[path] = self._load(path)
        return self._modules[path]

    def allow(self, size: int) -> None:
        self._left = min(self._left, size)

    def add(self, module: Module) -> None:
        self._modules[module.path] = module

    def release(self) -> None:
        for module in self._modules.values():
            if module is not None:
                module.forget_positions()

    def _load(self, path: str) -> Module | None:
        try:
            # What was parsed for another file counts in full, or results would depend on the order of files.
            self._left -= Path(path).stat().st_size
            return self._cache.get(path) if self._left >= 0 else None
        except (OSError, Unreadable, cst.ParserSyntaxError, RecursionError):
            # The file gets a line of its own when it is checked itself; here its names are just unknown.
            return None


class Analyst:
    """Analyses the files of one project, one after another, sharing what it has parsed.

    read gives the text of the project's other files by their paths; it may raise Unreadable.
    transformers_version is the one that the project uses, None for the newest.
    """

    def __init__(
        self,
        project: Project,
        rules: frozenset[str],
        read: Callable[[str], SourceText] = read_source,
        transformers_version: str | None = None,
    ) -> None:
        self._project = project
        self._rules = rules
        self._read = read
        self._versions = {} if transformers_version is None else {"transformers": transformers_version}
        self._library = TorchLibrary()
        self._cache = ModuleCache(self._parse)

    def _parse(self, path: str) -> Module:
        return self._module(self._read(path))

    def _module(self, source: SourceText) -> Module:
        name = self._project.module_name(source.path)
        return parsed(source.path, name, source.text)

    def analyse(self, path: str, source: SourceText) -> Analysis:
        """What the rules find in a run of the file at path (absolute). Never raises: that is a Failure."""
        files = ProjectFiles(self._project, self._cache)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, DEEPEST_RECURSION))
        try:
            return self._analyse(path, source, files)
        except cst.ParserSyntaxError as error:
            message = f"cannot be parsed: {_syntax_message(error)}"
            return Analysis(failures=(Failure(path, message, error.raw_line, error.raw_column + 1),))
        except RecursionError:
            return Analysis(
                failures=(Failure(path, "is nested too deeply to be analysed"),), probes=files.probes
            )
        except Exception as error:
            return Analysis(failures=(_internal(path, "the analysis", error),), probes=files.probes)
        finally:
            files.release()
            sys.setrecursionlimit(limit)

    def _analyse(self, path: str, source: SourceText, files: ProjectFiles) -> Analysis:
        module = self._cache.kept(path, source.text) or self._cache.add(self._module(source))
        files.add(module)
        ev = Evaluator(self._library, files, STEPS, self._versions, listened_to(self._rules))
        try:
            lines = source.text.count("\n") + 1
            run_program(ev, module, UNCALLED_STEPS + UNCALLED_STEPS_PER_LINE * lines)
            return self._judged(path, ev, files.probes)
        finally:
            ev.close()

    def _judged(self, path: str, ev: Evaluator, probes: Probes) -> Analysis:
        """What the rules say of a run."""
        run = CheckContext(ev.events, ev.symbol_names)
        diagnostics: list[Diagnostic] = []
        failures: list[Failure] = []
        for code in sorted(self._rules):
            try:
                diagnostics += findings(run, frozenset({code}))
            except Exception as error:
                failures.append(_internal(path, f"rule {code}", error))
        return Analysis(
            tuple(dict.fromkeys(diagnostics)),
            tuple(failures),
            probes,
            ev.bounded,
            tuple(_reveals(run)),
            tuple(_answers(run)),
        )


def _reveals(run: CheckContext) -> Iterator[Evidence]:
    for event in run.events:
        if isinstance(event, Revealed):
            yield Evidence(event.place.span, describe(event.value, run))


def _answers(run: CheckContext) -> Iterator[Diagnostic]:
    """What each `reveal(x)` shows, in the order in which they are reached, different answers once each."""
    places: dict[Span, list[Revealed]] = {}
    for event in run.events:
        if isinstance(event, Revealed):
            places.setdefault(event.place.span, []).append(event)
    for span, events in places.items():
        texts = [text for event in events for text in in_words(event.value, run)]
        several = list(dict.fromkeys(texts))
        shown = [*several[:MOST_ANSWERS], *(["..."] if len(several) > MOST_ANSWERS else [])]
        way = (*call_trace(events[0]), Evidence(span, "revealed here"))
        yield Diagnostic(REVEAL, "revealed", Severity.INFO, "; ".join(shown), span, way)


def _syntax_message(error: cst.ParserSyntaxError) -> str:
    text = error.message.removeprefix("Syntax Error:").strip()
    return text.splitlines()[0] if text else "invalid syntax"


def _internal(path: str, what: str, error: Exception) -> Failure:
    return Failure(path, f"internal error in {what}, please report it: {type(error).__name__}: {error}")
