"""Diagnose the last error of a log: its meaning, and its causes in the sources."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH120

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from shapefix.diagnosis.bare_messages import BareMessages
from shapefix.diagnosis.causes import ErrorCause, causes
from shapefix.diagnosis.error_reports import ErrorReport
from shapefix.diagnosis.explanations import MessageExplanation, explain_message
from shapefix.diagnosis.failing_layer import FailingLayer, failing_layer
from shapefix.diagnosis.failing_runs import FailingRun, FailingRuns
from shapefix.diagnosis.live_facts import LiveFacts
from shapefix.diagnosis.memory_causes import memory_causes
from shapefix.diagnosis.named_places.attributes import attribute_places
from shapefix.diagnosis.named_places.search import named_places
from shapefix.diagnosis.notebook_cells import read_cells
from shapefix.diagnosis.number_origins import distinct_places, number_origins, producer_origins
from shapefix.diagnosis.printing_handlers import printing_handler
from shapefix.diagnosis.project_frames import FrameSources, ProjectFrame, file_of, source_files
from shapefix.diagnosis.stored_reports import stored_reports
from shapefix.diagnosis.tracebacks import read_reports
from shapefix.diagnosis.traced_causes import line_fix, loop_places, traced_cause, value_places
from shapefix.diagnosis.value_origins import sample_origins
from shapefix.diagnostics import Diagnostic, Evidence, Role, Span, in_run_order
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.light_dataclasses import dataclass
from shapefix.report.view import View

_IN_TICKS = re.compile(r"`([^`]+)`")
_OF_SETTINGS = frozenset(
    {"SF407", "SF408", "SF409", "SF414", "SF415", "SF416", "SF610", "SF611", "SF614", "SF615"}
)
"""The rules about settings, signatures, names and checkpoints."""
_OF_COLLATION = frozenset({"SF410"})
"""The rules about samples, reported at the loader."""
_OF_GRAPHS = ("SF901", "SF902", "SF903", "SF904", "SF906", "SF907")
"""The rules about the graph of a value, and not about the value."""
_OF_LOSSES = frozenset({"SF908"})
"""The rules about a tensor without a number in their message."""
_OF_TWO = frozenset({"SF503", "SF504", "SF506"})
"""The rules about sizes of two operands."""
_OF_OTHERS = frozenset({"dataset-generation", "launcher-report"})
"""The error pages about a failure that another exception explains."""
_MOST_FILES = 200
"""The most files of a project that is searched for the cause of a message alone."""
_FEW = 3
"""The number of places that explain the values of a line."""
_MOST_PLACES = 5
_MOST_REPORTS = 100
"""The number of errors at the end of a log that are considered."""


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosed error of a log.

    report is the error at the end of its chain; error is the exception of that chain with an explanation or
    a cause. frames are those of the user's own code, outermost first. session is None if no file of them
    exists. layer is the one that failed, if there is no cause. holder is the number of the cell with the
    error in its outputs, and other_cells are those with other errors. live are the facts of the running
    program, None for a log. str() is the text of `shapefix diagnose`, 100 columns wide.
    """

    report: ErrorReport
    error: ErrorReport
    explanation: MessageExplanation | None
    frames: tuple[ProjectFrame, ...]
    causes: tuple[ErrorCause, ...]
    session: CheckSession | None
    layer: FailingLayer | None = None
    holder: int | None = None
    other_cells: tuple[int, ...] = ()
    live: LiveFacts | None = None

    def __str__(self) -> str:
        from shapefix.diagnosis.repaired_causes import patch
        from shapefix.diagnosis.text_report import render

        view = View(os.getcwd(), 100, quiet=True)  # noqa: PTH109
        if self.session is not None:
            view = replace(view, sources=self.session.source)
        return "".join(render(self, view, patch(self, view)))

    @property
    def is_changed(self) -> bool:
        """Whether a source differs from the one of the run."""
        return any(frame.is_changed for frame in self.frames)


def diagnose_log(lines: Iterable[str], folder: str, options: CheckOptions | None = None) -> Diagnosis | None:
    """Diagnose the last error of a log; None without one. Raises ConfigurationError.

    In a log without a traceback, it is the last message with an explanation. folder is that of the project,
    for paths of another machine.
    """
    messages = BareMessages()
    report = last_error(read_reports(messages.watch(lines)))
    if report is None:
        return _without_stack(messages, folder, options or CheckOptions())
    return _diagnosed(report, FrameSources(folder), options or CheckOptions())


def diagnose_notebook(path: str, folder: str, options: CheckOptions | None = None) -> Diagnosis | None:
    """Diagnose the last error in the outputs of a notebook; None without one. Raises ConfigurationError."""
    cells = read_cells(path)
    stored = [each for each in stored_reports(cells) if not each.report.is_consequence]
    if not stored:
        return None
    last = max(stored, key=lambda each: (each.cell.count or 0, each.cell.number))
    sources = FrameSources(folder, os.path.realpath(path)).held_by(last.cell.number)
    found = _diagnosed(last.report, sources, options or CheckOptions())
    others = tuple(each.cell.number for each in stored if each.cell is not last.cell)
    return replace(found, holder=last.cell.number, other_cells=tuple(dict.fromkeys(others)))


def diagnose_exception(
    report: ErrorReport, facts: Sequence[LiveFacts], notebook: str, options: CheckOptions | None = None
) -> Diagnosis:
    """Diagnose an exception of this process. Raises ConfigurationError.

    facts are those for the exceptions of its chain, in that order. notebook is the path of the cells.
    """
    sources = FrameSources(os.path.dirname(notebook), notebook)
    return _diagnosed(report, sources, options or CheckOptions(), facts)


def _diagnosed(
    report: ErrorReport, sources: FrameSources, options: CheckOptions, facts: Sequence[LiveFacts] = ()
) -> Diagnosis:
    report = sources.located(report)
    chain = list(report.chain())
    frames = {id(each): sources.frames(each) for each in chain}
    session = _checked([frame for each in chain for frame in frames[id(each)]], options)
    findings = _findings(session)
    diagnoses = []
    runs = FailingRuns(sources.folder)
    for number, error in enumerate(chain):
        live = facts[number] if number < len(facts) else LiveFacts() if facts else None
        own = frames[id(error)] or frames[id(report)]
        found = causes(error, own, findings, live)
        explanation = explain_message(error.message, error.name)
        if not found and explanation is not None and explanation.name == "out-of-memory":
            found = memory_causes(own, findings)
        layer = None if found else failing_layer(explanation, own, sources.folder, live)
        run = runs.of(own)
        if found:
            named = named_places(explanation, own, sources.folder) if explanation is not None else ()
            found = _with_origins(found, error, own, run, sources.folder, named)
            found = _with_fix(found, error, explanation, own, sources.folder)
        else:
            traced = traced_cause(error, explanation, own, run, layer, sources.folder)
            found = () if traced is None else (traced,)
        diagnoses.append(Diagnosis(report, error, explanation, own, found, session, layer, live=live))
    return max(diagnoses, key=_rank)


def _rank(diagnosis: Diagnosis) -> tuple[bool, bool, bool]:
    """Order the exceptions of a chain, that with the most to say last."""
    explanation = diagnosis.explanation
    is_of_itself = explanation is not None and explanation.name not in _OF_OTHERS
    return bool(diagnosis.causes) and is_of_itself, is_of_itself, explanation is not None


def _with_origins(
    found: tuple[ErrorCause, ...],
    error: ErrorReport,
    frames: Sequence[ProjectFrame],
    run: FailingRun | None,
    folder: str,
    named: Sequence[Evidence],
) -> tuple[ErrorCause, ...]:
    """Add the origins of the sizes, samples, attributes and names to the first cause."""
    finding = found[0].finding
    # The sizes of the failing line say nothing about a finding elsewhere.
    is_here = found[0].is_at_failing_line
    known = {(span.path, span.row) for span in (finding.span, *(step.span for step in finding.evidence))}
    origins = (
        *(number_origins(run, error.message) if run is not None and is_here else ()),
        *(producer_origins(run) if run is not None and finding.code in _OF_LOSSES else ()),
        *(sample_origins(run, _named(finding)) if run is not None and _is_of_samples(finding) else ()),
        *attribute_places(frames, folder, finding.message),
        *(named if is_here or finding.code in _OF_COLLATION else ()),
    )
    new = tuple(each for each in origins if (each.span.path, each.span.row) not in known)
    if is_here and finding.code in _OF_TWO:
        loops = loop_places(frames, folder)
        new = distinct_places(
            (*new, *(each for each in loops if (each.span.path, each.span.row) not in known))
        )
    has_edits = finding.fix is not None and bool(finding.fix.edits)
    is_of_line = is_here and _is_of_samples(finding) and not finding.code.startswith(_OF_GRAPHS)
    if is_of_line and len(new) < _FEW and not (has_edits and _has_cause_elsewhere(finding)):
        # The finding says what is wrong on the line, and little about where it comes from.
        shown = {(span.path, span.row) for span in (finding.span, *_shown(finding))}
        places = (
            each
            for each in value_places(frames, folder)
            if (each.span.path, each.span.row) not in shown and not _is_of_other_layer(each, finding)
        )
        new = distinct_places((*new, *places))[: max(len(new), _MOST_PLACES)]
    columns = [each for each in new if each.message.startswith("column")]
    # A rule about missing keys has the others in its message.
    is_of_values = finding.code.startswith("SF5")
    stated = [each for each in columns if is_of_values and _names_column(each.message, finding.message)]
    if stated:
        new = tuple(each for each in new if each not in columns or each in stated)
    return (replace(found[0], origins=new), *found[1:])


def _with_fix(
    found: tuple[ErrorCause, ...],
    error: ErrorReport,
    explanation: MessageExplanation | None,
    frames: Sequence[ProjectFrame],
    folder: str,
) -> tuple[ErrorCause, ...]:
    """Give the first cause the repair by the message, if it is at the failing line and its rule has none."""
    first = found[0]
    fix = first.finding.fix
    has_edits = fix is not None and bool(fix.edits)
    if has_edits or explanation is None or not first.is_at_failing_line:
        return found
    by_message = line_fix(error, explanation, frames, folder, first.evidence)
    if by_message is None:
        return found
    return (replace(first, finding=replace(first.finding, fixes=(by_message,))), *found[1:])


def _has_cause_elsewhere(finding: Diagnostic) -> bool:
    own = finding.span.path, finding.span.row
    causes_of = (step.span for step in finding.evidence if step.role is Role.CAUSE)
    return any((span.path, span.row) != own for span in causes_of)


def _is_of_other_layer(place: Evidence, finding: Diagnostic) -> bool:
    """Whether a place sets another attribute of the line than the finding names."""
    named = _IN_TICKS.findall(place.message)[:1]
    own = [name for name in _IN_TICKS.findall(finding.message) if name.startswith("self.")]
    return bool(own) and bool(named) and named[0].startswith("self.") and named[0] not in own


def _shown(finding: Diagnostic) -> Iterator[Span]:
    """Yield the places of a finding in the short report."""
    yield from (step.span for step in finding.evidence if step.role is not Role.HISTORY)


def _names_column(text: str, message: str) -> bool:
    """Whether a message names one of some columns; the Trainer renames `label` to `labels`."""
    named = _IN_TICKS.findall(message)
    return any(name in named or f"{name}s" in named for name in _IN_TICKS.findall(text))


def _named(finding: Diagnostic) -> frozenset[str]:
    """Return the expressions in the text of a finding about its line: the rejected operand."""
    here = [step.message for step in finding.evidence if step.span == finding.span]
    return frozenset(_IN_TICKS.findall(" ".join(here) or finding.message))


def _is_of_samples(finding: Diagnostic) -> bool:
    """Whether the samples of a dataset have a part in a finding: not in one about settings or arguments."""
    return finding.code not in _OF_SETTINGS


def _without_stack(messages: BareMessages, folder: str, options: CheckOptions) -> Diagnosis | None:
    """Diagnose the last known message of a log without a traceback, by its handler in the project."""
    report = messages.report()
    if report is None:
        return None
    handler = printing_handler(messages.line, folder)
    explanation = explain_message(report.message, report.name)
    if handler is not None:
        session = _checked((handler.frame,), options)
        found = causes(report, (handler.frame,), _findings(session))
        if found:
            return Diagnosis(report, report, explanation, (handler.frame,), found, session)
    frames = () if handler is None else (handler.frame,)
    session = _checked_project(folder, options)
    found = causes(report, (), in_run_order(_findings(session)))
    return Diagnosis(report, report, explanation, frames, found, session)


def _findings(session: CheckSession | None) -> tuple[Diagnostic, ...]:
    return () if session is None else (*session.findings(), *session.hidden())


def _checked_project(folder: str, options: CheckOptions) -> CheckSession | None:
    """Check all files below a folder, unless there are too many; its own errors are no reason to fail."""
    files = tuple(islice(source_files(folder), _MOST_FILES + 1))
    if not files or len(files) > _MOST_FILES:
        return None
    return CheckSession(files, Settings(_with_all_rules(options)), run_importers=False).run()


def last_error(reports: Iterable[ErrorReport]) -> ErrorReport | None:
    """Return the last error; consequences of other errors count only without any other."""
    latest = deque(reports, maxlen=_MOST_REPORTS)
    own = [report for report in latest if not report.is_consequence]
    if own:
        return own[-1]
    return latest[-1] if latest else None


def _checked(frames: Sequence[ProjectFrame], options: CheckOptions) -> CheckSession | None:
    """Check the files of the frames with all rules."""
    paths = tuple(dict.fromkeys(file_of(frame.span.path) for frame in frames if not frame.is_missing))
    if not paths:
        return None
    settings = Settings(_with_all_rules(options))
    return CheckSession(paths, settings, run_importers=False).run()


def _with_all_rules(options: CheckOptions) -> CheckOptions:
    return replace(options, extend_select=(*options.extend_select, "ALL"))
