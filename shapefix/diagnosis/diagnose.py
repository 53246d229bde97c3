"""Diagnose the last error of a log: its meaning, and its causes in the sources."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shapefix.diagnosis.bare_messages import BareMessages
from shapefix.diagnosis.causes import ErrorCause, causes
from shapefix.diagnosis.error_reports import ErrorReport
from shapefix.diagnosis.explanations import MessageExplanation, explain_message
from shapefix.diagnosis.failing_layer import FailingLayer, failing_layer
from shapefix.diagnosis.printing_handlers import printing_handler
from shapefix.diagnosis.project_frames import ProjectFiles, ProjectFrame, project_frames
from shapefix.diagnosis.tracebacks import read_reports
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

_MOST_REPORTS = 100
"""The number of errors at the end of a log that are considered."""


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosed error of a log.

    report is the error at the end of its chain; error is the exception of that chain with an explanation or
    a cause. frames are those of the user's own code, outermost first. session is None if no file of them
    exists. layer is the one that failed, if there is no cause.
    """

    report: ErrorReport
    error: ErrorReport
    explanation: MessageExplanation | None
    frames: tuple[ProjectFrame, ...]
    causes: tuple[ErrorCause, ...]
    session: CheckSession | None
    layer: FailingLayer | None = None

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
    chain = list(report.chain())
    files = ProjectFiles(folder)
    frames = {id(each): project_frames(each, files) for each in chain}
    session = _checked([frame for each in chain for frame in frames[id(each)]], options or CheckOptions())
    findings = () if session is None else (*session.findings(), *session.hidden())
    diagnoses = []
    for error in chain:
        own = frames[id(error)] or frames[id(report)]
        found = causes(error, own, findings)
        explanation = explain_message(error.message)
        layer = None if found else failing_layer(explanation, own)
        diagnoses.append(Diagnosis(report, error, explanation, own, found, session, layer))
    return max(diagnoses, key=lambda each: (bool(each.causes), each.explanation is not None))


def _without_stack(messages: BareMessages, folder: str, options: CheckOptions) -> Diagnosis | None:
    """Diagnose the last known message of a log without a traceback, by its handler in the project."""
    report = messages.report()
    if report is None:
        return None
    handler = printing_handler(messages.line, folder)
    frames = () if handler is None else (handler.frame,)
    session = _checked(frames, options)
    findings = () if session is None else (*session.findings(), *session.hidden())
    found = causes(report, frames, findings) if frames else ()
    return Diagnosis(report, report, explain_message(report.message), frames, found, session)


def last_error(reports: Iterable[ErrorReport]) -> ErrorReport | None:
    """Return the last error; consequences of other errors count only without any other."""
    latest = deque(reports, maxlen=_MOST_REPORTS)
    own = [report for report in latest if not report.is_consequence]
    if own:
        return own[-1]
    return latest[-1] if latest else None


def _checked(frames: Sequence[ProjectFrame], options: CheckOptions) -> CheckSession | None:
    """Check the files of the frames with all rules."""
    paths = tuple(dict.fromkeys(frame.span.path for frame in frames if not frame.is_missing))
    if not paths:
        return None
    settings = Settings(_with_all_rules(options))
    return CheckSession(paths, settings, run_importers=False).run()


def _with_all_rules(options: CheckOptions) -> CheckOptions:
    return replace(options, extend_select=(*options.extend_select, "ALL"))
