"""The document of a run, as `shapefix probe --output-format json` has written it, read back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from shapefix.diagnostics import Span
from shapefix.sources.text import Unreadable, read_bytes

_VERSION = 1
_LARGEST = 64_000_000
"""Bytes of a document."""
_LONGEST_PATH = 4_096

RecordedValue = int | tuple[int, ...]
"""A whole number, or the sizes of a tensor."""


class UnusableRecord(Exception):
    """The file is not a document of a probe run; the message has the reason and a remedy."""


@dataclass(frozen=True)
class RecordedCall:
    """A call reached by the run; values are those of names at the call, outer is its caller.

    returned says that it has returned at least once.
    """

    at: Span
    returned: bool
    outer: tuple[Span, ...]
    values: Mapping[str, RecordedValue]


@dataclass(frozen=True)
class RecordedException:
    """An exception of the run, with its places in the user's code, innermost first.

    swallowed is the `except` that made nothing of it.
    """

    type: str
    message: str
    stack: tuple[Span, ...]
    swallowed: Span | None

    def __str__(self) -> str:
        rows = self.message.splitlines()
        return f"{self.type}: {rows[0]}" if rows else self.type


@dataclass(frozen=True)
class RecordedFinding:
    """A finding of the run: its own place first, then those of its evidence."""

    code: str
    message: str
    places: tuple[Span, ...]


@dataclass(frozen=True)
class Record:
    """The facts recorded in one run.

    digests are the SHA-256 of the executed files, by path. returned has the first rows of functions that
    returned, loops the places of loops over a loader.
    """

    digests: Mapping[str, str]
    reached: tuple[RecordedCall, ...]
    returned: frozenset[tuple[str, int]]
    raised: tuple[RecordedException, ...]
    found: tuple[RecordedFinding, ...]
    loops: tuple[Span, ...]


def read(name: str) -> Record:
    """Read the record in a file. Raises UnusableRecord."""
    try:
        document = json.loads(read_bytes(name, _LARGEST))
    except Unreadable as error:
        raise UnusableRecord(error.message) from error
    except (ValueError, RecursionError) as error:
        raise UnusableRecord("is not JSON; `shapefix probe --output-format json` writes it") from error
    return record_of(document)


def record_of(document: object) -> Record:
    """Read the record in a JSON document, of any form. Raises UnusableRecord."""
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version is None:
        raise UnusableRecord("is not of the probe; `shapefix probe --output-format json` writes such a file")
    if version != _VERSION:
        shown = version if isinstance(version, int) and abs(version) < _LARGEST else type(version).__name__
        raise UnusableRecord(
            f"has schema_version {shown}, and this shapefix reads {_VERSION}; run the probe again"
        )
    try:
        return _Reader().record(_object(document))
    except (_Damaged, KeyError, ValueError) as error:
        raise UnusableRecord("is damaged; run the probe again") from error


class _Damaged(Exception):
    """A value is not of the type that the schema of documents says."""


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _Damaged(value)
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise _Damaged(value)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Damaged(value)
    return value


def _number(value: object) -> int:
    # bool is a subclass of int.
    if type(value) is not int:
        raise _Damaged(value)
    return value


def _held(value: object) -> RecordedValue:
    return tuple(map(_number, value)) if isinstance(value, list) else _number(value)


class _Reader:
    """Reads one document; its methods raise _Damaged, KeyError for a missing key, ValueError for a path."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def record(self, document: Mapping[str, object]) -> Record:
        executed = _object(document["executed"])
        reached = list(map(_object, _list(executed["reached"])))
        places = {_number(each["id"]): self._span(each["at"]) for each in reached}
        return Record(
            {
                self._path(each["filename"]): _text(each["sha256"])
                for each in map(_object, _list(executed["files"]))
            },
            tuple(
                RecordedCall(
                    places[_number(each["id"])],
                    each["returned"] is True,
                    tuple(
                        places[number] for number in map(_number, _list(each["outer"])) if number in places
                    ),
                    {name: _held(value) for name, value in _object(each["values"]).items()},
                )
                for each in reached
            ),
            frozenset(
                (self._path(each["filename"]), _number(each["row"]))
                for each in map(_object, _list(executed["returned"]))
            ),
            tuple(map(self._exception, _list(document["exceptions"]))),
            tuple(map(self._finding, _list(document["findings"]))),
            tuple(
                self._span(each["asked"])
                for each in map(_object, _list(document["batches"]))
                if each["asked"] is not None
            ),
        )

    def _exception(self, value: object) -> RecordedException:
        each = _object(value)
        swallowed = each["swallowed_at"]
        return RecordedException(
            _text(each["type"]),
            _text(each["message"]),
            tuple(map(self._span, _list(each["stack"]))),
            None if swallowed is None else self._span(swallowed),
        )

    def _finding(self, value: object) -> RecordedFinding:
        each = _object(value)
        places = (self._span(each), *map(self._span, _list(each["evidence"])))
        return RecordedFinding(_text(each["code"]), _text(each["message"]), places)

    def _span(self, value: object) -> Span:
        place = _object(value)
        start, end = _object(place["location"]), _object(place["end_location"])
        path = self._path(place["filename"])
        numbers = (start["row"], start["column"], end["row"], end["column"])
        return Span(path, *map(_number, numbers))

    def _path(self, value: object) -> str:
        name = _text(value)
        if name not in self._real:
            # A longer one names no file, and takes long to resolve.
            if len(name) > _LONGEST_PATH:
                raise _Damaged(value)
            self._real[name] = os.path.realpath(name)
        return self._real[name]
