"""Read the agent's lines; skip a line cut off at the end of the process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from shapefix.diagnostics import Span
from shapefix.runtime.agent.masking import PATH_FIELDS, Masker
from shapefix.runtime.protocol import (
    AnyLine,
    BatchLine,
    CallArguments,
    CollectiveDoneLine,
    CollectiveLine,
    CollectiveWaitLine,
    DescribedValue,
    EndLine,
    ExceptionDetails,
    ExceptionLine,
    ExceptionSwallowedLine,
    ExtraBatchLine,
    FileWrittenLine,
    Line,
    LoaderLine,
    ModelParametersLine,
    ModuleEnterLine,
    ModuleExitLine,
    OptimizerStepLine,
    Origin,
    UserPlace,
    WriteRefusedLine,
    kind_of,
)
from shapefix.runtime.working_tree import NOTHING_LEFT, WritesLeft


@dataclass(frozen=True)
class ObservedModule:
    """One call of a module, and the calls inside it; out is None if it did not return.

    parameters is their number, None if it is not known; model are those of an outermost module, and variable
    its name in the caller's code. equal_calls counts the calls shown as this one in a report.
    """

    name: str
    type: str
    grad_enabled: bool
    input: CallArguments
    out: DescribedValue | None
    seconds: float | None
    constructed_at: Span | None
    called_at: Span | None
    children: tuple[ObservedModule, ...]
    parameters: int | None = None
    model: ModelParametersLine | None = None
    variable: str | None = None
    own_multiplications: int | None = None
    equal_calls: int = 1

    @property
    def multiplications(self) -> int:
        """The multiplications of the layers with weights in this call."""
        if self.own_multiplications is not None:
            return self.own_multiplications
        return sum(each.multiplications for each in self.children)


@dataclass(frozen=True)
class RaisedException:
    """An exception leaving a watched call or ending the script.

    origin is the kind of the watched call. stack has the user's places, innermost first. handler is the
    `except` that swallowed it; ended_script says that it ended the script. extra_batch is the batch after the
    wanted steps in which it was raised.
    """

    id: int
    origin: Origin
    type: str
    message: str
    causes: tuple[tuple[str, str], ...]
    stack: tuple[Span, ...]
    values: Mapping[str, DescribedValue]
    details: ExceptionDetails
    swallowed: bool = False
    handler: Span | None = None
    ended_script: bool = False
    extra_batch: ExtraBatchLine | None = None


@dataclass(frozen=True)
class ObservedBatch:
    """A batch of a loader, and the loop requesting it."""

    loader: int
    number: int
    value: DescribedValue
    requested_at: Span | None


@dataclass(frozen=True)
class Observations:
    """All observations of one run. lines are those of the agent, in order.

    changed are the files that changed in the working tree; compared says whether that is known of all files.
    discarded and deleted are those of an overlay.
    """

    lines: tuple[Line, ...] = field(repr=False)
    changed: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    compared: bool = True

    def of(self, line_type: type[AnyLine]) -> Iterator[AnyLine]:
        """The lines of one kind."""
        kind = kind_of(line_type)
        return (cast("AnyLine", line) for line in self.lines if line["kind"] == kind)

    def first(self, line_type: type[AnyLine]) -> AnyLine | None:
        """The first line of one kind."""
        return next(self.of(line_type), None)

    @cached_property
    def end(self) -> EndLine | None:
        """How the script ended; None if the process died before the agent could write it."""
        return self.first(EndLine)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The files written to the temporary folder, and unchanged in the working tree."""
        paths = dict.fromkeys((*(line["path"] for line in self.of(FileWrittenLine)), *self.discarded))
        return tuple(path for path in paths if path not in self.changed)

    @cached_property
    def refused(self) -> tuple[str, ...]:
        """The files not written, since the probe cannot redirect the write."""
        return tuple(dict.fromkeys(line["path"] for line in self.of(WriteRefusedLine)))

    @cached_property
    def steps(self) -> int:
        """The number of optimizer steps, without those of extra batches."""
        return sum(1 for line in self.of(OptimizerStepLine) if not line["extra"])

    @cached_property
    def waiting(self) -> CollectiveLine | None:
        """The collective with a wait of this rank: the last one, or an asynchronous one."""
        done = {line["number"] for line in self.of(CollectiveDoneLine)}
        called = {line["number"]: line for line in self.of(CollectiveLine)}
        waits = list(self.of(CollectiveWaitLine))
        if waits and not waits[-1]["over"]:
            return called.get(waits[-1]["number"])
        last = max(called, default=None)
        return None if last is None or last in done else called[last]

    @cached_property
    def loaders(self) -> Mapping[int, LoaderLine]:
        """The loaders by id."""
        return {line["id"]: line for line in self.of(LoaderLine)}

    @cached_property
    def batches(self) -> tuple[ObservedBatch, ...]:
        """The first batches of each loader, in order."""
        return tuple(
            ObservedBatch(line["loader"], line["number"], line["value"], span(line["requested_at"]))
            for line in self.of(BatchLine)
        )

    @cached_property
    def modules(self) -> tuple[ObservedModule, ...]:
        """The calls of outermost modules, each with the calls in it."""
        exits = {line["id"]: line for line in self.of(ModuleExitLine)}
        inner: dict[int | None, list[ModuleEnterLine]] = {}
        for line in self.of(ModuleEnterLine):
            inner.setdefault(line["parent"], []).append(line)

        models = {line["id"]: line for line in self.of(ModelParametersLine)}

        def module(line: ModuleEnterLine, counts: Mapping[str, int] | None = None) -> ObservedModule:
            done = exits.get(line["id"])
            model = models.get(line["id"])
            if model is not None:
                counts = {**model["modules"], line["name"]: model["total"]}
            return ObservedModule(
                line["name"],
                line["type"],
                line["grad_enabled"],
                line["input"],
                None if done is None else done["out"],
                None if done is None else done["seconds"],
                span(line["constructed_at"]),
                span(line["called_at"]),
                tuple(module(each, counts) for each in inner.get(line["id"], ())),
                None if counts is None else counts.get(line["name"]),
                model,
                line["variable"],
                None if done is None else done["multiplications"],
            )

        return tuple(module(line) for line in inner.get(None, ()))

    @cached_property
    def exceptions(self) -> tuple[RaisedException, ...]:
        """The exceptions leaving watched calls or ending the script, in order."""
        handlers = {line["id"]: line["handler"] for line in self.of(ExceptionSwallowedLine)}
        ended = set(self.end["exceptions"]) if self.end else set()
        extra = self._extra_batches()
        return tuple(
            RaisedException(
                line["id"],
                line["origin"],
                line["type"],
                line["message"],
                tuple((cause["type"], cause["message"]) for cause in line["causes"]),
                _stack(line),
                line["values"],
                line["details"],
                line["id"] in handlers,
                span(handlers.get(line["id"])),
                line["id"] in ended,
                extra.get(line["id"]),
            )
            for line in self.of(ExceptionLine)
        )

    def _extra_batches(self) -> dict[int, ExtraBatchLine]:
        """The running extra batch of each exception, by the id of the exception."""
        found: dict[int, ExtraBatchLine] = {}
        running: ExtraBatchLine | None = None
        for line in self.lines:
            if line["kind"] == "extra_batch":
                running = line
            elif line["kind"] == "extra_batch_done":
                running = None
            elif line["kind"] == "exception" and running is not None:
                found[line["id"]] = running
        return found


def _stack(line: ExceptionLine) -> tuple[Span, ...]:
    """The user's places of an exception; for rows combined only by the probe, that of the loader."""
    loader = line["details"].get("loader")
    places: list[UserPlace | None] = [*line["stack"]]
    if not places and line["origin"] == "rows" and loader is not None:
        places = [loader["created_at"]]
    return tuple(each for each in map(span, places) if each is not None)


def span(place: UserPlace | None) -> Span | None:
    """Convert a place of the agent."""
    if place is None:
        return None
    return Span(place["file"], place["row"], place["column"], place["end_row"], place["end_column"])


def read(path: Path, left: WritesLeft = NOTHING_LEFT, masker: Masker | None = None) -> Observations:
    """Read the observations in a file; empty if there is no such file. left are the writes of the run.

    masker masks secrets in all texts but paths.

    To be called after the run: files that the script wrote are compared with their state before the run.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            lines = tuple(_lines(file, masker or Masker()))
    except FileNotFoundError:
        lines = ()
    written = Observations(lines).of(FileWrittenLine)
    changed = dict.fromkeys((*(each["path"] for each in written if _is_changed(each)), *left.changed))
    return Observations(lines, tuple(changed), left.discarded, left.deleted, left.compared)


def _lines(file: Iterable[str], masker: Masker) -> Iterator[Line]:
    for text in file:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "kind" in line:
            yield cast("Line", masker.mask_all(line, PATH_FIELDS))


def _is_changed(line: FileWrittenLine) -> bool:
    """Whether the real file differs from its state before the script's first write to it."""
    before = line["before"]
    try:
        now = Path(line["path"]).stat()
    except (OSError, ValueError):
        return bool(before)
    # An empty state is that of a directory, a device or a socket; its time says little.
    return before is None or (before != [] and before != [now.st_size, now.st_mtime_ns, now.st_ino])
