"""Analyze one file: parse it, run it in the interpreter, and check the events against the rules."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import listened_to
from shapefix.checks.rules import RULES, findings
from shapefix.checks.support.default_options import without_options
from shapefix.checks.support.describe import describe, in_words
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.shared_operands import with_shared_operands
from shapefix.diagnostics import REVEAL, Diagnostic, Evidence, Failure, Severity, Span, Unchecked
from shapefix.engine.demos import demo_mismatches, mismatches_in_tests, training_script
from shapefix.engine.frame_memory import with_memory_for_frames
from shapefix.engine.interpretation import ProjectFiles, ProjectModules, deep_recursion, parse_failure
from shapefix.engine.merge import unique_in_run
from shapefix.engine.unchecked import plugin_problems, stopped_in, unchecked_places
from shapefix.engine.watchdog import FILE_SECONDS, RUN_SECONDS, Watchdog
from shapefix.interpreter.budget import REHEARSAL_STEPS, OutOfBudget, Resource, cause_of
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event, Revealed
from shapefix.interpreter.option_flags import OptionLosses
from shapefix.interpreter.program import run_program
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import Raises
from shapefix.sources.gpu_use import GpuUse
from shapefix.sources.project import PathProbes, Project
from shapefix.sources.relevance import training_functions
from shapefix.sources.text import SourceText, read_source

STEPS = 250_000
"""How many steps the script itself may take before its calls are no longer followed."""
LEAST_STEPS = 20_000
"""The least limit for a run without options; it may not take more steps than the run with any options."""
UNCALLED_STEPS = 150_000
"""The same limit for all uncalled functions together."""
MOST_ANSWERS = 6
"""The largest number of different values reported for one `reveal(x)`."""


@dataclass(frozen=True)
class AnalysisResult:
    """The findings of a run of one file; they may be in other files of the project.

    probes are the files and missing paths that the result depends on, besides the file itself. bounded counts
    the calls that were not followed because a limit was reached. reveals has one entry for each time that a
    `reveal(x)` is reached; answers are the same values as they are reported, one for each place. A result
    that is not cacheable depends on all files of the project, or on the time that the analysis took. called
    are the functions of other files that the run calls, by path and qualified name.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    failures: tuple[Failure, ...] = ()
    probes: PathProbes = field(default_factory=PathProbes)
    bounded: int = 0
    reveals: tuple[Evidence, ...] = ()
    answers: tuple[Diagnostic, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    cacheable: bool = True
    called: frozenset[tuple[str, str]] = frozenset()


class FileAnalyzer:
    """Analyzes the files of one project, one after another, and shares parsed modules between them.

    read returns the text of the project's other files by path; it may raise Unreadable. transformers_version
    is the version that the project uses, None for the newest; oldest_versions the oldest
    versions of libraries that it permits, by name. signatures are declared sizes of functions, by qualified
    name.
    """

    def __init__(
        self,
        project: Project,
        rules: frozenset[str],
        read: Callable[[str], SourceText] = read_source,
        transformers_version: str | None = None,
        oldest_versions: Mapping[str, str] | None = None,
        signatures: Mapping[str, str] | None = None,
    ) -> None:
        self._rules = rules
        self._project = project
        self._read = read
        self._gpu_use = GpuUse(project, read)
        self._modules = ProjectModules(project, read, transformers_version, signatures=signatures or {})
        self._oldest = oldest_versions or {}

    @property
    def modules(self) -> ProjectModules:
        """The parsed modules of the project."""
        return self._modules

    def forget(self, path: str) -> None:
        """Drop cached knowledge of a changed file; no other file of the project has appeared or gone."""
        self._modules.forget(path)
        self._gpu_use.forget(path)

    def analyze(self, path: str, source: SourceText) -> AnalysisResult:
        """Run the file at path (absolute) and check the run against the rules. Errors become a Failure."""
        files = self._modules.files()
        watchdog = Watchdog()
        try:
            with deep_recursion():
                return with_memory_for_frames(self._analyze, path, source, files, watchdog)
        except (cst.ParserSyntaxError, RecursionError) as error:
            return AnalysisResult(failures=(parse_failure(source, error),), probes=files.probes)
        except (OutOfBudget, Exception) as error:
            stop = cause_of(error)
            if stop is not None:
                unchecked = (stopped_in(path, stop.resource.value),)
                return AnalysisResult(probes=files.probes, unchecked=unchecked, cacheable=False)
            return AnalysisResult(failures=(_internal(path, "the analysis", error),), probes=files.probes)
        finally:
            files.release()

    def _analyze(
        self, path: str, source: SourceText, files: ProjectFiles, watchdog: Watchdog
    ) -> AnalysisResult:
        module = self._modules.module(source)
        files.add(module)
        listened = listened_to(self._rules)
        ev = Evaluator(self._modules.library, files, STEPS, self._modules.versions, listened)
        ev.oldest_versions = self._oldest
        stopped: Resource | None = None
        try:
            try:
                with watchdog.stopping_after(RUN_SECONDS):
                    run_program(ev, module, UNCALLED_STEPS, training_functions(source.text))
            except (OutOfBudget, Exception) as error:
                stop = cause_of(error)
                if stop is None:
                    raise
                stopped = stop.resource
            with watchdog.stopping_after(FILE_SECONDS):
                result = self._result(path, source, ev, files.probes, stopped)
                if stopped is None and ev.state[OptionLosses].found:
                    result = self._with_defaults(path, source, files, ev, result)
                return result
        finally:
            ev.close()

    def _with_defaults(
        self,
        path: str,
        source: SourceText,
        files: ProjectFiles,
        first: Evaluator,
        result: AnalysisResult,
    ) -> AnalysisResult:
        """Add the findings of a run without options on the command line.

        An option that chooses between two models leaves neither known to the run with any options, the first
        one. A second run of a long script may not take longer.
        """
        allowance = min(STEPS, max(LEAST_STEPS, first.steps))
        ev = Evaluator(self._modules.library, files, allowance, self._modules.versions, first.listening)
        ev.rehearsal_allowance = min(REHEARSAL_STEPS, max(LEAST_STEPS, first.rehearsed))
        ev.oldest_versions = self._oldest
        ev.takes_defaults = True
        try:
            run_program(ev, self._modules.module(source), 0, script_only=True)
            second = self._result(path, source, ev, files.probes, None)
        finally:
            ev.close()
        known = {(each.code, each.span) for each in result.diagnostics}
        more = [without_options(each) for each in second.diagnostics if (each.code, each.span) not in known]
        return replace(
            result,
            diagnostics=(*result.diagnostics, *more),
            cacheable=result.cacheable and second.cacheable,
            called=result.called | second.called,
        )

    def _result(
        self, path: str, source: SourceText, ev: Evaluator, probes: PathProbes, stopped: Resource | None
    ) -> AnalysisResult:
        """Check the events of a run against every rule.

        After a run that was stopped, the code may do what no event says: only errors at their own place hold.
        """
        is_cacheable = True

        def uses_gpu() -> bool:
            nonlocal is_cacheable
            user = self._gpu_use.user(path, source.text, probes.found)
            if user is None:
                # Any file of the project may change this.
                is_cacheable = False
            elif user != path:
                probes.found.add(user)
            return user is not None

        def may_be_moved(name: str) -> bool:
            nonlocal is_cacheable
            user = self._gpu_use.mover(path, source.text, name)
            if user is None:
                is_cacheable = False
            elif user != path:
                probes.found.add(user)
            return user is not None

        in_tests = mismatches_in_tests(ev.events, path)
        events: Sequence[Event] = ev.events
        if in_tests:
            events = [event for event in events if event not in in_tests]
        demo = demo_mismatches(events, path)
        if demo:
            script = training_script(self._project, path, self._read)
            if script is None:
                # Any file of the project may change this.
                is_cacheable = False
            else:
                # The run of the script reports what is wrong for it, too.
                probes.found.add(script)
                events = [event for event in events if event not in demo]
        run = CheckContext(
            events, ev.symbol_names, uses_gpu, ev.loops_to, may_be_moved, ev.ways, self._oldest
        )
        diagnostics: list[Diagnostic] = []
        failures: list[Failure] = []
        for code in sorted(self._rules):
            rule = RULES.get(code)
            if rule is None or (stopped is not None and rule.page.raises is not Raises.HERE):
                continue
            try:
                diagnostics += findings(run, frozenset({code}))
            except (OutOfBudget, Exception) as error:
                stop = cause_of(error)
                if stop is not None:
                    stopped = stop.resource
                    break
                failures.append(_internal(path, f"rule {code}", error))
        broken = tuple(plugin_problems())
        return AnalysisResult(
            tuple(unique_in_run(with_shared_operands(run, diagnostics))),
            tuple(failures),
            probes,
            ev.bounded,
            tuple(_reveals(run)),
            tuple(_answers(run)),
            (*unchecked_places(path, ev, stopped.value if stopped is not None else ""), *broken),
            is_cacheable and stopped is None and not broken,
            frozenset(each for each in ev.entered_files if each[0] != path),
        )


def _reveals(run: CheckContext) -> Iterator[Evidence]:
    for event in run.events:
        if isinstance(event, Revealed):
            yield Evidence(event.place.span, describe(event.value, run))


def _answers(run: CheckContext) -> Iterator[Diagnostic]:
    """Yield one diagnostic per `reveal(x)`, in execution order, with its different values."""
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


_MESSAGE_LENGTH = 200
"""Characters shown of the message of an internal error."""


def _internal(path: str, what: str, error: BaseException) -> Failure:
    """Describe an exception of shapefix's own by its type, its first line and the raising code."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    first, *more = str(error).splitlines() or [""]
    shown = first if len(first) <= _MESSAGE_LENGTH and not more else f"{first[:_MESSAGE_LENGTH]}…"
    where = f"{Path(at.filename).name}:{at.lineno}"
    return Failure(
        path, f"internal error in {what} ({where}), please report it: {type(error).__name__}: {shown}"
    )
