"""Run the program along the stack of an error, and keep the values of the failing line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import libcst as cst

from shapefix.diagnosis.project_frames import ProjectFrame, file_of
from shapefix.diagnosis.whole_texts import WholeText, whole_text
from shapefix.diagnostics import Span
from shapefix.domains.operations import InPlaceWrite
from shapefix.engine.interpretation import ProjectModules, deep_recursion
from shapefix.engine.parse_limits import check_parse_limits
from shapefix.engine.watchdog import FILE_SECONDS, Watchdog
from shapefix.interpreter.budget import OutOfBudget, cause_of
from shapefix.interpreter.evaluator import Evaluator, Files, Flow, Frame, Library
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import Place
from shapefix.interpreter.program import run_program
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import LibraryObject, Unknown, Value
from shapefix.light_dataclasses import dataclass
from shapefix.sources.project import Project, project_root
from shapefix.sources.text import Unreadable, read_source
from shapefix.tensors.layout import Layout

LOADER = "torch.utils.data.DataLoader"
_STEPS = 250_000
_MOST_STACKS = 4
"""The most stacks of one log that are followed."""
_MOST_FRAMES = 40
_MOST_RUNS = 200
"""The most runs of the failing line that are kept."""


@dataclass(frozen=True)
class SeenValue:
    """The value of an expression in the failing line, with its layout and origin at that moment."""

    place: Place
    value: Value
    tensor: TensorValue | None
    layout: Layout | None
    origin: LayoutStep | None


@dataclass
class FailingRun:
    """One run of the failing line: its values in the order of evaluation, and the rejected operations.

    matched is the number of calls on the way that are calls of the stack, 0 if another call is on the way.
    folder is that of the project; objects are those of libraries so far, by the expression; owners are the
    calls during which objects were created, by the object's id; loops are those around the line in its
    function, and outer_loops those around its calls, innermost first; writes are those in place so far.
    """

    frame: Frame
    matched: int
    folder: str
    objects: Mapping[cst.CSTNode, LibraryObject]
    owners: Mapping[int, Span]
    loops: tuple[cst.CSTNode, ...] = ()
    outer_loops: tuple[cst.CSTNode, ...] = ()
    writes: tuple[InPlaceWrite, ...] = ()
    values: list[SeenValue] = field(default_factory=list)
    rejected: list[OpRejected] = field(default_factory=list)

    @property
    def has_unknown(self) -> bool:
        """Whether a value of the line is unknown, or a size of a tensor; otherwise the line does not fail."""
        return any(_is_unknown(each) for each in self.values)


class FailingRuns:
    """Runs of the failing lines of a few stacks."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._found: dict[tuple[Span, ...], FailingRun | None] = {}

    def of(self, frames: Sequence[ProjectFrame]) -> FailingRun | None:
        """Return the run of the last frame's line with the best fit to the stack; None without a run."""
        key = tuple(frame.span for frame in frames)
        if key not in self._found:
            is_known = bool(frames) and not any(each.is_missing for each in (frames[0], frames[-1]))
            is_line = is_known and not frames[-1].is_region and len(self._found) < _MOST_STACKS
            self._found[key] = _best_run(frames, self._folder) if is_line else None
        return self._found[key]


def _best_run(frames: Sequence[ProjectFrame], folder: str) -> FailingRun | None:
    try:
        rows = [
            _in_whole(frame, whole_text(frame.span.path))
            for frame in (*frames[:_MOST_FRAMES], frames[-1])
            if not frame.is_missing
        ]
    except Unreadable:
        return None
    for entry in dict.fromkeys((frames[0].span.path, frames[-1].span.path)):
        runs = _runs(entry, rows, folder)
        if runs:
            return max(runs, key=lambda run: (run.matched, bool(run.rejected)))
    return None


def _is_unknown(seen: SeenValue) -> bool:
    if seen.tensor is None:
        return isinstance(seen.value, Unknown)
    return seen.layout is None or any(size.value is None for size in seen.layout.sizes)


def _in_whole(frame: ProjectFrame, whole: WholeText) -> Span:
    """Return the rows of a frame in the whole program around it."""
    span = frame.span
    before = whole.rows_before
    return Span(file_of(span.path), span.row + before, 1, span.end_row + before, span.end_column)


def _runs(entry: str, rows: Sequence[Span], folder: str) -> list[FailingRun]:
    """Run a file, and return all runs of the failing line."""
    try:
        source = whole_text(entry).source
        check_parse_limits(source)
        modules = ProjectModules(Project(project_root(source.path)), read_source, None)
        with deep_recursion(), Watchdog().stopping_after(FILE_SECONDS):
            module = modules.module(source)
            files = modules.files()
            files.add(module)
            ev = _StackEvaluator(modules.library, files, rows, folder)
            try:
                run_program(ev, module, _STEPS)
            except (OutOfBudget, Exception) as error:
                if cause_of(error) is None:
                    raise
            # The values outlive the evaluator, which is not closed for that reason.
            return ev.runs
    except (Unreadable, cst.ParserSyntaxError, RecursionError, OutOfBudget):
        return []


class _StackEvaluator(Evaluator):
    """Evaluator with a record of the runs of one line; rows are those of a stack, outermost first."""

    def __init__(self, library: Library, files: Files, rows: Sequence[Span], folder: str) -> None:
        super().__init__(library, files, _STEPS)
        self.runs: list[FailingRun] = []
        self._rows = rows
        self._folder = folder
        self._objects: dict[cst.CSTNode, LibraryObject] = {}
        self._owners: dict[int, Span] = {}
        self._kept: list[LibraryObject] = []
        self._open: FailingRun | None = None

    def execute(self, node: cst.CSTNode) -> Flow:
        """Run one statement; begin a record if it is the failing one."""
        frame = self.frames[-1]
        last = self._rows[-1]
        if frame.module.path != last.path or self._open is not None or len(self.runs) >= _MOST_RUNS:
            return super().execute(node)
        span = frame.module.span(node)
        if not (last.row <= span.row <= last.end_row):
            return super().execute(node)
        self._open = FailingRun(
            frame,
            self._matched(),
            self._folder,
            self._objects,
            self._owners,
            tuple(each.node for each in frame.loops),
            tuple(loop.node for around in reversed(self.frames) for loop in reversed(around.loops)),
        )
        start = len(self.events)
        self._open.writes = tuple(each for each in self.events if isinstance(each, InPlaceWrite))
        try:
            return super().execute(node)
        finally:
            run, self._open = self._open, None
            new = [each for each in self.events[start:] if isinstance(each, OpRejected)]
            run.rejected = [each for each in new if _covers(last, each.place.span)]
            # Those of the body of a loop are no values of its header.
            run.values = [each for each in run.values if _covers(last, each.place.span)]
            self.runs.append(run)

    def evaluate(self, node: cst.BaseExpression) -> Value:
        """Evaluate an expression; keep its value if it is one of the failing line."""
        value = super().evaluate(node)
        run = self._open
        if isinstance(value, LibraryObject) and value.place is not None:
            self._objects[node] = value
            if value.place.node is node and self.calls and id(value) not in self._owners:
                self._owners[id(value)] = self.calls[-1].span
                self._kept.append(value)
        if run is not None and self.frames[-1] is run.frame:
            tensor = value.tensor if isinstance(value, Unknown) else value
            tensor = tensor if isinstance(tensor, TensorValue) else None
            layout, origin = (tensor.layout, tensor.origin) if tensor is not None else (None, None)
            run.values.append(SeenValue(self.place(node), value, tensor, layout, origin))
        return value

    def _matched(self) -> int:
        covered = [any(_covers(row, call.span) for row in self._rows) for call in self.calls]
        return len(covered) + 1 if all(covered) else 0


def _covers(row: Span, span: Span) -> bool:
    return row.path == span.path and span.row <= row.end_row and span.end_row >= row.row
