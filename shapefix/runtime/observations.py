"""What the agent has written, read back; a line that the end of the process has cut off is left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from shapefix.diagnostics import Span

Value = Mapping[str, Any]
"""A value as the agent describes it: `is`, `type`, and what it has of size, dtype, stride, device, items."""


@dataclass(frozen=True)
class Module:
    """One call of a module, and those that it made; out is None where it did not return."""

    name: str
    type: str
    training: bool
    input: Value
    out: Value | None
    seconds: float | None
    born: Span | None
    called: Span | None
    children: tuple[Module, ...]


@dataclass(frozen=True)
class Failure:
    """An exception that left a watched call, or ended the script.

    where is module, loader, loss, backward, rows or script. stack has the user's places, innermost first;
    caught is the `except` that swallowed it, ended says that it ended the script.
    """

    number: int
    where: str
    type: str
    message: str
    causes: tuple[tuple[str, str], ...]
    stack: tuple[Span, ...]
    values: Mapping[str, Value]
    details: Mapping[str, Any]
    swallowed: bool = False
    caught: Span | None = None
    ended: bool = False


@dataclass(frozen=True)
class Batch:
    """A batch as a loader yielded it, and where it was asked for."""

    loader: int
    number: int
    value: Value
    asked: Span | None


@dataclass(frozen=True)
class Observations:
    """Everything that is known of one run. lines are the agent's own, in their order."""

    lines: tuple[Mapping[str, Any], ...] = field(repr=False)

    def of(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """The lines of one kind."""
        return (line for line in self.lines if line["kind"] == kind)

    def first(self, kind: str) -> Mapping[str, Any] | None:
        """The first line of one kind."""
        return next(self.of(kind), None)

    @cached_property
    def end(self) -> Mapping[str, Any] | None:
        """How the script ended, as far as the agent has lived to tell."""
        return self.first("end")

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The paths whose writes went to the temporary folder, and nowhere else."""
        return self._paths("write", changed=False)

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """The paths that were written to, and that have changed at their real place all the same."""
        return self._paths("write", changed=True)

    @cached_property
    def refused(self) -> tuple[str, ...]:
        """The paths whose writes were neither redirected nor allowed."""
        return self._paths("refused", changed=False)

    def _paths(self, kind: str, changed: bool) -> tuple[str, ...]:
        lines = (line for line in self.of(kind) if line.get("changed", False) is changed)
        return tuple(dict.fromkeys(line["path"] for line in lines))

    @cached_property
    def steps(self) -> int:
        """How many optimizer steps were made, as far as they were counted."""
        return max((line["number"] for line in self.of("step")), default=0)

    @cached_property
    def waiting(self) -> Value | None:
        """The collective that this rank has called last, where it has not returned from it."""
        met = {line["number"] for line in self.of("met")}
        last = max(self.of("collective"), key=lambda line: int(line["number"]), default=None)
        return None if last is None or last["number"] in met else last

    @cached_property
    def loaders(self) -> Mapping[int, Mapping[str, Any]]:
        """The loaders by number."""
        return {line["id"]: line for line in self.of("loader")}

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """The first batches of each loader, in the order of the run."""
        return tuple(
            Batch(line["loader"], line["number"], line["value"], span(line["asked"]))
            for line in self.of("batch")
        )

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """The outermost modules called, each with its tree."""
        left = {line["id"]: line for line in self.of("leave")}
        inner: dict[int | None, list[Mapping[str, Any]]] = {}
        for line in self.of("enter"):
            inner.setdefault(line["parent"], []).append(line)

        def made(line: Mapping[str, Any]) -> Module:
            done = left.get(line["id"], {"out": None, "seconds": None})
            return Module(
                line["name"],
                line["type"],
                line["training"],
                line["input"],
                done["out"],
                done["seconds"],
                span(line["born"]),
                span(line["called"]),
                tuple(made(each) for each in inner.get(line["id"], ())),
            )

        return tuple(made(line) for line in inner.get(None, ()))

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        """The exceptions that came out of watched calls, in their order, with what became of each."""
        caught = {line["failure"]: line["by"] for line in self.of("swallowed")}
        ended = set(self.end.get("failures", ())) if self.end else set()
        known = ("kind", "at", "id", "where", "type", "message", "causes", "stack", "values")
        return tuple(
            Failure(
                line["id"],
                line["where"],
                line["type"],
                line["message"],
                tuple((cause["type"], cause["message"]) for cause in line["causes"]),
                _stack(line),
                line["values"],
                {key: value for key, value in line.items() if key not in known},
                line["id"] in caught,
                span(caught.get(line["id"])),
                line["id"] in ended,
            )
            for line in self.of("failure")
        )


def _stack(line: Mapping[str, Any]) -> tuple[Span, ...]:
    """The user's places of a failure; that of the loader for rows that only the probe brought together."""
    places = line["stack"] or ([line["loader"]["made"]] if line["where"] == "rows" else [])
    return tuple(each for each in map(span, places) if each is not None)


def span(place: Mapping[str, Any] | None) -> Span | None:
    """A place as the agent writes it."""
    if place is None:
        return None
    return Span(place["file"], place["row"], place["column"], place["end_row"], place["end_column"])


def read(path: Path) -> Observations:
    """The observations in a file; none where there is no such file.

    Called when the run is over: files that the script wrote to are compared with what they were before.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return Observations(tuple(_lines(file)))
    except FileNotFoundError:
        return Observations(())


def _lines(file: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for text in file:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "kind" in line:
            yield line | {"changed": _changed(line)} if line["kind"] == "write" else line


def _changed(line: Mapping[str, Any]) -> bool:
    """Whether a file is no longer what the agent saw before the script's first write to it."""
    before = line.get("was")
    try:
        now = Path(line["path"]).stat()
    except (OSError, ValueError):
        return bool(before)
    # Empty: something other than a file, such as a folder, whose time says little.
    return before is None or (before != [] and before != [now.st_size, now.st_mtime_ns, now.st_ino])
